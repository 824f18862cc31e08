@C4
Feature: Transparent segment-gone retry
  A send whose segment was sealed between routing and publishing goes to the successor, and the application sees
  nothing of it.

  @id:C4-split-before-push @IMPL-4.1 @IMPL-4.4 @IMPL-4.5 @IMPL-4.8 @needs-control
  Scenario: the segment's close comes before the push of the new layout
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 2 messages with 2 keys
    When layout pushes of the topic are held
    And segment 0 of the topic is split
    And the producer starts to send 6 messages with 6 keys
    Then no started send has ended
    When layout pushes of the topic are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And segment 0 of the topic holds 2 messages
    And every keyed message of the topic is in a segment whose range holds the high half of its key

  @id:C4-in-flight @IMPL-4.1 @IMPL-4.5 @IMPL-4.8 @needs-faults
  Scenario: sends in flight at a split are refused and go to the successors
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | off |
    And the producer has sent 1 message with 1 key
    And the next 5 SEND on the topic are held
    When the producer starts to send 5 messages with 5 keys
    And 5 frames are held
    And segment 0 of the topic is split
    And the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And segment 0 of the topic holds 1 message

  @id:C4-drops-producer @IMPL-4.3 @WIRE-5.9 @needs-journal
  Scenario: a sealed segment gets nothing more, and its producer is dropped
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 2 messages with 2 keys
    When segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And the journal is marked
    And the producer sends 8 messages with 8 keys
    Then nothing was sent to segment 0 of the topic since the mark
    And no producer is open on segment 0 of the topic

  @id:C4-push-before-close @WIRE-5.9 @IMPL-4.3 @IMPL-4.5 @needs-faults @needs-journal
  Scenario: a push seals the segment before its close has come
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 2 messages with 2 keys
    And the fault
      """
      when:
        command: CLOSE_PRODUCER
        direction: to_client
      effect: hold
      """
    When segment 0 of the topic is split
    And the journal is marked
    Then no producer is open on segment 0 of the topic
    When the producer sends 4 messages with 4 keys
    Then nothing was sent to segment 0 of the topic since the mark
    And every message of the topic is stored exactly once
    And segment 0 of the topic holds 2 messages

  @id:C4-gone-for-good @IMPL-4.6 @IMPL-4.7 @needs-control @needs-virtual-time
  Scenario: a segment that stays gone fails the send in the end
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | send timeout | 0 ms |
    And the producer has sent 1 message with 1 key
    When layout pushes of the topic are held
    And segment 0 of the topic is split
    And the producer starts to send 1 message with 1 key
    Then no started send has ended
    When 300 s pass
    Then the started sends have failed

  @id:C4-twice-in-a-row @IMPL-4.1 @IMPL-4.5 @needs-control
  Scenario: the successor is split as well before the message got there
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer starts to send 2 messages with 2 keys
    Then every send succeeds
    When layout pushes of the topic are held
    And segment 0 of the topic is split
    And segment 1 of the topic is split
    And the producer starts to send 8 messages with 8 keys
    Then no started send has ended
    When layout pushes of the topic are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And every keyed message of the topic is in a segment whose range holds the high half of its key

  @id:C4-sends-after-splits @IMPL-4.1 @IMPL-4.5
  Scenario: sends that follow a split at once go to the successors
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | off |
    And the producer has sent 2 messages with 2 keys
    When segment 0 of the topic is split
    And the producer starts to send 20 messages with 10 keys
    And segment 1 of the topic is split
    And the producer starts to send 20 messages with 10 keys
    And segments 3 and 4 of the topic are merged
    And the producer starts to send 20 messages with 10 keys
    Then every send succeeds
    And segment 0 of the topic holds 2 messages
    And every message of the topic is stored exactly once
    And every keyed message of the topic is in a segment whose range holds the high half of its key
