@C1
Feature: Resolution and layout tracking
  A client watches the layout of each topic that it uses, follows it, and never goes back to an older one.

  @id:C1-producer-watches @IMPL-1.1 @API-3.1.10 @needs-journal
  Scenario: a producer keeps a layout watch open
    Given a scalable topic with 2 segments
    And a producer on the topic
    Then the client has a layout watch of the topic open
    When the producer sends a message
    Then the client has a layout watch of the topic open

  @id:C1-consumer-watches @IMPL-1.2 @needs-journal
  Scenario: a queue consumer keeps a layout watch open
    Given a scalable topic with 2 segments
    And a queue consumer on the topic with subscription "s"
    Then the client has a layout watch of the topic open

  @id:C1-watch-closed @WIRE-4.3 @needs-journal
  Scenario: the layout watch ends with the last one that uses it
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the application closes the producer
    And the application closes the queue consumer
    Then the client has closed every layout watch of the topic

  @id:C1-session-ids @WIRE-4.2 @needs-control @needs-journal
  Scenario: watches that are open together have different session ids
    Given a cluster of 1 broker
    And a scalable topic with 1 segment
    And a scalable topic "other" with 1 segment
    And a producer on the topic
    When the application tries to create producer "other" on topic "other"
    Then layout watches that are open together have different session ids
    And it succeeds
    When the producer sends a message
    And producer "other" sends a message
    Then every message of the topic is stored exactly once
    And every message of topic "other" is stored exactly once

  @id:C1-stale-epoch @IMPL-1.4 @IMPL-1.3 @needs-control @needs-journal
  Scenario: a layout older than the applied one changes nothing
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 2 messages with 2 keys
    When segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And the layout of epoch 0 of the topic is pushed again
    And the journal is marked
    And the producer sends 8 messages with 8 keys
    Then nothing was sent to segment 0 of the topic since the mark
    And every message of the topic is stored exactly once
    And every keyed message of the topic is in a segment whose range holds the high half of its key

  @id:C1-equal-epoch @IMPL-1.3 @needs-control @needs-journal
  Scenario: the same layout once more does no harm
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When the newest layout of the topic is pushed again
    And the producer sends 4 messages with 4 keys
    Then every message of the topic is stored exactly once
    And no segment of the topic had two producers at a time

  @id:C1-segment-listed-twice @IMPL-1.3 @needs-control @needs-journal
  Scenario: a layout that lists a segment twice counts it once
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the layout of the topic is pushed with segment 1 listed twice
    And the producer sends 6 messages with 6 keys
    And the queue consumer receives 6 messages
    Then every message was received exactly once
    And no segment of the topic had two producers at a time

  @id:C1-follows-split-and-merge @IMPL-1.5 @IMPL-1.7 @needs-journal
  Scenario: segments that a split or merge makes are produced to and read from
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When segment 0 of the topic is split
    And the producer sends 8 messages with 8 keys
    And segments 1 and 2 of the topic are merged
    And the producer sends 4 messages with 4 keys
    Then every send succeeds
    And producers were opened on segments 0, 1, 2, 3 of the topic
    When the queue consumer receives and acknowledges 16 messages
    Then every message was received exactly once

  @id:C1-segment-moves @IMPL-1.6 @WIRE-5.8 @needs-control @needs-journal
  Scenario: a segment that moved is attached to where it is now
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When segment 0 of the topic moves to another broker
    And the producer sends 4 messages with 4 keys
    Then every message of the topic is stored exactly once
    And the client attached to every segment of the topic at the broker that the layout names

  @id:C1-push-moves-consumer @IMPL-1.6 @needs-control @needs-faults @needs-journal
  Scenario: a push alone moves a queue consumer to the segment's new broker
    Given a scalable topic with 1 segment
    And a queue consumer on the topic with subscription "s"
    And the fault
      """
      when:
        command: CLOSE_CONSUMER
        direction: to_client
      effect: hold
      """
    When segment 0 of the topic moves to another broker
    Then the client attached to every segment of the topic at the broker that the layout names
    And the segments of the topic are attached to at their newest brokers

  @id:C1-segment-brokers @WIRE-5.8 @needs-control @needs-journal
  Scenario: segments are attached to at the brokers that the layout names
    Given a cluster of 3 brokers
    And a scalable topic with 6 segments
    And a producer on the topic
    When the producer starts to send 12 messages
    Then the client attached to every segment of the topic at the broker that the layout names
    And every send succeeds

  @id:C1-segment-names @WIRE-3.1 @needs-journal
  Scenario: segments are attached to by their names
    Given a scalable topic with 3 segments
    And a producer on the topic
    When the application tries to subscribe the queue consumer on the topic with subscription "s"
    And the producer starts to send 6 messages
    Then the client attached to segments of the topic by their names
    And every send succeeds

  @id:C1-establishment-error @WIRE-4.9 @needs-faults
  Scenario: an error in the first update fails the create
    Given a scalable topic with 1 segment
    And the next 1 SCALABLE_TOPIC_LOOKUP on the topic is answered with AuthorizationError
    When the application tries to create a producer on the topic
    Then it fails with the category Authorization

  @id:C1-watch-again @WIRE-4.10 @WIRE-4.11 @needs-control @needs-faults @needs-journal
  Scenario: after lost connections the layout is watched again before anything is sent
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 2 messages with 2 keys
    When the journal is marked
    And layout pushes of the topic are held
    And segment 0 of the topic is split
    And the next 1 SCALABLE_TOPIC_UPDATE to the client comes 2000 ms late
    And all connections are lost
    And layout pushes of the topic are released
    And the producer starts to send 6 messages with 6 keys
    And every send has ended
    Then the client has opened a new layout watch of the topic since the mark
    And every send succeeds
    And nothing was sent to segment 0 of the topic since the mark
    And segment 0 of the topic holds 2 messages
    And every message of the topic is stored exactly once

  @id:C1-resume-on-new-layout @WIRE-4.11 @needs-control @needs-faults @needs-journal
  Scenario: a send that is pending when the connection is lost goes by the layout of the new watch
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the fault
      """
      when:
        command: CLOSE_PRODUCER
        direction: to_client
      effect: drop
      """
    And the next 1 SEND on the topic is held
    When the producer starts to send 1 message with 1 key
    And 1 frame is held
    And layout pushes of the topic are held
    And segment 0 of the topic is split
    And the journal is marked
    And the next 1 SCALABLE_TOPIC_UPDATE to the client comes 5000 ms late
    And all connections are lost
    And layout pushes of the topic are released
    And every send has ended
    Then nothing was sent to segment 0 of the topic since the mark
    And every send succeeds
    And every message of the topic is stored exactly once

  @id:C1-canonical-name-used @WIRE-4.5 @needs-journal
  Scenario: the canonical name of the answer is used from then on
    Given a scalable topic with 1 segment
    And the topic is called by its persistent name
    When the application tries to subscribe the stream consumer on the topic with
      | subscription | s |
    Then the client registered under the canonical name

  @id:C1-canonical-topic @DATA-1.1 @DATA-1.3
  Scenario: canonical names are accepted and reported
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a stream consumer on the topic with subscription "t"
    And checkpoint consumer "reader" on the topic from earliest
    When the producer sends a message
    And the queue consumer receives 1 message
    Then the last message names the topic as its topic
    And the producer names the topic as its topic
    And the queue consumer names the topic as its topic
