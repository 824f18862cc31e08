@C7
Feature: Stream consumer
  A stream consumer registers with the topic's controller, reads the segments that it is assigned as one stream in the
  order of each key, and acknowledges cumulatively across all of them.

  # ---- order, position, acknowledgement ----

  @id:C7-order @API-4.1.5 @IMPL-5.12
  Scenario: the messages of each key come in order, out of all segments
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 24 messages with 6 keys
    And the stream consumer receives and acknowledges 24 messages
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-order-in-batches @API-4.1.5
  Scenario: the messages of each key come in order out of batches
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    And a stream consumer on the topic with subscription "s"
    When the producer starts to send 40 messages with 4 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    When the stream consumer receives and acknowledges 40 messages
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-many-permits @IMPL-5.12 @needs-virtual-time
  Scenario: more messages than the consumer may hold at a time
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | batching | off |
    And a stream consumer on the topic with
      | subscription   | s |
      | receiver queue | 5 |
    When the producer starts to send 60 messages with 10 keys
    And the stream consumer receives and acknowledges 60 messages
    Then every message came to the stream consumers exactly once

  @id:C7-position-vector @IMPL-6.1 @API-4.1.6 @needs-journal
  Scenario: one acknowledgement advances every segment
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 16 messages with 16 keys
    And the stream consumer receives 16 messages
    And the stream consumer acknowledges its last message
    Then the messages of the stream consumer came from 4 segments
    And the brokers were told of exactly what the stream consumer received up to message number 16

  @id:C7-position-at-delivery @IMPL-6.2 @IMPL-6.3 @needs-journal
  Scenario: an acknowledgement covers what had come before its message, and nothing that came later
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 16 messages with 16 keys
    And the stream consumer receives 16 messages
    And the stream consumer acknowledges message number 7 of those it received
    Then the messages of the stream consumer came from 4 segments
    And the brokers were told of exactly what the stream consumer received up to message number 7

  @id:C7-ack-goes-up-to @IMPL-6.3 @API-4.1.6
  Scenario: a later consumer goes on behind the acknowledged message
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 12 messages with 12 keys
    And the stream consumer receives 12 messages
    And the stream consumer acknowledges message number 5 of those it received
    And the application closes the stream consumer
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-ack-in-batch @IMPL-6.3 @API-4.1.6
  Scenario: an acknowledgement in the middle of a batch leaves the rest of the batch
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    And a stream consumer on the topic with subscription "s"
    When the producer starts to send 8 messages with 1 key
    Then some entry of the topic holds several messages
    When the stream consumer receives 8 messages
    And the stream consumer acknowledges message number 3 of those it received
    And the application closes the stream consumer
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-cursor @API-4.1.8
  Scenario: a later consumer goes on at the position that the broker keeps
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    And the application closes the stream consumer
    And the producer sends 6 messages with 6 keys
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-durable @API-4.1.8 @needs-journal
  Scenario: the position is a durable one
    Given a scalable topic with 2 segments
    And a stream consumer on the topic with subscription "s"
    Then every subscription of the stream consumer carries
      | durable | yes |

  @id:C7-earliest @API-4.1.9
  Scenario: a new subscription starts at the oldest message where that is configured
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages with 6 keys
    When the application subscribes the stream consumer on the topic with
      | subscription     | s        |
      | initial position | earliest |
    And the stream consumer receives and acknowledges 6 messages
    Then every message came to the stream consumers exactly once

  @id:C7-latest @API-4.1.9
  Scenario: a new subscription starts behind the newest message where that is configured
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages with 6 keys
    When the application subscribes the stream consumer on the topic with
      | subscription     | s      |
      | initial position | latest |
    Then a receive from the stream consumer gives nothing within 500 ms

  @id:C7-position-of-old-subscription @API-4.1.3
  Scenario: the initial position does not move a subscription that exists
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 6 messages
    And the stream consumer acknowledges message number 2 of those it received
    And the application closes the stream consumer
    And the application subscribes stream consumer "later" on the topic with
      | subscription     | s      |
      | initial position | latest |
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-to-nothing @API-4.1.1
  Scenario: a subscribe to neither a topic nor a namespace is refused
    When the application tries to subscribe a stream consumer to nothing
    Then the subscribe to nothing is refused

  @id:C7-no-subscription @API-4.1.2
  Scenario: a subscribe without a subscription name is refused
    Given a scalable topic with 1 segment
    When the application tries to subscribe the stream consumer on the topic with
      | initial position | earliest |
    Then the subscribe without a subscription name is refused

  @id:C7-options @API-4.1.4 @needs-journal
  Scenario: what the application configures is in every SUBSCRIBE
    Given a scalable topic with 2 segments
    When the application subscribes the stream consumer on the topic with
      | subscription    | s    |
      | property team   | blue |
      | read compacted  | yes  |
      | replicate state | yes  |
      | ack group time  | 50   |
    Then every subscription of the stream consumer carries
      | property team   | blue |
      | read compacted  | yes  |
      | replicate state | yes  |

  # ---- the controller ----

  @id:C7-controller-of-layout @IMPL-8.1 @IMPL-8.2 @IMPL-8.4 @needs-control @needs-journal
  Scenario: the consumer registers at the controller that the layout names
    Given a scalable topic with 2 segments
    And the controller of the topic is not on the broker of the service URL
    When the application subscribes the stream consumer on the topic with subscription "s"
    Then the stream consumer registered where the layout says that the controller is
    And the stream consumer needed no classic lookup to register

  @id:C7-attaches-assigned @IMPL-8.5 @IMPL-5.9 @needs-journal
  Scenario: each of two consumers attaches to what it is assigned, and to nothing else
    Given a scalable topic with 4 segments
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When stream consumer "a" is assigned segments 0, 2
    And stream consumer "b" is assigned segments 1, 3
    Then stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned

  @id:C7-share-load @API-4.1.10 @IMPL-8.4 @needs-journal
  Scenario: the consumers of a subscription share the topic
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When stream consumer "a" is assigned segment 0
    And stream consumer "b" is assigned segment 1
    And the producer sends 16 messages with 16 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And each stream consumer received a part of the messages

  @id:C7-answers-cross @WIRE-6.2.6 @needs-faults @needs-journal
  Scenario: the answer to a later registration comes before that to an earlier one
    Given a scalable topic with 2 segments
    And the fault
      """
      when:
        command: SCALABLE_TOPIC_SUBSCRIBE_RESPONSE
        direction: to_client
      effect: hold
      """
    When the application starts to subscribe stream consumer "a" on the topic with subscription "s"
    And 1 frame is held
    And the application subscribes stream consumer "b" on the topic with subscription "t"
    And the held frames are released
    And the subscribe of stream consumer "a" has ended
    Then stream consumer "a" is attached to segments 0, 1
    And stream consumer "b" is attached to segments 0, 1

  @id:C7-consumer-ids @WIRE-6.2.5 @needs-control @needs-journal
  Scenario: two consumers of one connection get each its own assignments
    Given a scalable topic with 2 segments
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "t"
    Then the registrations of one connection have different consumer ids
    When stream consumer "a" is assigned segments 0, 1
    And an assignment without segment 1 is pushed to stream consumer "a"
    Then stream consumer "a" is attached to segment 0
    And stream consumer "b" is attached to segments 0, 1

  @id:C7-join @IMPL-8.7 @API-4.1.10 @needs-journal
  Scenario: a consumer that joins takes over a part, one that leaves gives it back
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When stream consumer "a" is assigned segments 0, 1
    Then stream consumer "a" is attached to exactly what it is assigned
    When the application subscribes stream consumer "b" on the topic with subscription "s"
    And stream consumer "a" is assigned segment 0
    Then stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to segment 1
    When the application closes stream consumer "b"
    And stream consumer "a" is assigned segments 0, 1
    Then stream consumer "a" is attached to exactly what it is assigned
    When the producer sends 8 messages with 8 keys
    And stream consumer "a" receives and acknowledges 8 messages
    Then every message came to the stream consumers exactly once

  @id:C7-busy @API-4.1.10 @IMPL-8.5 @needs-journal
  Scenario: a consumer waits for a segment that its former owner still drains
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 12 messages with 12 keys
    And stream consumer "a" receives 12 messages
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    Then a segment was still another consumer's when it was subscribed
    When stream consumer "a" acknowledges its last message
    And the subscribe of stream consumer "b" has ended
    Then stream consumer "b" is attached to segment 1
    And segment 1 of the topic had one exclusive consumer at a time
    When the producer sends 12 messages with 12 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-leave @IMPL-8.16 @needs-control @needs-journal
  Scenario: a consumer that closes leaves the group at once, on a connection that others use
    Given a scalable topic with 2 segments
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When stream consumer "a" is assigned segment 0
    And the application closes stream consumer "b"
    Then stream consumer "b" has left the controller
    And stream consumer "b" is out of the group while its connection stays open
    And stream consumer "a" is assigned segments 0, 1
    And nothing of stream consumer "b" is open any more

  @id:C7-leave-refused @IMPL-8.17 @needs-faults @needs-journal
  Scenario: the close succeeds although the controller refuses to let go
    Given a scalable topic with 2 segments
    And a stream consumer on the topic with subscription "s"
    And the next 1 SCALABLE_TOPIC_UNSUBSCRIBE is answered with UnknownError
    When the application closes the stream consumer
    Then nothing of the stream consumer is open any more

  @id:C7-close-acks-nothing @IMPL-6.8 @needs-journal
  Scenario: a close acknowledges nothing
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 8 messages with 8 keys
    And the stream consumer receives 8 messages
    And the stream consumer acknowledges message number 3 of those it received
    And the journal is marked
    And the application closes the stream consumer
    Then the stream consumer has acknowledged nothing since the mark
    When the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  # ---- assignments ----

  @id:C7-stale-assignment @IMPL-8.9 @needs-control @needs-journal
  Scenario: an assignment of an older layout changes nothing
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    # The key is of segment 0. While its message is not acknowledged, the children are not handed out.
    When the producer sends a message with key "key-3"
    And segment 0 of the topic is split
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    And stream consumer "a" is assigned segment 0
    Then stream consumer "a" is attached to exactly what it is assigned
    When the journal is marked
    And the first assignment of stream consumer "a" is pushed again
    Then stream consumer "a" is attached to segment 0
    And stream consumer "a" has subscribed to no segment since the mark

  @id:C7-equal-assignment @IMPL-8.9 @needs-control @needs-journal
  Scenario: an assignment at the epoch of the last one is applied
    Given a scalable topic with 3 segments
    And a stream consumer on the topic with subscription "s"
    When the stream consumer is assigned segments 0, 1, 2
    And an assignment without segment 1 is pushed to the stream consumer
    Then the stream consumer is attached to segments 0, 2
    When the controller's assignment is pushed to the stream consumer
    Then the stream consumer is attached to segments 0, 1, 2

  @id:C7-unchanged @IMPL-8.10 @needs-control @needs-journal
  Scenario: an assignment that changes nothing disturbs nothing
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 4 messages with 4 keys
    And the stream consumer receives 4 messages
    And the journal is marked
    And the assignment of the stream consumer is pushed again
    Then the stream consumer has subscribed to no segment since the mark
    When the stream consumer acknowledges its last message
    And the producer sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 4 messages
    Then every message came to the stream consumers exactly once

  @id:C7-unchanged-among-changed @IMPL-8.10 @needs-journal
  Scenario: a segment that stays is left alone while another goes
    Given a scalable topic with 2 segments
    And stream consumer "a" on the topic with subscription "s"
    When stream consumer "a" is assigned segments 0, 1
    Then stream consumer "a" is attached to segments 0, 1
    When the journal is marked
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    Then stream consumer "a" is attached to segment 0
    And stream consumer "a" has subscribed to no segment since the mark

  # ---- drain of a segment that leaves the assignment ----

  @id:C7-drain-on-drop @IMPL-8.12 @needs-control @needs-journal
  Scenario: a segment that leaves the assignment is kept until all that it gave is acknowledged
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 12 messages with 12 keys
    And the stream consumer receives 12 messages
    And the journal is marked
    And an assignment without segment 1 is pushed to the stream consumer
    Then the stream consumer has not let go of segment 1 since the mark
    When the stream consumer acknowledges its last message
    Then an acknowledgement went to segment 1 of the stream consumer since the mark
    And the stream consumer has let go of segment 1 since the mark
    And the stream consumer is attached to segment 0

  @id:C7-drain-part @IMPL-8.12 @needs-control @needs-journal
  Scenario: a drain does not end with a part of the acknowledgements
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 12 messages with 12 keys
    And the stream consumer receives 12 messages
    And the journal is marked
    And an assignment without segment 1 is pushed to the stream consumer
    And the stream consumer acknowledges message number 1 of those it received
    Then the stream consumer has not let go of segment 1 since the mark
    When the stream consumer acknowledges its last message
    Then the stream consumer has let go of segment 1 since the mark

  @id:C7-drain-accepted @IMPL-8.12 @needs-control @needs-journal
  Scenario: what is acknowledged in a drain is not delivered to whoever has the segment next
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 6 messages
    And the journal is marked
    And an assignment without segment 0 is pushed to the stream consumer
    And the stream consumer acknowledges its last message
    Then the stream consumer has let go of segment 0 since the mark
    When the journal is marked
    And the controller's assignment is pushed to the stream consumer
    Then the stream consumer is attached to segment 0
    And no message of segment 0 went to the stream consumer since the mark

  @id:C7-drain-stops-delivery @IMPL-8.11 @needs-control @needs-journal
  Scenario: nothing more is delivered from a segment that is being drained
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 2 messages with 2 keys
    And the stream consumer receives 2 messages
    And an assignment without segment 0 is pushed to the stream consumer
    And the journal is marked
    And the producer sends 2 messages with 2 keys
    Then messages of segment 0 went to the stream consumer since the mark
    And a receive from the stream consumer gives nothing within 300 ms

  @id:C7-drain-withdraws @IMPL-8.11 @needs-control @needs-journal
  Scenario: what waits in the client when the drain begins comes in it or after it, once and in order
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 2 messages
    And the journal is marked
    And an assignment without segment 0 is pushed to the stream consumer
    And the stream consumer receives and acknowledges what still comes
    Then the stream consumer has let go of segment 0 since the mark
    When the controller's assignment is pushed to the stream consumer
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-drain-fences-receive @IMPL-8.11 @needs-control @needs-journal
  Scenario: a receive that is under way gets nothing of a segment that is being drained
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 1 message with 1 key
    And the stream consumer receives 1 message
    And the application starts to receive from the stream consumer
    And an assignment without segment 0 is pushed to the stream consumer
    And the journal is marked
    And the producer sends 2 messages with 2 keys
    Then messages of segment 0 went to the stream consumer since the mark
    And the receive from the stream consumer is still waiting

  @id:C7-close-while-draining @IMPL-8.16 @IMPL-6.8 @needs-control @needs-journal
  Scenario: a close also closes what is being drained, and acknowledges nothing of it
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 12 messages with 12 keys
    And the stream consumer receives 12 messages
    And the journal is marked
    And an assignment without segment 1 is pushed to the stream consumer
    Then the stream consumer has not let go of segment 1 since the mark
    When the application closes the stream consumer
    Then nothing of the stream consumer is open any more
    And the stream consumer has acknowledged nothing since the mark
    When the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-late-ack @API-4.1.6 @needs-faults @needs-journal
  Scenario: an acknowledgement of what came before a lost connection counts
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 8 messages with 8 keys
    And the stream consumer receives 8 messages
    And the journal is marked
    And all connections are lost
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer is attached to exactly what it is assigned
    When the stream consumer acknowledges its last message
    And the application closes the stream consumer
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-late-ack-in-drain @API-4.1.6 @needs-control @needs-faults @needs-journal
  Scenario: an acknowledgement of what came before a lost connection counts although the segment is drained since
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 6 messages
    And the journal is marked
    And all connections are lost
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer is attached to segment 0
    And messages of segment 0 went to the stream consumer since the mark
    When the journal is marked
    And an assignment without segment 0 is pushed to the stream consumer
    And the stream consumer acknowledges its last message
    Then the stream consumer has let go of segment 0 since the mark
    When the journal is marked
    And the controller's assignment is pushed to the stream consumer
    Then the stream consumer is attached to segment 0
    And no message of segment 0 went to the stream consumer since the mark

  # ---- children after parents ----

  @id:C7-split @API-4.1.11 @IMPL-8.7 @needs-virtual-time @needs-journal
  Scenario: the children of a split are read when the parent is acknowledged
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 3 keys
    And segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And the stream consumer receives 6 messages
    And 5 s pass
    Then the stream consumer is attached to segment 0
    And a receive from the stream consumer gives nothing within 2000 ms
    When the stream consumer acknowledges its last message
    And the stream consumer is assigned segments 1, 2
    And the stream consumer receives and acknowledges 6 messages
    Then the stream consumer is attached to exactly what it is assigned
    And every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-two-generations @IMPL-8.5 @API-4.1.11 @needs-virtual-time @needs-journal
  Scenario: across two generations nothing of a child comes before its grandparent is read
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And segment 1 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the application subscribes stream consumer "a" on the topic with subscription "s"
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned

  @id:C7-merge @API-4.1.11 @needs-virtual-time
  Scenario: the order of each key survives a merge while two consumers read
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When the producer sends 16 messages with 8 keys
    And segments 0 and 1 of the topic are merged
    And the producer sends 16 messages with 8 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:C7-join-leave-order @API-4.1.11 @API-4.1.10
  Scenario: the order of each key survives a join and a leave
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 12 messages with 6 keys
    And stream consumer "a" receives 5 messages
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And stream consumer "a" receives and acknowledges what still comes
    And the subscribe of stream consumer "b" has ended
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    And the application closes stream consumer "a"
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages

  # ---- loss and failover ----

  @id:C7-reconnect @IMPL-8.13 @API-4.1.8 @needs-faults @needs-journal
  Scenario: after a lost connection the consumer registers again as itself and goes on
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    And the journal is marked
    And all connections are lost
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer looked the topic up before it registered again
    And the stream consumer is attached to exactly what it is assigned
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    Then every message came to the stream consumers exactly once

  @id:C7-refused-registration @IMPL-8.13 @needs-faults @needs-journal
  Scenario: when the registration after a lost connection is refused, the controller is looked up anew
    Given a scalable topic with 2 segments
    And a stream consumer on the topic with subscription "s"
    When the journal is marked
    And the next 1 SCALABLE_TOPIC_SUBSCRIBE on the topic is answered with UnknownError
    And all connections are lost
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer looked the topic up before it registered again
    And the stream consumer is attached to segments 0, 1

  @id:C7-within-grace @IMPL-8.13 @needs-faults @needs-virtual-time @needs-journal
  Scenario: within the grace period both consumers get back what they had
    Given a scalable topic with 2 segments
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" of client "two" on the topic with subscription "s"
    When stream consumer "a" is assigned segment 0
    And stream consumer "b" is assigned segment 1
    And the journal is marked
    And all connections are lost
    Then stream consumer "a" has registered again under its name since the mark
    And stream consumer "b" has registered again under its name since the mark
    And stream consumer "a" got back segment 0 and nothing else since the mark
    And stream consumer "b" got back segment 1 and nothing else since the mark

  @id:C7-controller-lost-only @IMPL-8.10 @IMPL-8.13 @needs-control @needs-journal
  Scenario: an assignment that comes back unchanged after a failover of the controller disturbs no segment
    Given a scalable topic with 2 segments
    And a stream consumer on the topic with subscription "s"
    When the journal is marked
    And the controller of the topic moves to another broker at the same epoch
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer has subscribed to no segment since the mark

  @id:C7-past-grace @IMPL-8.15 @needs-faults @needs-virtual-time @needs-journal
  Scenario: past the grace period the consumer applies what was rebalanced meanwhile
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" of client "two" on the topic with subscription "s"
    When stream consumer "b" is assigned segment 1
    And the journal is marked
    And the registration of stream consumer "b" is kept away for 70 s
    Then stream consumer "a" is assigned segments 0, 1
    When the registration of stream consumer "b" may come again
    Then stream consumer "b" has registered again under its name since the mark
    When stream consumer "a" is assigned segment 0
    Then stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned

  @id:C7-controller-moved @IMPL-8.13 @IMPL-8.1 @needs-control @needs-journal
  Scenario: a layout of the same epoch that names another controller is followed
    Given a scalable topic with 2 segments
    And the controller of the topic is on the broker of the service URL
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the journal is marked
    And the controller of the topic moves to another broker at the same epoch
    Then the stream consumer is registered at the newest controller
    When the controller of the topic moves to another broker at the same epoch
    Then the stream consumer is registered at the newest controller
    And the stream consumer has registered again under its name since the mark
    When segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 4 messages
    Then every message came to the stream consumers exactly once

  @id:C7-controller-dies @IMPL-8.13 @API-4.1.8 @needs-control @needs-journal
  Scenario: the consumer follows the controller when its broker dies
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    And the controller of the topic moves to another broker at the same epoch
    Then the stream consumer is registered at the newest controller
    When the journal is marked
    And the broker of the controller of the topic dies
    Then the stream consumer has registered again under its name since the mark
    And the stream consumer is registered at the newest controller
    And the stream consumer is attached to segments 0, 1, 2
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    Then every message came to the stream consumers exactly once

  @id:C7-segment-moved @IMPL-8.5 @needs-control @needs-journal
  Scenario: a segment that moves to another broker is attached to there
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 4 messages
    And the journal is marked
    And segment 0 of the topic moves to another broker
    Then the stream consumer is attached to segments 0, 1
    And the stream consumer has subscribed to segment 0 alone since the mark
    And the stream consumer has segment 0 at the broker that the newest layout names
    When the producer sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 4 messages
    Then every message came to the stream consumers exactly once

  @id:C7-segment-broker-dies @API-2.8 @C14 @needs-control @needs-journal
  Scenario: the segments of a broker that dies are read at another one, and the others are left alone
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives and acknowledges 6 messages
    And a broker of segments of the topic dies that is not its controller's
    And the producer sends 6 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then the stream consumer is attached to segments 0, 1, 2
    And the segments of the topic are attached to at their newest brokers
    And every message came to the stream consumers
    And the messages of each key came in the order of their sends

  @id:C7-segment-broker-dies-unacknowledged @API-2.8 @API-4.1.6 @C14 @needs-control @needs-journal
  Scenario: an acknowledgement of what came from a broker that died since counts at the next one
    Given a scalable topic with 3 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 9 messages with 9 keys
    And the stream consumer receives 9 messages
    And a broker of segments of the topic dies that is not its controller's
    Then the stream consumer is attached to segments 0, 1, 2
    And the segments of the topic are attached to at their newest brokers
    When the stream consumer acknowledges its last message
    And the application closes the stream consumer
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:C7-cut-off-past-grace @IMPL-8.15 @IMPL-8.13 @needs-faults @needs-virtual-time @needs-journal
  Scenario: a consumer that was cut off past the grace period loses its segments, and comes back to a fresh assignment
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 8 messages with 8 keys
    And stream consumer "a" receives and acknowledges 8 messages
    And the journal is marked
    And the application subscribes stream consumer "b" of client "two" on the topic with subscription "s"
    And stream consumer "b" is assigned segment 1
    And the producer sends 8 messages with 8 keys
    And the connections since the mark are cut off for 70 s
    Then stream consumer "a" is assigned segments 0, 1
    When the stream consumers receive and acknowledge everything
    Then stream consumer "a" is attached to exactly what it is assigned
    When the journal is marked
    And connections may be made again
    Then stream consumer "b" has registered again under its name since the mark
    And stream consumer "a" is assigned segment 0
    And stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned
    When the producer sends 8 messages with 8 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages
