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

  @id:KS-uneven-buckets @KS-2.3 @KS-2.6 @needs-control @needs-faults
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

  @id:KS-boundary-keys @KS-2.3 @KS-2.6 @KS-3.1 @KS-3.5
  Scenario: a bucket begins with the hash of its boundary, and ends before the next one
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 50 ms |
    When the producer starts to send one message for each key
      | edge-53188  |
      | edge-87526  |
      | edge-141170 |
      | edge-32714  |
      | edge-111552 |
      | edge-73932  |
      | edge-177130 |
      | edge-3546   |
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one of the buckets that start at 0x0000 0x4000 0x8000 0xc000
    And every entry of the topic is stamped with the bucket hashes of its messages

  @id:KS-edge-buckets @KS-2.3 @KS-2.6 @needs-control @needs-faults
  Scenario: the first and the last hash may be buckets of their own
    Given a scalable topic with 1 segment
    And the next 1 SCALABLE_TOPIC_UPDATE to the client gets lost
    When the application starts to create a producer on the topic
    And a layout of the topic is pushed with buckets of segment 0 that start at 0x0000 0x0001 0xffff
    And the create that was started has ended
    And the producer starts to send one message for each key
      | edge-53188 |
      | edge-51848 |
      | edge-75237 |
      | edge-24599 |
      | edge-3546  |
      | edge-53188 |
      | edge-3546  |
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one of the buckets that start at 0x0000 0x0001 0xffff

  @id:KS-rebucket-waiting @KS-5.2 @KS-3.2
  Scenario: messages that wait for their batch when the layout changes are batched by the new boundaries
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 1500 ms |
    And the producer has sent 1 message
    When the producer starts to send 60 messages with 30 keys
    And segment 0 of the topic is rebucketed into 7 buckets
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-rebucket-in-flight @KS-5.2 @KS-5.3 @needs-faults
  Scenario: batches that are under way when their segment is rebucketed are made anew for the successor
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    And the producer has sent 1 message
    And the next 1 SEND on the topic is held
    When the producer starts to send 60 messages with 30 keys
    And 1 frame is held
    And segment 0 of the topic is rebucketed into 7 buckets
    And the held frames are released
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And the messages of every key of the topic are stored in the order of their sends
    And every message of the topic is stored exactly once

  @id:KS-rebucket-to-one @KS-5.2 @KS-3.5
  Scenario: after a rebucket into one bucket entries are still stamped with the hashes that are in them
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    And the producer has sent 4 messages with 4 keys
    When segment 0 of the topic is rebucketed into 1 bucket
    And the producer starts to send 40 messages with 20 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-keyless-batch @KS-3.2 @KS-3.5
  Scenario: entries without keys are stamped with no hash but 0
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When the producer starts to send 12 messages
    Then every send succeeds
    And entries of the topic without keys are stamped 0x0000 or not at all
    And every message of the topic is stored exactly once

  @id:KS-keyless-among-keyed @KS-3.1 @KS-3.2 @KS-3.5
  Scenario: messages without keys leave the stamp to those with keys in their entry
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 50 ms |
    When the producer starts to send 6 messages
    And the producer starts to send 40 messages with 20 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-delayed-among-others @KS-3.1 @KS-3.4
  Scenario: a delayed message between batches is stamped, and the batches around it keep to their buckets
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 50 ms |
    When the producer starts to send 20 messages with 10 keys
    And the producer sends a message with
      | key           | key-1  |
      | deliver after | 500 ms |
    And the producer starts to send 20 messages with 10 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-full-batches @KS-3.1 @KS-3.2
  Scenario: what does not fit into a batch of its bucket begins another one, and joins none of another bucket
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 5 messages, 20 ms |
    When the producer starts to send 100 messages with 8 keys
    Then every send succeeds
    And some entry of the topic holds several messages
    And every entry of the topic holds messages of one bucket of its segment
    And every entry of the topic is stamped with the bucket hashes of its messages
    And every message of the topic is stored exactly once

  @id:KS-not-observed-delayed @KS-9.6 @KS-3.7 @needs-control
  Scenario: keyless and delayed messages need no sign of buckets either
    Given a cluster without entry buckets
    And a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 100 messages, 20 ms |
    When the producer starts to send 10 messages
    And the producer sends a message with
      | key           | key-1  |
      | deliver after | 500 ms |
    Then every send succeeds
    And every entry of the topic holds one message
    And every message of the topic is stored exactly once
