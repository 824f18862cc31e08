@C3
Feature: Publish order
  The messages of one key are stored in the order of their sends, whatever happens to the segments meanwhile.

  @id:C3-order-of-sends @API-3.2.11
  Scenario: sends that are waited for
    Given a scalable topic with 3 segments
    And a producer on the topic
    When the producer sends 30 messages with 3 keys
    Then the messages of every key of the topic are stored in the order of their sends

  @id:C3-async-order @API-3.2.14 @API-3.2.11
  Scenario: many sends under way at a time
    Given a scalable topic with 3 segments
    And a producer on the topic
    When the producer starts to send 200 messages with 7 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-async-one-key @API-3.2.11
  Scenario: many sends of one key under way at a time
    Given a scalable topic with 2 segments
    And a producer on the topic
    When the producer starts to send 100 messages with 1 key
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-async-first-open @IMPL-3.3 @needs-faults
  Scenario: sends that wait for their segment's producer keep their order
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the next 1 PRODUCER on the topic is held
    When the producer starts to send 5 messages with 1 key
    And 1 frame is held
    And the producer starts to send 5 messages with 1 key
    And the held frames are released
    And the producer starts to send 5 messages with 1 key
    Then every send succeeds
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-across-split @API-3.2.12
  Scenario: the order holds across splits and a merge during asynchronous sends
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When the producer starts to send 40 messages with 8 keys
    And segment 0 of the topic is split
    And the producer starts to send 40 messages with 8 keys
    And segments 1 and 2 of the topic are merged
    And the producer starts to send 40 messages with 8 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-split-of-pending @API-3.2.12 @needs-control
  Scenario: sends that the sealed segment refused keep their order in the successors
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer starts to send 4 messages with 2 keys
    Then every send succeeds
    When layout pushes of the topic are held
    And segment 0 of the topic is split
    And the producer starts to send 20 messages with 4 keys
    Then no started send has ended
    When layout pushes of the topic are released
    Then every send succeeds
    And segment 0 of the topic holds 4 messages
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-rebucket @KS-5.3
  Scenario: the order holds across a rebucket
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer starts to send 20 messages with 5 keys
    And segment 0 of the topic is rebucketed into 2 buckets
    And the producer starts to send 20 messages with 5 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C3-lost-connection @API-3.2.14 @needs-faults
  Scenario: sends that are pending when the connection is lost keep their order
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the connection breaks at the next SEND on the topic
    When the producer starts to send 10 messages with 1 key
    Then every send succeeds
    And the messages of every key of the topic are stored in the order of their sends
