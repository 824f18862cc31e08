@entry-bucketing
Feature: Entry buckets of a producer
  A producer that batches on a scalable topic puts messages of one bucket into an entry and stamps it with the bucket
  hashes that are really in it. The hashes in this file were computed apart from the suite.

  @id:KS-single-stamp @KS-2.1 @KS-3.3 @KS-3.4
  Scenario Outline: a single message is stamped with the low half of its key's hash: <case>
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends a message with key "<key>"
    Then the entry of the message is stamped <low half> to <low half>

    Examples:
      | case     | key      | low half |
      | ascii    | order-17 | 0x87c0   |
      | accent   | naïve    | 0x85d5   |
      | cyrillic | ключ     | 0x2042   |
      | emoji    | 🔑       | 0xd305   |
      | sign-bit | key-1    | 0x15a0   |

  @id:KS-one-bucket-per-entry @KS-3.1 @KS-3.2 @KS-3.5
  Scenario: batches hold messages of one bucket and are stamped with what is in them
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When the producer starts to send 60 messages with 20 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-one-bucket-segment @KS-3.4 @KS-3.2
  Scenario: entries of a segment with one bucket are stamped as well
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When segment 0 of the topic is split
    And segment 1 of the topic is split
    And segment 2 of the topic is split
    And the producer starts to send 60 messages with 20 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic is stamped with the bucket hashes of its messages

  @id:KS-delayed-stamp @KS-3.4
  Scenario: a delayed message is stamped
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the producer sends a message with
      | key           | key-1   |
      | deliver after | 1000 ms |
    Then every entry of the topic is stamped with the bucket hashes of its messages

  @id:KS-uneven-buckets @KS-2.3 @KS-2.6 @needs-control
  Scenario: buckets are where the layout puts their boundaries
    Given a scalable topic with 1 segment
    And the next 1 SCALABLE_TOPIC_UPDATE to the client gets lost
    When the application starts to create a producer on the topic
    And a layout of the topic is pushed with buckets of segment 0 that start at 0x0000 0x1000 0x1800 0xc000
    And the create that was started has ended
    And the producer starts to send 80 messages with 40 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one of the buckets that start at 0x0000 0x1000 0x1800 0xc000

  @id:KS-rebucket @KS-5.2
  Scenario: after a rebucket the successor gets batches by its own boundaries
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When the producer starts to send 20 messages with 10 keys
    And segment 0 of the topic is rebucketed into 7 buckets
    And the producer starts to send 60 messages with 20 keys
    Then every send succeeds
    And every entry of the topic holds messages of one bucket of its segment
    And every message of the topic is stored exactly once

  @id:KS-not-observed @KS-9.6 @KS-3.7 @COMPAT-3.7 @needs-control
  Scenario: where no layout carries buckets, every message is an entry of its own
    Given a cluster without entry buckets
    And a scalable topic with 2 segments
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When the producer starts to send 40 messages with 10 keys
    Then every send succeeds
    And every entry of the topic holds one message
    And no entry of the topic is stamped
    And every message of the topic is stored exactly once
