@C2
Feature: Producer routing
  A message with a key goes to the segment whose range holds the high 16 bits of the key's Murmur3_32 hash; messages
  without keys take turns; over a classic topic keys go to partitions as they always did. The hashes in this file were
  computed apart from the suite.

  @id:C2-keyed-high-half @IMPL-2.1
  Scenario Outline: a key goes to the segment that holds the high half of its hash: <case>
    Given a scalable topic with 4 segments
    And a producer on the topic
    When the producer sends a message with key "<key>"
    Then the message is stored in the segment whose range holds <high half>

    Examples: keys of several scripts
      | case          | key                | high half |
      | ascii         | order-17           | 0x03c2    |
      | one-letter    | a                  | 0x3c25    |
      | latin-accent  | naïve              | 0x3b28    |
      | cyrillic      | ключ               | 0x9a59    |
      | katakana      | キー               | 0x3d6c    |
      | arabic        | مفتاح              | 0xf414    |
      | emoji         | 🔑                 | 0x3310    |
      | with-a-space  | a b                | 0x3d94    |
      | empty         |                    | 0x0000    |
      | sign-bit-set  | key-1              | 0x98b1    |

    Examples: hashes at the ends of ranges
      | case          | key                | high half |
      | first-of-all  | edge-59375         | 0x0000    |
      | last-of-0     | edge-29306         | 0x3fff    |
      | first-of-1    | edge-7242          | 0x4000    |
      | last-of-1     | edge-126847        | 0x7fff    |
      | first-of-2    | edge-56779         | 0x8000    |
      | last-of-2     | edge-89091         | 0xbfff    |
      | first-of-3    | edge-1496          | 0xc000    |
      | last-of-all   | edge-18649         | 0xffff    |

  @id:C2-empty-key @IMPL-2.1
  Scenario: the empty key is a key, and takes no turns
    Given a scalable topic with 4 segments
    And a producer on the topic
    When the producer sends one message for each key
      |  |
      |  |
      |  |
    Then segment 0 of the topic holds 3 messages

  @id:C2-uneven-ranges @IMPL-2.1
  Scenario: ranges of different widths, after a split and a merge
    Given a scalable topic with 3 segments
    And a producer on the topic
    When segment 1 of the topic is split
    And segments 0 and 3 of the topic are merged
    And the producer sends 40 messages with 40 keys
    Then every message of the topic is stored exactly once
    And every keyed message of the topic is in a segment whose range holds the high half of its key

  @id:C2-keyless-round-robin @IMPL-2.6
  Scenario: messages without keys go round the active segments
    Given a scalable topic with 4 segments
    And a producer on the topic
    When the producer sends 12 messages without keys
    Then the messages without a key went round the 4 segments in turn

  @id:C2-keyless-after-split @IMPL-2.6
  Scenario: after a split the new segments take their turns, and the sealed one none
    Given a scalable topic with 1 segment
    And a producer on the topic
    When segment 0 of the topic is split
    And segment 1 of the topic is split
    And the producer sends 9 messages without keys
    Then the messages without a key went round the 3 segments in turn

  @id:C2-no-segment-for-hash @IMPL-2.2 @needs-control @needs-journal @needs-virtual-time
  Scenario: a key that no active segment covers is sent nowhere
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | send timeout | 20000 ms |
    When a layout of the topic without segment 1 is pushed
    And the producer tries to send a message with key "key-1"
    Then it fails
    And nothing is stored in the topic

  @id:C2-one-producer-per-segment @IMPL-2.8 @needs-journal
  Scenario: many sends to one segment share one producer
    Given a scalable topic with 2 segments
    And a producer on the topic
    When the producer sends 10 messages with 5 keys
    And the producer starts to send 10 messages with 5 keys
    Then every send succeeds
    And no segment of the topic had two producers at a time

  @id:C2-lazy-producers @IMPL-2.9 @needs-journal
  Scenario: a segment's producer is opened by the first send to it
    Given a scalable topic with 4 segments
    And a producer on the topic
    Then producers were opened on no segment of the topic
    When the producer sends a message with key "edge-7242"
    Then producers were opened on segment 1 of the topic
    When the producer sends a message with key "edge-18649"
    Then producers were opened on segments 1, 3 of the topic

  @id:C2-active-only @WIRE-2.3 @needs-journal
  Scenario: a sealed segment gets no producer
    Given a scalable topic with 1 segment
    When segment 0 of the topic is split
    And the application creates a producer on the topic
    And the producer sends 8 messages without keys
    Then producers were opened on segments 1, 2 of the topic
    And segment 0 of the topic holds 0 messages

  @id:C2-segment-producer-name @WIRE-5.7 @needs-journal
  Scenario: segment producers are called after the producer and the segment
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | name | ledger-writer |
    When the producer sends 4 messages without keys
    Then every segment producer is called after the producer and its segment

  @id:C2-legacy-mod-n @IMPL-2.7 @migration
  Scenario: over a classic topic a key goes to the masked hash modulo the number of partitions
    Given a classic topic with 3 partitions
    And a producer on the topic
    When the producer sends 30 messages with 30 keys
    Then every send succeeds
    And every keyed message is in partition (masked hash of its key) mod 3
