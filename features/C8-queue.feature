@C8
Feature: Queue consumer
  A queue consumer reads every segment as one stream, shares the messages with its peers, and acknowledges each by
  itself.

  @id:C8-receive @API-4.3 @IMPL-5.1
  Scenario: messages of all segments come from one consumer
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 12 messages without keys
    And the queue consumer receives and acknowledges 12 messages
    Then every message was received exactly once

  @id:C8-receive-waits @API-4.3
  Scenario: receive waits until a message is there
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the application starts to receive from the queue consumer
    Then the receive that was started is still waiting
    When the producer sends a message
    And the receive that was started has ended
    Then every message was received exactly once

  @id:C8-receive-timeout @API-4.4
  Scenario: receive with a timeout gives nothing when the time is over
    Given a scalable topic with 2 segments
    And a queue consumer on the topic with subscription "s"
    Then a receive from the queue consumer gives nothing within 200 ms

  @id:C8-many-permits @IMPL-5.1 @needs-virtual-time
  Scenario: more messages than the consumer may hold at a time
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | batching | off |
    And a queue consumer on the topic with
      | subscription   | s |
      | receiver queue | 5 |
    When the producer starts to send 60 messages
    And the queue consumer receives and acknowledges 60 messages
    Then every message was received exactly once

  @id:C8-shared @API-4.2.1
  Scenario: two consumers of a subscription share the messages
    Given a scalable topic with 2 segments
    And a producer on the topic
    And queue consumer "a" on the topic with
      | subscription   | s |
      | receiver queue | 3 |
    And queue consumer "b" on the topic with
      | subscription   | s |
      | receiver queue | 3 |
    When the producer sends 12 messages without keys
    And queue consumer "a" receives 3 messages
    And queue consumer "b" receives 3 messages
    And queue consumer "a" acknowledges everything it received
    And queue consumer "b" acknowledges everything it received
    Then each consumer received a part of the messages
    And no message was received twice

  @id:C8-subscribes-shared @IMPL-5.2 @IMPL-5.3 @WIRE-6.1.1 @API-4.2.3 @needs-journal
  Scenario: every active and every sealed segment is subscribed Shared, without a controller
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And the application subscribes the queue consumer on the topic with subscription "s"
    Then the subscription reads segments 0, 1, 2 of the topic
    And every subscription of the topic is Shared
    And no subscription of the topic declares keys
    And the client sent no SCALABLE_TOPIC_SUBSCRIBE
    When the queue consumer receives and acknowledges 8 messages
    Then every message was received exactly once

  @id:C8-new-segments @IMPL-5.7
  Scenario: segments that a later layout adds are subscribed
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When segment 0 of the topic is split
    And the producer sends 6 messages with 6 keys
    And the queue consumer receives and acknowledges 6 messages
    Then every message was received exactly once

  @id:C8-ack-routing @IMPL-5.5 @needs-journal
  Scenario: an acknowledgement goes to the segment that its message came from
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 8 messages without keys
    And the queue consumer receives 8 messages
    And the queue consumer acknowledges everything it received
    Then every acknowledgement went to the segment consumer that gave the message

  @id:C8-individual-ack @API-4.2.4
  Scenario: acknowledging one message leaves its neighbours outstanding
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 3 messages without keys
    And the queue consumer receives 3 messages
    And the queue consumer acknowledges message number 3 of those it received
    And the application closes the queue consumer
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    And queue consumer "later" receives and acknowledges 2 messages
    Then a receive from queue consumer "later" gives nothing within 500 ms

  @id:C8-ack-in-batch @API-4.2.4
  Scenario: acknowledging one message of a batch leaves the others outstanding
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 10 messages, 20 ms |
    And a queue consumer on the topic with subscription "s"
    When the producer starts to send 4 messages with 1 key
    Then some entry of the topic holds several messages
    When the queue consumer receives 4 messages
    And the queue consumer acknowledges message number 1 of those it received
    And the application closes the queue consumer
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    And queue consumer "later" receives and acknowledges 3 messages
    Then a receive from queue consumer "later" gives nothing within 500 ms

  @id:C8-gone-segments @IMPL-5.8 @needs-control @needs-faults @needs-journal
  Scenario: the subscription of a segment that left the layout is given up
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 2 messages with 2 keys
    And the next 1 REACHED_END_OF_TOPIC to the client gets lost
    When the queue consumer receives and acknowledges 2 messages
    And segment 0 of the topic is split
    Then the subscription reads segments 0, 1, 2 of the topic
    When a layout of the topic without segment 0 is pushed
    Then the subscription reads segments 1, 2 of the topic

  @id:C8-position-kept @API-4.2.6
  Scenario: a later consumer goes on with what was not acknowledged
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 4 messages without keys
    And the queue consumer receives and acknowledges 4 messages
    And the application closes the queue consumer
    And the producer sends 4 messages without keys
    And the application subscribes queue consumer "later" on the topic with subscription "s"
    And queue consumer "later" receives and acknowledges 4 messages
    Then every message was received exactly once
    And a receive from queue consumer "later" gives nothing within 500 ms

  @id:C8-nack @API-4.2.5 @ERR-5.2 @DATA-3.11
  Scenario: a negative acknowledgement brings that message again, with a higher count
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 4 messages without keys
    And the queue consumer receives 4 messages
    And the queue consumer negatively acknowledges message number 2 of those it received
    And the queue consumer receives 1 message
    Then the last message is message number 2 of those the queue consumer received
    And the last message has redelivery count 1
    And a receive from the queue consumer gives nothing within 500 ms

  @id:C8-nack-routing @IMPL-5.6 @needs-journal
  Scenario: a negative acknowledgement goes to the segment that its message came from
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 6 messages without keys
    And the queue consumer receives 6 messages
    And the queue consumer negatively acknowledges message number 1 of those it received
    And the queue consumer negatively acknowledges message number 2 of those it received
    And the queue consumer negatively acknowledges message number 3 of those it received
    And the queue consumer receives 3 messages
    Then redelivery was asked of the segment consumer that gave the message
