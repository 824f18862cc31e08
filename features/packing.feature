@chunking-compression-batching
Feature: Chunking, compression, batching
  How a producer packs messages into entries is its own affair: what consumers get does not change.

  @API-3.1.6 @CONF-3.10
  Scenario Outline: batches that are compressed arrive as they were sent
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | compression | <case>               |
      | batching    | 5 messages, 60000 ms |
    And a queue consumer on the topic with subscription "s"
    When the producer starts to send 10 messages of 3000 bytes with 1 key
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every entry of the topic is compressed with <case>
    And every entry of the topic has at most 5 messages, and some have several

    @id:compression-batches
    Examples:
      | case   |
      | none   |
      | lz4    |
      | zlib   |
      | zstd   |
      | snappy |

  @API-3.1.6 @CONF-3.10
  Scenario Outline: single messages that are compressed arrive in their order
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | compression | <case> |
      | batching    | off    |
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages of 6000 bytes with 2 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And every entry of the topic is compressed with <case>

    @id:compression-single
    Examples:
      | case   |
      | lz4    |
      | zlib   |
      | zstd   |
      | snappy |

  @id:compression-batch-acknowledged @API-4.2.4 @CONF-3.10
  Scenario: one message of a compressed batch is acknowledged, and its neighbours come again
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | compression | zlib                 |
      | batching    | 3 messages, 60000 ms |
    And queue consumer "a" on the topic with subscription "s"
    When the producer starts to send 3 messages of 3000 bytes with 1 key
    And queue consumer "a" receives 3 messages
    Then the topic holds one entry with 3 messages
    And every entry of the topic is compressed with zlib
    When queue consumer "a" acknowledges message number 2 of those it received
    And the application closes queue consumer "a"
    And the application subscribes queue consumer "b" on the topic with subscription "s"
    And queue consumer "b" receives and acknowledges 1 message
    Then the last message is message number 1 of those queue consumer "a" received
    When queue consumer "b" receives and acknowledges 1 message
    Then the last message is message number 3 of those queue consumer "a" received
    And a receive from queue consumer "b" gives nothing within 1000 ms

  @id:batching-count @API-3.1.6
  Scenario: a batch is closed when it has its number of messages
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 4 messages, 120000 ms |
    When the producer starts to send 12 messages with 1 key
    Then every send succeeds
    And every entry of the topic has at most 4 messages, and some have several

  @id:batching-bytes @API-3.1.6
  Scenario: a batch is closed when it has its number of bytes
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 1000 messages, 2000 bytes, 60000 ms |
    When the producer starts to send 12 messages of 500 bytes with 1 key
    And the application flushes the producer
    Then every send succeeds
    And every entry of the topic has at most 4 messages, and some have several

  @id:batching-delay @API-3.1.6 @needs-journal @needs-virtual-time
  Scenario: a batch waits for its delay and not longer
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 1000 messages, 5000 ms |
    And the producer has sent 1 message with 1 key
    When the journal is marked
    And the producer starts to send 4 messages with 1 key
    And 4 s pass
    Then nothing was sent to the topic since the mark
    When 2 s pass
    Then every send succeeds
    And every entry of the topic has at most 4 messages, and some have several

  @id:chunks-queue @API-3.1.6 @CONF-3.10
  Scenario: large messages go in chunks, and a queue consumer gets whole messages
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a queue consumer on the topic with subscription "s"
    When the producer sends 5 messages of 1500 bytes with 5 keys
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every message of the topic is stored in several chunks

  @id:chunks-stream @API-3.1.6 @CONF-3.10
  Scenario: a stream consumer gets large messages in the order of their sends
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages of 900 bytes with 3 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And every message of the topic is stored in several chunks

  @id:chunks-checkpoint @API-3.1.6 @CONF-3.10
  Scenario: a checkpoint consumer gets large messages, and goes on behind one
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And checkpoint consumer "a" on the topic from earliest
    When the producer sends 4 messages of 900 bytes with 2 keys
    And checkpoint consumer "a" receives 2 messages
    And the application takes checkpoint "middle" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "middle"
    And checkpoint consumer "b" receives 2 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "middle"
    And every message of the topic is stored in several chunks

  @id:chunks-mixed-sizes @CONF-3.10
  Scenario: large and small messages of a producer stay in their order
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a stream consumer on the topic with subscription "s"
    When the producer starts to send 2 messages of 900 bytes with 1 key
    And the producer starts to send 3 messages with 1 key
    And the producer starts to send 2 messages of 900 bytes with 1 key
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:chunks-identifier @CONF-3.10 @API-3.2.10
  Scenario: a large message has one identifier
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a queue consumer on the topic with subscription "s"
    When the producer sends 3 messages of 900 bytes with 1 key
    And the queue consumer receives and acknowledges everything
    Then every received message has the identifier that its send returned

  @API-3.1.6 @CONF-3.10
  Scenario Outline: large messages are compressed before they go in chunks
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking    | 1000 bytes |
      | batching    | off        |
      | compression | <case>     |
    And a queue consumer on the topic with subscription "s"
    When the producer sends 3 messages of 9000 bytes with 2 keys
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And every message of the topic is stored in several chunks
    And every entry of the topic is compressed with <case>

    @id:chunks-compressed
    Examples:
      | case   |
      | lz4    |
      | zlib   |
      | zstd   |
      | snappy |

  @id:chunks-two-producers @CONF-3.10 @needs-faults
  Scenario: chunks of two producers alternate
    Given a scalable topic with 1 segment
    And producer "a" on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And producer "b" of client "other" on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a queue consumer on the topic with subscription "s"
    And producer "a" has sent 1 message with 1 key
    And producer "b" has sent 1 message with 1 key
    When the fault is armed
      """
      when: { command: SEND }
      effect: hold
      skip: 2
      count: 3
      """
    And producer "a" starts to send 1 message of 900 bytes with 1 key
    And 3 frames are held
    And the broker has sent 4 SEND_RECEIPT
    And producer "b" sends 1 message of 900 bytes with 1 key
    And the held frames are released
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And chunks of different messages of the topic alternate

  @CONF-3.10 @needs-control
  Scenario Outline: a consumer of each kind puts chunks together that alternate
    Given a scalable topic with 1 segment
    When the application <open>
    And these chunks are stored in the topic
      | a 1/3 |
      | b 1/2 |
      | a 2/3 |
      | b 2/2 |
      | a 3/3 |
    And <get>
    Then the received messages are those of the chunks
      | b x2 |
      | a x3 |

    @id:chunks-alternate
    Examples:
      | case       | open                                                              | get                                                      |
      | queue      | subscribes queue consumer "c" on the topic with subscription "s"  | queue consumer "c" receives and acknowledges 2 messages  |
      | stream     | subscribes stream consumer "c" on the topic with subscription "s" | stream consumer "c" receives and acknowledges 2 messages |
      | checkpoint | creates checkpoint consumer "c" on the topic from earliest        | checkpoint consumer "c" receives 2 messages              |

  @CONF-3.10 @needs-control
  Scenario Outline: what is stored twice of a large message counts once
    Given a scalable topic with 1 segment
    When the application <open>
    And these chunks are stored in the topic
      | a 1/3 |
      | a 1/3 |
      | a 2/3 |
      | a 2/3 |
      | a 3/3 |
      | b 1/2 |
      | b 2/2 |
    And <get>
    Then the received messages are those of the chunks
      | a x3 |
      | b x2 |

    @id:chunks-duplicated
    Examples:
      | case       | open                                                              | get                                                      |
      | queue      | subscribes queue consumer "c" on the topic with subscription "s"  | queue consumer "c" receives and acknowledges 2 messages  |
      | stream     | subscribes stream consumer "c" on the topic with subscription "s" | stream consumer "c" receives and acknowledges 2 messages |
      | checkpoint | creates checkpoint consumer "c" on the topic from earliest        | checkpoint consumer "c" receives 2 messages              |

  @CONF-3.10 @needs-control
  Scenario Outline: a large message without one of its chunks is not delivered, and those after it are
    Given a scalable topic with 1 segment
    When the application <open>
    And these chunks are stored in the topic
      | a 1/3 |
      | a 3/3 |
      | b 2/2 |
      | c 1/2 |
      | c 2/2 |
    And <get>
    Then the received messages are those of the chunks
      | c x2 |

    @id:chunks-lost
    Examples:
      | case       | open                                                              | get                                                     |
      | queue      | subscribes queue consumer "c" on the topic with subscription "s"  | queue consumer "c" receives and acknowledges 1 message  |
      | stream     | subscribes stream consumer "c" on the topic with subscription "s" | stream consumer "c" receives and acknowledges 1 message |
      | checkpoint | creates checkpoint consumer "c" on the topic from earliest        | checkpoint consumer "c" receives 1 message              |

  @id:chunks-many-incomplete @CONF-3.10 @needs-control
  Scenario: many incomplete messages do not keep a complete one from the application
    Given a scalable topic with 1 segment
    When the application subscribes queue consumer "c" on the topic with subscription "s"
    And these chunks are stored in the topic
      | a 1/2 |
      | b 1/2 |
      | c 1/2 |
      | d 1/2 |
      | e 1/2 |
      | f 1/2 |
      | g 1/2 |
      | h 1/2 |
      | i 1/2 |
      | j 1/2 |
      | k 1/2 |
      | l 1/2 |
      | m 1/2 |
      | m 2/2 |
    And queue consumer "c" receives and acknowledges 1 message
    Then the received messages are those of the chunks
      | m x2 |

  @id:chunks-expired @CONF-3.10 @needs-control @needs-virtual-time
  Scenario: an incomplete message does not hold up the successor of its segment for ever
    Given a scalable topic with 1 segment
    And a stream consumer on the topic with subscription "s"
    And these chunks are stored in the topic
      | a 1/2 |
    And a producer on the topic
    When segment 0 of the topic is split
    And the producer sends 4 messages with 2 keys
    And 500 s pass
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once

  @id:chunks-acknowledged @CONF-3.10 @API-4.2.4 @needs-journal
  Scenario: a large message is acknowledged in all its chunks
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And queue consumer "a" on the topic with subscription "s"
    When the producer sends 2 messages of 900 bytes with 1 key
    And queue consumer "a" receives and acknowledges everything
    And the application closes queue consumer "a"
    Then every message of the topic is stored in several chunks
    When the journal is marked
    And the application subscribes queue consumer "b" on the topic with subscription "s"
    Then a receive from queue consumer "b" gives nothing within 1000 ms
    And no MESSAGE went to the client since the mark

  @id:chunks-acknowledged-in-order @CONF-3.10 @needs-journal
  Scenario: a cumulative acknowledgement takes in all chunks
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 2 messages of 900 bytes with 1 key
    And stream consumer "a" receives and acknowledges 2 messages
    And the application closes stream consumer "a"
    Then every message of the topic is stored in several chunks
    When the journal is marked
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    Then a receive from stream consumer "b" gives nothing within 1000 ms
    And no MESSAGE went to the client since the mark

  @id:chunks-rejected @CONF-3.10
  Scenario: a large message that is acknowledged negatively comes again as a whole
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a queue consumer on the topic with subscription "s"
    When the producer sends 1 message of 900 bytes with 1 key
    And the queue consumer receives 1 message
    And the queue consumer negatively acknowledges message number 1 of those it received
    And the queue consumer receives and acknowledges 1 message
    Then the last message is message number 1 of those the queue consumer received
    And every message of the topic is stored in several chunks

  @id:chunks-sealed @CONF-3.10 @needs-faults
  Scenario: a large message whose segment is sealed in its middle goes to the successor as a whole
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | chunking | 200 bytes |
      | batching | off       |
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 1 message with 1 key
    When the fault is armed
      """
      when: { command: SEND }
      effect: hold
      skip: 2
      count: 3
      """
    And the producer starts to send 1 message of 900 bytes with 1 key
    And 3 frames are held
    And the broker has sent 3 SEND_RECEIPT
    And segment 0 of the topic is split
    And the held frames are released
    And the queue consumer receives and acknowledges everything
    Then every message was received exactly once
    And segment 0 of the topic holds the beginning of a message only
