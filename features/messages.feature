Feature: Messages
  What an application sets on a message arrives, and what a received message tells is right.

  @id:message-attributes @API-3.2.1 @API-3.2.2 @API-3.2.3 @API-3.2.4 @DATA-3.1 @DATA-3.2 @DATA-3.4 @DATA-3.5 @DATA-3.7
  @DATA-3.11 @DATA-3.12
  Scenario: value, key, properties and event time arrive as they were set
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message with
      | value             | grüße         |
      | key               | naïve         |
      | property origin   | bücher        |
      | property empty    |               |
      | event time        | 1700000000123 |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | value            | grüße          |
      | payload          | 6772c3bcc39f65 |
      | key              | naïve          |
      | properties       | 2              |
      | property origin  | bücher         |
      | property empty   |                |
      | event time       | 1700000000123  |
      | redelivery count | 0              |
      | size             | 7              |

  @id:message-bare @API-3.2.4 @DATA-3.4 @DATA-3.5 @DATA-3.7
  Scenario: what was not set is absent
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | key        | absent |
      | properties | 0      |
      | event time | absent |

  @id:message-empty-key @DATA-3.4 @API-3.2.2
  Scenario: an empty key is not the same as none
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message with key ""
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | key |  |

  @id:message-published-metadata @API-3.2.2 @API-3.2.3 @API-3.2.4 @API-3.2.9
  Scenario: attributes are published in the entry's metadata
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends a message with
      | key             | order-17      |
      | property origin | test          |
      | event time      | 1700000000123 |
      | replicate to    | east, west    |
    Then the stored entry carries
      | key             | order-17      |
      | property origin | test          |
      | event time      | 1700000000123 |
      | replicate to    | east, west    |

  @id:message-identifier @API-3.2.10 @DATA-3.3
  Scenario: send returns the identifier that consumers report
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 6 messages without keys
    And the producer starts to send 6 messages with 2 keys
    And the queue consumer receives and acknowledges 12 messages
    Then every received message has the identifier that its send returned

  @id:message-sequence-id @API-3.2.5 @C5
  Scenario: a sequence identifier that the application sets is used
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message with
      | sequence id | 41 |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | sequence id | 41 |

  @id:message-sequence-in-batch @DATA-3.8
  Scenario: each member of a batch has a sequence identifier of its own
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 10 messages, 20 ms |
    And a queue consumer on the topic with subscription "s"
    When the producer starts to send 4 messages with 1 key
    And the queue consumer receives and acknowledges 4 messages
    Then the received messages have 4 different sequence identifiers

  @id:message-producer-name @DATA-3.9
  Scenario: a message tells the name of its producer
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | name | ledger-writer |
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message
    And the queue consumer receives and acknowledges 1 message
    Then the last message's producer name begins with "ledger-writer"

  @id:message-publish-time @DATA-3.6
  Scenario: messages tell when they were published
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 2 messages without keys
    And the queue consumer receives and acknowledges 2 messages
    Then the received messages have publish times that do not decrease

  @id:message-size-compressed @DATA-3.12
  Scenario Outline: the size is that before compression: <case>
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | compression | <case> |
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message with
      | value | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | value | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa |
      | size  | 64                                                               |

    Examples:
      | case   |
      | lz4    |
      | zlib   |
      | zstd   |
      | snappy |

  @id:message-delayed @API-3.2.6 @needs-virtual-time
  Scenario: a delivery delay keeps a message back
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends a message with
      | deliver after | 60000 ms |
    Then a receive from the queue consumer gives nothing within 50000 ms
    When the queue consumer receives and acknowledges 1 message
    Then every message was received exactly once

  @id:message-deliver-at @API-3.2.7
  Scenario: a delivery time is published with the message
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends a message with
      | deliver at | 4102444800000 |
    Then the stored entry carries
      | deliver at | 4102444800000 |

  @id:message-flush @API-3.3.1 @needs-faults
  Scenario: flush waits for every send before it
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the next 1 SEND on the topic is held
    When the producer starts to send 1 message with 1 key
    And 1 frame is held
    And the application starts to flush the producer
    Then the flush that was started is still waiting
    When the held frames are released
    And the flush that was started has ended
    Then it succeeds
    And every send succeeds

  @id:message-replicated-from @DATA-3.13 @needs-control
  Scenario: a message tells from which cluster it was replicated
    Given a scalable topic with 1 segment
    And a queue consumer on the topic with subscription "s"
    When a message that was replicated from "west" is stored in the topic
    And the queue consumer receives 1 message
    Then the last message has
      | replicated from | west |

  @id:producer-properties @API-3.1.9 @needs-journal
  Scenario: properties of a producer reach the broker
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | property team  | blue   |
      | property stage | beta 2 |
    When the producer sends 4 messages without keys
    Then every producer of the topic was opened with
      | team  | blue   |
      | stage | beta 2 |

  @id:three-consumers @API-4.1
  Scenario: stream, queue and checkpoint consumers read one topic, each in its own way
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "q"
    And a stream consumer on the topic with subscription "s"
    And checkpoint consumer "reader" on the topic from earliest
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    Then every message came to the stream consumers exactly once
    When checkpoint consumer "reader" receives 6 messages
    Then checkpoint consumer "reader" received every message exactly once
    When the queue consumer receives and acknowledges 6 messages
    Then a receive from the queue consumer gives nothing within 500 ms

  @id:receive-several @API-4.5
  Scenario: several messages are received at once, no more than asked for and no longer than allowed
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 7 messages without keys
    Then a receive from the queue consumer gives 4 of up to 4 messages within 5000 ms
    And a receive from the queue consumer gives 3 of up to 8 messages within 500 ms
    And every message was received exactly once
