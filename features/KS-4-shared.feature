@KS-4
Feature: Shared segments
  Where there are more consumers than segments, several share a segment by its entry buckets: they subscribe to it
  Key_Shared, acknowledge one by one, and drain it before its mode changes. The low halves of the hashes of the keys in
  this file are known: key-1 and ключ are in the lower half of the buckets, order-17 and 🔑 in the upper.

  # ---- modes ----

  @id:KS4-sole-owner @KS-4.1 @KS-4.2 @needs-journal
  Scenario: a segment with one owner is subscribed Exclusive
    Given a scalable topic with 2 segments
    And a stream consumer on the topic with subscription "s"
    When segment 0 is given to the stream consumer alone
    Then the stream consumer subscribed every segment in the mode of its assignment

  @id:KS4-shared @KS-4.1 @KS-4.3 @needs-journal
  Scenario: a shared segment is subscribed by the full list of its buckets
    Given a scalable topic with 1 segment
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    Then stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "b" has every segment in the mode of its assignment
    And stream consumer "a" subscribed every segment in the mode of its assignment
    And stream consumer "b" subscribed every segment in the mode of its assignment

  @id:KS4-mixed @KS-4.1 @KS-4.2 @KS-4.3 @needs-journal
  Scenario: one segment is shared while another has one owner
    Given a scalable topic with 2 segments
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    And stream consumer "c" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And segment 1 is given to stream consumer "c" alone
    Then stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "b" has every segment in the mode of its assignment
    And stream consumer "c" has every segment in the mode of its assignment
    And stream consumer "b" subscribed every segment in the mode of its assignment
    And stream consumer "c" subscribed every segment in the mode of its assignment

  @id:KS4-uneven @KS-4.3 @needs-virtual-time @needs-journal
  Scenario: buckets of unequal number are declared as they are given
    Given a scalable topic with 1 segment
    When segment 0 of the topic is rebucketed into 7 buckets
    And the application subscribes stream consumer "a" on the topic with subscription "s"
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    And segment 1 is given to stream consumer "a" and others
    Then stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "b" has every segment in the mode of its assignment
    And stream consumer "b" subscribed every segment in the mode of its assignment

  # ---- acknowledgements ----

  @id:KS4-individual @KS-4.9 @IMPL-6.5 @needs-journal
  Scenario: on a shared segment every message is acknowledged by itself
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When the producer sends 20 messages with 10 keys
    And the stream consumers receive and acknowledge everything
    Then stream consumer "a" acknowledged one by one where it shares the segment
    And stream consumer "b" acknowledged one by one where it shares the segment
    And every message came to the stream consumers exactly once
    And each stream consumer received a part of the messages

  @id:KS4-up-to @IMPL-6.5 @KS-4.9 @needs-journal
  Scenario: an acknowledgement tells the broker of all that the consumer got up to it, and of nothing else
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer sends a message with key "key-1"
    And the producer sends a message with key "order-17"
    And the producer sends a message with key "ключ"
    And the producer sends a message with key "🔑"
    And the producer sends a message with key "key-1"
    And the producer sends a message with key "ключ"
    And stream consumer "a" receives 4 messages
    And stream consumer "a" acknowledges message number 3 of those it received
    Then the brokers were told of exactly what stream consumer "a" received up to message number 3
    And stream consumer "a" acknowledged one by one where it shares the segment
    When stream consumer "b" receives 2 messages
    And the application closes stream consumer "a"
    And the application closes stream consumer "b"
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:KS4-cumulative @KS-4.11 @needs-journal
  Scenario: on a segment with one owner the acknowledgement is cumulative
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 8 messages with 8 keys
    And the stream consumer receives and acknowledges 8 messages
    Then the stream consumer acknowledged cumulatively where it has the segment alone

  @id:KS4-acks-across-modes @KS-4.9 @IMPL-6.5 @needs-control @needs-journal
  Scenario: one acknowledgement covers a shared segment and one with a single owner
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When an assignment is pushed to the stream consumer that shares segment 0
    Then the stream consumer has every segment in the mode of its assignment
    When the producer sends 12 messages with 12 keys
    And the stream consumer receives 12 messages
    And the stream consumer acknowledges message number 9 of those it received
    Then the messages of the stream consumer came from 2 segments
    And the brokers were told of exactly what the stream consumer received up to message number 9
    And the stream consumer acknowledged one by one where it shares the segment

  @id:KS4-ack-after-reconnect @IMPL-6.5 @needs-faults @needs-journal
  Scenario: what came on a shared segment before a lost connection is acknowledged after it
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer sends a message with key "key-1"
    And the producer sends a message with key "ключ"
    And the producer sends a message with key "key-1"
    And stream consumer "a" receives 3 messages
    And the journal is marked
    And all connections are lost
    Then stream consumer "a" has registered again under its name since the mark
    And stream consumer "b" has registered again under its name since the mark
    And stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "b" has every segment in the mode of its assignment
    When stream consumer "a" acknowledges its last message
    And the application closes stream consumer "b"
    And the application closes stream consumer "a"
    And the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  # ---- the drain before a change of mode ----

  @id:KS4-drain @KS-4.13 @KS-9.2 @IMPL-8.8 @KS-9 @needs-journal
  Scenario: a mode changes only when all that the segment gave is acknowledged
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And stream consumer "a" receives 6 messages
    And the journal is marked
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And segment 0 is given to stream consumer "a" and others
    Then a segment was still another consumer's when it was subscribed
    And stream consumer "a" has not let go of segment 0 since the mark
    When stream consumer "a" acknowledges message number 4 of those it received
    Then stream consumer "a" has not let go of segment 0 since the mark
    When stream consumer "a" acknowledges its last message
    Then an acknowledgement went to segment 0 of stream consumer "a" since the mark
    And stream consumer "a" has let go of segment 0 since the mark
    When the subscribe of stream consumer "b" has ended
    Then stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "b" has every segment in the mode of its assignment
    When the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:KS4-drain-accepted @KS-4.13 @needs-control @needs-journal
  Scenario: what is acknowledged before a change of mode is not delivered in the new mode
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 6 messages
    And the journal is marked
    And an assignment is pushed to the stream consumer that shares segment 0
    Then the stream consumer has not let go of segment 0 since the mark
    When the journal is marked
    And the stream consumer acknowledges its last message
    Then the stream consumer has let go of segment 0 since the mark
    And the stream consumer has every segment in the mode of its assignment
    And no message of segment 0 went to the stream consumer since the mark

  @id:KS4-drain-transaction @KS-4.13 @IMPL-8.12 @transactions @needs-control @needs-journal
  Scenario Outline: an acknowledgement in a transaction counts for the drain when the transaction ends: <case>
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 6 messages
    And the application opens a transaction of 60 s
    And the journal is marked
    And the stream consumer acknowledges its last message in the transaction
    Then an acknowledgement went to segment 0 of the stream consumer since the mark
    When an assignment is pushed to the stream consumer that shares segment 0
    Then the stream consumer has not let go of segment 0 since the mark
    When the application <ends> the transaction
    Then the stream consumer has let go of segment 0 since the mark
    And the stream consumer has every segment in the mode of its assignment
    When <count>
    Then a receive from the stream consumer gives nothing within 300 ms

    Examples:
      | case   | ends    | count                                                     |
      | commit | commits | the application flushes the producer                      |
      | abort  | aborts  | the stream consumer receives and acknowledges 6 messages  |

  @id:KS4-drain-of-shared @KS-4.13 @needs-journal
  Scenario: a shared segment is drained as well before it gets one owner
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer sends a message with key "key-1"
    And the producer sends a message with key "ключ"
    And stream consumer "a" receives 2 messages
    And the journal is marked
    And the application closes stream consumer "b"
    And segment 0 is given to stream consumer "a" alone
    Then stream consumer "a" has not let go of segment 0 since the mark
    When stream consumer "a" acknowledges its last message
    Then stream consumer "a" has let go of segment 0 since the mark
    And stream consumer "a" has every segment in the mode of its assignment

  @id:KS4-drain-stops-delivery @KS-4.12 @needs-control @needs-journal
  Scenario: nothing more is delivered from a segment whose mode is about to change
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 2 messages with 2 keys
    And the stream consumer receives 2 messages
    And an assignment is pushed to the stream consumer that shares segment 0
    And the journal is marked
    And the producer sends 2 messages with 2 keys
    Then messages of segment 0 went to the stream consumer since the mark
    And a receive from the stream consumer gives nothing within 300 ms
    When the stream consumer acknowledges its last message
    Then the stream consumer has every segment in the mode of its assignment
    When the stream consumer receives and acknowledges 2 messages
    Then every message came to the stream consumers exactly once

  @id:KS4-drain-fences-receive @KS-4.12 @needs-control @needs-journal
  Scenario: a receive that is under way gets nothing of a segment whose mode is about to change
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 1 message with 1 key
    And the stream consumer receives 1 message
    And the application starts to receive from the stream consumer
    And an assignment is pushed to the stream consumer that shares segment 0
    And the journal is marked
    And the producer sends 2 messages with 2 keys
    Then messages of segment 0 went to the stream consumer since the mark
    And the receive from the stream consumer is still waiting

  @id:KS4-drain-acks-nothing @KS-4.15 @needs-control @needs-journal
  Scenario: the client acknowledges nothing to get a drain done
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the stream consumer receives 4 messages
    And the journal is marked
    And an assignment is pushed to the stream consumer that shares segment 0
    Then the stream consumer has acknowledged nothing since the mark
    When the application closes the stream consumer
    Then the stream consumer has acknowledged nothing since the mark
    When the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

  @id:KS4-second-cycle @IMPL-8.8 @KS-4.13 @needs-journal
  Scenario: a second change of mode is not held up by the first
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And stream consumer "a" receives 6 messages
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And segment 0 is given to stream consumer "a" and others
    And stream consumer "a" acknowledges its last message
    And the subscribe of stream consumer "b" has ended
    Then stream consumer "a" has every segment in the mode of its assignment
    When the producer sends a message with key "key-1"
    And stream consumer "a" receives 1 message
    And the application closes stream consumer "b"
    And segment 0 is given to stream consumer "a" alone
    And stream consumer "a" acknowledges its last message
    Then stream consumer "a" has every segment in the mode of its assignment
    When the producer sends 6 messages with 6 keys
    And stream consumer "a" receives 6 messages
    And the journal is marked
    And the application starts to subscribe stream consumer "c" on the topic with subscription "s"
    And segment 0 is given to stream consumer "a" and others
    Then stream consumer "a" has not let go of segment 0 since the mark
    When stream consumer "a" acknowledges its last message
    Then stream consumer "a" has let go of segment 0 since the mark
    When the subscribe of stream consumer "c" has ended
    Then stream consumer "a" has every segment in the mode of its assignment
    And stream consumer "c" has every segment in the mode of its assignment
    And every message came to the stream consumers exactly once

  @id:KS4-flip-back @IMPL-8.8 @needs-control @needs-journal
  Scenario: a mode that changes back during the drain ends in the mode that was assigned last
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    When the producer sends 4 messages with 4 keys
    And the stream consumer receives 4 messages
    And the journal is marked
    And an assignment is pushed to the stream consumer that shares segment 0
    Then the stream consumer has not let go of segment 0 since the mark
    When an assignment is pushed to the stream consumer that gives it segment 0 alone
    And the stream consumer acknowledges its last message
    Then the stream consumer has every segment in the mode of its assignment
    When the producer sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 4 messages
    Then every message came to the stream consumers exactly once

  @id:KS4-close-while-draining @KS-9.2 @KS-4.15 @KS-9 @needs-journal
  Scenario: a close during the drain closes what is being drained, and acknowledges nothing
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And stream consumer "a" receives 6 messages
    And the journal is marked
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And segment 0 is given to stream consumer "a" and others
    Then stream consumer "a" has not let go of segment 0 since the mark
    When the application closes stream consumer "a"
    Then nothing of stream consumer "a" is open any more
    And stream consumer "a" has acknowledged nothing since the mark
    When the subscribe of stream consumer "b" has ended
    Then stream consumer "b" receives exactly what was not acknowledged

  # ---- what does not disturb, and the order through it all ----

  @id:KS4-unchanged @KS-4.16 @needs-control @needs-journal
  Scenario: an assignment that repeats the buckets of a segment does not disturb it
    Given a scalable topic with 1 segment
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    Then stream consumer "a" has every segment in the mode of its assignment
    When the journal is marked
    And the assignment of stream consumer "a" is pushed again
    Then stream consumer "a" has subscribed to no segment since the mark

  @id:KS4-third-sharer @KS-4.16 @API-4.1.11 @needs-journal
  Scenario: a third sharer moves buckets, and neither of the others subscribes again
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    Then stream consumer "a" has every segment in the mode of its assignment
    When the producer sends 24 messages with 12 keys
    And the journal is marked
    And the application subscribes stream consumer "c" on the topic with subscription "s"
    And the producer sends 24 messages with 12 keys
    And the stream consumers receive and acknowledge everything
    Then stream consumer "a" has subscribed to no segment since the mark
    And stream consumer "b" has subscribed to no segment since the mark
    And every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages

  @id:KS4-order-join-leave @API-4.1.11 @KS-9.2 @KS-9 @needs-journal
  Scenario: the order of each key survives joins and leaves of sharers
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    When the producer sends 12 messages with 6 keys
    And stream consumer "a" receives 7 messages
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And segment 0 is given to stream consumer "a" and others
    And stream consumer "a" receives and acknowledges what still comes
    And the subscribe of stream consumer "b" has ended
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    And the application closes stream consumer "b"
    And segment 0 is given to stream consumer "a" alone
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages

  @id:KS4-order-broker-dies @API-4.1.11 @API-2.8 @C7 @needs-control @needs-journal
  Scenario: the order of each key survives the death of the broker of a shared segment
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    And the broker of segment 0 of the topic dies
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages
    And the segments of the topic are attached to at their newest brokers

  @id:KS4-order-rebucket @API-4.1.11 @C7 @needs-virtual-time @needs-journal
  Scenario: the order of each key survives a rebucket while sharers read
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When the producer sends 16 messages with 8 keys
    And segment 0 of the topic is rebucketed into 7 buckets
    And the producer sends 16 messages with 8 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And stream consumer "a" is attached to segment 1
    And stream consumer "b" has every segment in the mode of its assignment

  @id:KS4-order-split @API-4.1.11 @KS-4.13 @needs-virtual-time @needs-journal
  Scenario: the order of each key survives the split of a shared segment
    Given a scalable topic with 1 segment
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer sends 16 messages with 8 keys
    And segment 0 of the topic is split
    And the producer sends 16 messages with 8 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned

  @id:KS4-order-in-batches @API-4.1.11 @KS-9.2 @KS-9 @needs-journal
  Scenario: batches of one bucket go to its owner, in the order of each key
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    And stream consumer "a" on the topic with subscription "s"
    And stream consumer "b" on the topic with subscription "s"
    When segment 0 is given to stream consumer "a" and others
    And the producer starts to send 60 messages with 20 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    When the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages
