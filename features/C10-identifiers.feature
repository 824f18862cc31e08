@C10
Feature: Identifiers and checkpoints as values
  An identifier names a message, a checkpoint a position. The application can compare identifiers, and keep both as bytes
  without knowing what is in them.

  @id:C10-total-order @DATA-4.2
  Scenario: any two identifiers of a topic can be compared
    Given a scalable topic with 3 segments
    And a producer on the topic
    And the producer has sent 9 messages with 6 keys
    When segment 0 of the topic is split
    And the producer sends 6 messages with 6 keys
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 15 messages
    Then the identifiers that the checkpoint consumer gave are in one total order

  @id:C10-key-order @DATA-4.3
  Scenario: the identifiers of a key ascend through splits and merges
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And segments 2 and 3 of the topic are merged
    And the producer sends 8 messages with 4 keys
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 24 messages
    Then the topic has 2 active segments
    And the identifiers of each key that the checkpoint consumer gave ascend

  @id:C10-batch-order @DATA-4.3
  Scenario: the identifiers within a batch ascend
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 10 messages, 100 ms |
    When the producer starts to send 10 messages with 1 key
    Then every send succeeds
    And some entry of the topic holds several messages
    When the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 10 messages
    Then the identifiers of each key that the checkpoint consumer gave ascend

  @id:C10-bytes @DATA-4.4
  Scenario: identifiers survive as bytes
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | batching | 5 messages, 100 ms |
    When the producer starts to send 10 messages with 3 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    When the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 10 messages
    Then the identifiers that the checkpoint consumer gave survive as bytes

  @id:C10-restored-names-message @DATA-4.4
  Scenario: a restored identifier acknowledges the message that it names
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 3 messages, 100 ms |
    And queue consumer "a" on the topic with subscription "s"
    When the producer starts to send 3 messages with 1 key
    Then every send succeeds
    And some entry of the topic holds several messages
    When queue consumer "a" receives 3 messages
    And queue consumer "a" acknowledges message number 1 of those it received by its restored identifier
    And queue consumer "a" acknowledges message number 3 of those it received by its restored identifier
    And the application closes queue consumer "a"
    And the application subscribes queue consumer "b" on the topic with subscription "s"
    And queue consumer "b" receives 1 message
    Then the last message is message number 2 of those queue consumer "a" received
    And a receive from queue consumer "b" gives nothing within 100 ms

  @id:C10-ends @DATA-4.6
  Scenario: the earliest identifier is before every message, the latest behind
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 6 messages
    Then every identifier that the checkpoint consumer gave lies between the earliest and the latest

  @id:C10-checkpoint-bytes @API-4.3.8
  Scenario: a checkpoint survives as bytes
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 5 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes the client
    And the application creates checkpoint consumer "b" of client "second" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 3 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"

  @id:C10-fresh-checkpoint @API-4.3.8
  Scenario: a checkpoint that was taken before anything was received survives as bytes
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 3 messages
    And checkpoint consumer "a" on the topic from latest
    When the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the producer sends 4 messages with 4 keys
    And the application creates checkpoint consumer "b" of client "second" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 4 messages
    Then checkpoint consumer "b" received exactly the last 4 messages
