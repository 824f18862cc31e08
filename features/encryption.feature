@encryption
Feature: End-to-end encryption
  Producers encrypt for the owners of keys, and those decrypt. The brokers see neither. What happens where a key is missing is
  configured on both sides.

  @API-3.1.7 @CONF-3.9
  Scenario Outline: what is encrypted with a key of each kind arrives as it was sent
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | encryption | <case> |
    And a queue consumer on the topic with
      | subscription | s      |
      | private keys | <case> |
    When the producer sends 6 messages with 3 keys
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is encrypted for "<case>"

    @id:encryption-queue
    Examples:
      | case |
      | rsa  |
      | p256 |
      | p384 |
      | p521 |

  @id:encryption-stream @API-3.1.7 @CONF-3.9
  Scenario: a stream consumer decrypts in the order of the sends
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | encryption | p256 |
    And a stream consumer on the topic with
      | subscription | s    |
      | private keys | p256 |
    When the producer sends 12 messages with 4 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And every entry of the topic is encrypted for "p256"

  @id:encryption-checkpoint @API-3.1.7 @CONF-3.9
  Scenario: a checkpoint consumer decrypts
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | encryption | rsa |
    And a checkpoint consumer on the topic with
      | start        | earliest |
      | private keys | rsa      |
    When the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 8 messages
    Then the checkpoint consumer received every message exactly once
    And every entry of the topic is encrypted for "rsa"

  @id:encryption-attributes @API-3.1.7 @CONF-3.9
  Scenario: key, properties and event time of an encrypted message stay readable
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | rsa |
    And a queue consumer on the topic with
      | subscription | s   |
      | private keys | rsa |
    When the producer sends a message with
      | value           | grüße         |
      | key             | order-17      |
      | property origin | test          |
      | event time      | 1700000000123 |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | value           | grüße          |
      | payload         | 6772c3bcc39f65 |
      | key             | order-17       |
      | property origin | test           |
      | event time      | 1700000000123  |
      | size            | 7              |
    And every entry of the topic is encrypted for "rsa"

  @id:encryption-own-entry @CONF-3.9 @KS-8.2
  Scenario: encrypted messages are entries of their own, also where others are batched
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | rsa                   |
      | batching   | 100 messages, 1000 ms |
    When the producer starts to send 6 messages with 1 key
    Then every send succeeds
    And every entry of the topic says that it holds one message
    And every entry of the topic is encrypted for "rsa"

  @id:encryption-stamp @CONF-3.9 @KS-8.3
  Scenario: encrypted entries are stamped with their bucket hash
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | encryption | rsa |
    When the producer sends 12 messages with 6 keys
    Then every entry of the topic is stamped with the bucket hashes of its messages
    And every entry of the topic says that it holds one message
    And every entry of the topic is encrypted for "rsa"

  @id:encryption-shared-segment @KS-8.3 @CONF-3.9 @needs-journal
  Scenario: stream consumers that share a segment get the encrypted messages of their buckets
    Given a scalable topic with 1 segment
    And stream consumer "a" on the topic with
      | subscription | s   |
      | private keys | rsa |
    And stream consumer "b" on the topic with
      | subscription | s   |
      | private keys | rsa |
    And a producer on the topic with
      | encryption | rsa |
    When segment 0 is given to stream consumer "a" and others
    And segment 0 is given to stream consumer "b" and others
    And the producer sends 24 messages with 12 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And each stream consumer received a part of the messages
    And the messages of each key came in the order of their sends
    And every entry of the topic is encrypted for "rsa"

  @API-3.1.7 @CONF-3.9
  Scenario Outline: each of several recipients decrypts with the own key
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | rsa, p256 |
    And a queue consumer on the topic with
      | subscription | s      |
      | private keys | <case> |
    When the producer sends 4 messages with 2 keys
    And the queue consumer receives and acknowledges 4 messages
    Then every message was received exactly once
    And every entry of the topic is encrypted for "rsa, p256"

    @id:encryption-recipient
    Examples:
      | case |
      | rsa  |
      | p256 |

  @id:encryption-rotation @CONF-3.9
  Scenario: a consumer reads what was encrypted with the old key and with the new one
    Given a scalable topic with 1 segment
    And producer "old" on the topic with
      | encryption | rsa |
    And producer "new" on the topic with
      | encryption | p384 |
    And a queue consumer on the topic with
      | subscription | s         |
      | private keys | rsa, p384 |
    When producer "old" sends 3 messages with 1 key
    And producer "new" sends 3 messages with 1 key
    And producer "old" sends 3 messages with 1 key
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is encrypted for "rsa or p384"

  @id:encryption-split @CONF-3.9
  Scenario: encrypted messages pass through a split
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | rsa |
    And a stream consumer on the topic with
      | subscription | s   |
      | private keys | rsa |
    When the producer sends 6 messages with 3 keys
    And segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And every entry of the topic is encrypted for "rsa"

  @id:encryption-producer-fails @ERR-2.14 @ERR-3.15 @CONF-3.9
  Scenario: without its key a producer fails and publishes nothing
    Given a scalable topic with 1 segment
    When the application tries to create a producer on the topic and to send a message, with
      | encryption         | missing |
      | encryption failure | fail    |
    Then it fails with the category Crypto
    And nothing is stored in the topic

  @id:encryption-producer-one-missing @ERR-2.14 @CONF-3.9
  Scenario: a producer does not do with some of its keys
    Given a scalable topic with 1 segment
    When the application tries to create a producer on the topic and to send a message, with
      | encryption         | rsa, missing |
      | encryption failure | fail         |
    Then it fails with the category Crypto
    And nothing is stored in the topic

  @id:encryption-producer-unencrypted @CONF-3.9
  Scenario: without its key a producer that may publishes in the clear
    Given a scalable topic with 1 segment
    And a queue consumer on the topic with subscription "s"
    And a producer on the topic with
      | encryption         | missing          |
      | encryption failure | send unencrypted |
    When the producer sends a message with key "key"
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is in the clear

  @ERR-2.14 @ERR-3.15
  Scenario Outline: a receive tells of a message that cannot be decrypted
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | p256 |
    And a queue consumer on the topic with
      | subscription       | s      |
      | private keys       | <keys> |
      | decryption failure | fail   |
    When the producer sends a message
    And the application tries to receive from the queue consumer for 10000 ms
    Then it fails with the category Crypto

    @id:encryption-consumer-fails
    Examples:
      | case    | keys         |
      | missing | none         |
      | wrong   | p384 as p256 |

  @CONF-3.9
  Scenario Outline: what a consumer fails to decrypt stays for one that has the key
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | p256 |
    And queue consumer "blind" on the topic with
      | subscription       | s      |
      | private keys       | <keys> |
      | decryption failure | fail   |
    When the producer sends a message
    And the application tries to receive from queue consumer "blind" for 3000 ms
    And the application closes queue consumer "blind"
    And the application subscribes queue consumer "sighted" on the topic with
      | subscription | s    |
      | private keys | p256 |
    And queue consumer "sighted" receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is encrypted for "p256"

    @id:encryption-consumer-keeps
    Examples:
      | case    | keys         |
      | missing | none         |
      | wrong   | p384 as p256 |

  @CONF-3.9
  Scenario Outline: a consumer that may discards what it cannot decrypt, for good
    Given a scalable topic with 1 segment
    And producer "sealed" on the topic with
      | encryption | p256 |
    And producer "clear" on the topic
    And queue consumer "blind" on the topic with
      | subscription       | s       |
      | private keys       | <keys>  |
      | decryption failure | discard |
    When producer "sealed" sends 2 messages without keys
    And producer "clear" sends a message with
      | value | in the clear |
    And queue consumer "blind" receives and acknowledges 1 message
    Then the last message has
      | value | in the clear |
    When the application closes queue consumer "blind"
    And the application subscribes queue consumer "sighted" on the topic with
      | subscription | s    |
      | private keys | p256 |
    Then a receive from queue consumer "sighted" gives nothing within 2000 ms

    @id:encryption-consumer-discards
    Examples:
      | case    | keys         |
      | missing | none         |
      | wrong   | p384 as p256 |

  @CONF-3.9
  Scenario Outline: a consumer that may delivers what it cannot decrypt as it is
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption | p256  |
      | schema     | bytes |
    And a queue consumer on the topic with
      | subscription       | s       |
      | schema             | bytes   |
      | private keys       | <keys>  |
      | decryption failure | consume |
    When the producer sends a message with
      | key   | order-17         |
      | value | 00112233445566ff |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has the payload of the stored entry
    And the last message has
      | key | order-17 |
    And every entry of the topic is encrypted for "p256"

    @id:encryption-consumer-consumes
    Examples:
      | case    | keys         |
      | missing | none         |
      | wrong   | p384 as p256 |

  @API-3.1.6 @CONF-3.9 @CONF-3.10 @chunking-compression-batching
  Scenario Outline: compressed messages are encrypted
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption  | p256   |
      | compression | <case> |
    And a queue consumer on the topic with
      | subscription | s    |
      | private keys | p256 |
    When the producer sends 4 messages of 6000 bytes with 2 keys
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is compressed with <case>
    And every entry of the topic is encrypted for "p256"

    @id:encryption-compressed
    Examples:
      | case   |
      | none   |
      | lz4    |
      | zlib   |
      | zstd   |
      | snappy |

  @id:encryption-chunks @CONF-3.9 @CONF-3.10 @chunking-compression-batching
  Scenario: chunks of large messages are encrypted one by one
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | encryption  | rsa        |
      | chunking    | 1000 bytes |
      | batching    | off        |
      | compression | zstd       |
    And a queue consumer on the topic with
      | subscription | s   |
      | private keys | rsa |
    When the producer sends 3 messages of 9000 bytes with 2 keys
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every message of the topic is stored in several chunks
    And every entry of the topic is encrypted for "rsa"
