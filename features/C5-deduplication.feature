@C5
Feature: Deduplication
  Every message carries a sequence id. With deduplication enabled a broker drops what a producer name has stored under an
  id before, so that sending again after a lost receipt stores nothing twice.

  @id:C5-increase @API-3.2.15
  Scenario Outline: the sequence ids of a producer increase
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | <batching> |
    When the producer starts to send 9 messages with 3 keys
    Then every send succeeds
    And the sequence ids of the messages of the topic increase

    Examples:
      | case    | batching           |
      | single  | off                |
      | batches | 3 messages, 100 ms |

  @id:C5-increase-through-split @API-3.2.15 @needs-faults
  Scenario: with deduplication the messages that move to a successor at a split are stored there
    Given deduplication is enabled for the namespace
    And a scalable topic with 1 segment
    And a producer on the topic with
      | name     | p   |
      | batching | off |
    And the producer has sent 4 messages with 4 keys
    And the next 4 SEND on the topic are held
    When the producer starts to send 4 messages with 4 keys
    And 4 frames are held
    And segment 0 of the topic is split
    And the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C5-initial @API-3.1.8
  Scenario: the first message carries the sequence id after the initial one
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | initial sequence id | 41 |
    When the producer sends 3 messages without keys
    Then the messages of the topic are stored with the sequence ids 42 to 44

  @id:C5-lost-receipt @API-3.2.15 @needs-faults @needs-journal
  Scenario Outline: a message whose receipt is lost is sent again as it was, and stored once
    Given deduplication is enabled for the namespace
    And a scalable topic with 1 segment
    And a producer on the topic with
      | name     | p          |
      | batching | <batching> |
    And the producer has sent 1 message with 1 key
    And the next <entries> SEND_RECEIPT to the client get lost
    When the producer starts to send 6 messages with 2 keys
    And <entries> receipts are lost
    And all connections are lost
    Then every send succeeds
    And what was sent again of the topic kept its producer name and sequence id
    And the broker stored every message of the topic once although it came twice

    Examples:
      | case    | batching           | entries |
      | single  | off                | 6       |
      | batches | 3 messages, 100 ms | 2       |

  @id:C5-lost-receipt-unnamed @API-3.2.15 @needs-faults @needs-journal
  Scenario: a producer that the broker named keeps that name when it sends again
    Given deduplication is enabled for the namespace
    And a scalable topic with 1 segment
    And a producer on the topic with
      | batching | off |
    And the producer has sent 1 message with 1 key
    And the next 3 SEND_RECEIPT to the client get lost
    When the producer starts to send 3 messages with 2 keys
    And 3 receipts are lost
    And all connections are lost
    Then every send succeeds
    And what was sent again of the topic kept its producer name and sequence id
    And the broker stored every message of the topic once although it came twice

  @id:C5-lost-receipt-broker-dies @API-3.2.15 @needs-control @needs-faults @needs-journal
  Scenario: a message whose receipt is lost with its broker is sent again to the next one as it was
    Given deduplication is enabled for the namespace
    And a scalable topic with 1 segment
    And a producer on the topic with
      | name     | p   |
      | batching | off |
    And the producer has sent 1 message with 1 key
    And the next 3 SEND_RECEIPT to the client get lost
    When the producer starts to send 3 messages with 2 keys
    And 3 receipts are lost
    And the broker of segment 0 of the topic dies
    Then every send succeeds
    And what was sent again of the topic kept its producer name and sequence id
    And the broker stored every message of the topic once although it came twice

  @id:C5-last-published @API-3.2.17 @needs-faults
  Scenario: the last sequence id is that of the last message that is published, not of one that is pending
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching            | off |
      | initial sequence id | 9   |
    When the producer sends 2 messages without keys
    Then the last sequence id of the producer is 11
    And the messages of the topic are stored with the sequence ids 10 to 11
    When the next 1 SEND on the topic is held
    And the producer starts to send 1 message
    And 1 frame is held
    Then the last sequence id of the producer is 11
    When the held frames are released
    Then every send succeeds
    And the last sequence id of the producer is 12

  @id:C5-last-own @API-3.2.17
  Scenario: the last sequence id is the one that the application set
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends a message with
      | sequence id | 500 |
    Then the last sequence id of the producer is 500
