@dead-letter
Feature: Dead letters of a queue consumer
  A message that came again as often as the dead-letter policy permits is not delivered once more: it goes to the
  dead-letter topic, and is acknowledged when that topic has it. How often it came is what the broker says.

  @id:DLQ-limit @API-4.2.8 @ERR-5.3 @CONF-3.8
  Scenario: a message that would come more often than the policy permits goes to the dead-letter topic, without an error
    Given a scalable topic with 2 segments
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 2    |
      | dead-letter topic | dead |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 3 messages
    Then topic "dead" gets message 1 of those sent
    And the last message has redelivery count 2
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-zero @ERR-5.3 @CONF-3.8
  Scenario: a policy that permits no redelivery sends a message away at the first one
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-acknowledged @API-4.2.8 @CONF-3.8
  Scenario: what the dead-letter topic has is acknowledged
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 1    |
      | dead-letter topic | dead |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 2 messages
    Then topic "dead" gets message 1 of those sent
    When the application closes the queue consumer
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    Then a receive from queue consumer "later" gives nothing within 500 ms

  @id:DLQ-others-stay @ERR-5.3 @CONF-3.8
  Scenario: messages that came less often stay on the subscription
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic with
      | batching | off |
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends 3 messages without keys
    And the queue consumer receives 3 messages
    And the queue consumer negatively acknowledges message number 2 of those it received
    Then topic "dead" gets message 2 of those sent
    When the application closes the queue consumer
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    And queue consumer "later" receives and acknowledges 2 messages
    Then a receive from queue consumer "later" gives nothing within 500 ms

  @id:DLQ-batch @API-4.2.5 @ERR-5.3
  Scenario: of a batch only the message goes that was rejected too often
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic with
      | batching | 10 messages, 20 ms |
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 1    |
      | dead-letter topic | dead |
    When the producer starts to send 4 messages with 1 key
    Then some entry of the topic holds several messages
    When the queue consumer receives 4 messages
    And the queue consumer acknowledges message number 1 of those it received
    And the queue consumer negatively acknowledges message number 2 of those it received
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 2 of those sent

  @id:DLQ-content @ERR-5.3 @CONF-3.8
  Scenario: the message in the dead-letter topic is the one that came too often
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message with
      | key             | naïve         |
      | property colour | red           |
      | property size   | 17            |
      | event time      | 1700000000123 |
    And the queue consumer receives and negatively acknowledges 1 message
    Then the message in topic "dead" is as it was sent

  @id:DLQ-origin @API-4.2.8
  Scenario: what a dead letter says of its origin is true
    Given a scalable topic with 2 segments
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    Then what the message in topic "dead" says of its origin is true

  @id:DLQ-default-topic @API-4.2.8 @ERR-5.3 @CONF-3.8
  Scenario: a policy that names no topic has one of its own
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription     | s |
      | max redeliveries | 0 |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    Then the message is in a dead-letter topic called after the topic

  @id:DLQ-creates-topic @ERR-5.3 @CONF-3.8
  Scenario: a dead-letter topic that does not exist is made when it is needed
    Given a scalable topic with 1 segment
    And the name of an absent topic "dead", in a namespace that permits auto-creation
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent

  @id:DLQ-no-policy @API-4.2.5 @API-4.2.8
  Scenario: without a policy a message comes again each time
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription     | s      |
      | redelivery delay | 100 ms |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 6 messages
    And the queue consumer receives and acknowledges 1 message
    Then the last message has redelivery count 6

  @id:DLQ-many @API-4.2.8 @ERR-5.3 @CONF-3.8
  Scenario: every message that came too often is in the dead-letter topic once, where its key belongs
    Given a scalable topic with 4 segments
    And a scalable topic "dead" with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 1    |
      | dead-letter topic | dead |
    When the producer sends 8 messages with 8 keys
    And the queue consumer receives and negatively acknowledges 16 messages
    Then topic "dead" gets messages 1, 2, 3, 4, 5, 6, 7, 8 of those sent
    And every keyed message of topic "dead" is in a segment whose range holds the high half of its key
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-split @ERR-5.3 @CONF-3.8
  Scenario: messages of a segment that was split go to the dead-letter topic as well, with the count that they had
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 2    |
      | dead-letter topic | dead |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    And segment 0 of the topic is split
    And the queue consumer receives and negatively acknowledges 2 messages
    Then topic "dead" gets message 1 of those sent
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 3 messages
    Then topic "dead" gets messages 1, 2 of those sent
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-merge @ERR-5.3 @CONF-3.8
  Scenario: messages of segments that were merged go to the dead-letter topic as well, with the count that they had
    Given a scalable topic with 2 segments
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 2    |
      | dead-letter topic | dead |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    And segments 0 and 1 of the topic are merged
    And the queue consumer receives and negatively acknowledges 2 messages
    Then topic "dead" gets message 1 of those sent
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 3 messages
    Then topic "dead" gets messages 1, 2 of those sent
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-topic-split @ERR-5.3 @CONF-3.8
  Scenario: the dead-letter topic may be split and merged
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent
    When segment 0 of topic "dead" is split
    And the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets messages 1, 2 of those sent
    When segments 1 and 2 of topic "dead" are merged
    And the producer sends a message with key "k"
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets messages 1, 2, 3 of those sent

  @id:DLQ-hand-over @ERR-5.3 @CONF-3.8
  Scenario: how often a message came counts for the consumer that it comes to next
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And queue consumer "a" on the topic with
      | subscription      | s    |
      | max redeliveries  | 2    |
      | dead-letter topic | dead |
    When the producer sends a message
    And queue consumer "a" receives and negatively acknowledges 2 messages
    And queue consumer "a" receives 1 message
    And the application subscribes queue consumer "b" on the topic with
      | subscription      | s    |
      | max redeliveries  | 2    |
      | dead-letter topic | dead |
    And the application closes queue consumer "a"
    And queue consumer "b" receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent
    And the last message has redelivery count 2
    And a receive from queue consumer "b" gives nothing within 1000 ms

  @id:DLQ-acknowledged-after @ERR-5.3 @CONF-3.8 @needs-faults @needs-journal
  Scenario: a message is acknowledged only when the dead-letter topic has it
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    And the next 1 SEND on topic "dead" is held
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    And 1 frame is held
    Then nothing of the topic is acknowledged yet
    When the held frames are released
    Then topic "dead" gets message 1 of those sent

  @id:DLQ-connection-lost @ERR-5.3 @CONF-3.8 @needs-faults
  Scenario: a connection that breaks as a dead letter is sent loses nothing
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    And the connection breaks at the next SEND on topic "dead"
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent

  @id:DLQ-refused-once @ERR-5.3 @CONF-3.8 @needs-faults
  Scenario: a message whose way to the dead-letter topic was refused comes again and gets there
    Given a scalable topic with 1 segment
    And a scalable topic "dead" with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    And the next 1 PRODUCER on topic "dead" is answered with AuthorizationError
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then topic "dead" gets message 1 of those sent
    And a receive from the queue consumer gives nothing within 1000 ms

  @id:DLQ-unwritable-kept @ERR-5.3 @CONF-3.8
  Scenario: a message that the dead-letter topic cannot take stays on the subscription
    Given a scalable topic with 1 segment
    And the name of an absent topic "dead", in a namespace that forbids auto-creation
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then a receive from the queue consumer gives nothing within 1000 ms
    When the application closes the queue consumer
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    And queue consumer "later" receives and acknowledges 1 message
    Then the last message is message number 1 of those the queue consumer received

  @id:DLQ-unwritable-for-a-while @ERR-5.3 @CONF-3.8
  Scenario: a dead-letter topic that can be written later has the message then, and the consumer goes on meanwhile
    Given a scalable topic with 1 segment
    And the name of an absent topic "dead", in a namespace that forbids auto-creation
    And a producer on the topic
    And a queue consumer on the topic with
      | subscription      | s    |
      | max redeliveries  | 0    |
      | dead-letter topic | dead |
    When the producer sends a message
    And the queue consumer receives and negatively acknowledges 1 message
    Then a receive from the queue consumer gives nothing within 1000 ms
    When the producer sends a message
    And the queue consumer receives and acknowledges 1 message
    And topic "dead" is created with 1 segment
    Then topic "dead" gets message 1 of those sent
    And a receive from the queue consumer gives nothing within 1000 ms
