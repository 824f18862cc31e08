@migration
Feature: Migration bridge
  Classic topics are produced to and consumed from under their own names. When such a topic is migrated, producers and
  consumers go on: what is stored in its partitions is read, and what is sent goes to the segments of the new layout.

  # ---- names and partitions ----

  @id:migration-wrapped-topic @WIRE-3.2 @COMPAT-1.5 @needs-journal
  Scenario: a legacy segment is attached to by the name of the topic that it wraps
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the queue consumer receives and acknowledges 6 messages
    Then every message was received exactly once
    And the client attached to the 2 partitions of the topic by their names

  @id:migration-plain-topic @WIRE-3.2 @COMPAT-1.5 @COMPAT-1.6 @needs-journal
  Scenario: a topic without partitions is one legacy segment, and attached to by its own name
    Given a classic topic without partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a checkpoint consumer on the topic from earliest
    When the producer sends 6 messages with 3 keys
    And the queue consumer receives and acknowledges 6 messages
    And the checkpoint consumer receives 6 messages
    Then every message was received exactly once
    And the checkpoint consumer received every message exactly once
    And the client attached to the topic by its own name

  @id:migration-short-name @COMPAT-1.3
  Scenario: a short name means the persistent topic in public/default
    Given a classic topic without partitions
    And the topic is called by its short name
    And a producer on the topic
    When the producer sends 3 messages without keys
    Then the messages are stored in the persistent topic of that name

  @id:migration-short-name-read @COMPAT-1.3
  Scenario: consumers read under a short name what was sent under the full one
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 6 messages with 6 keys
    And the topic is called by its short name
    When the application subscribes a queue consumer on the topic with subscription "s"
    And the queue consumer receives and acknowledges 6 messages
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 6 messages
    Then every message was received exactly once
    And the checkpoint consumer received every message exactly once

  @id:migration-absent-topic @COMPAT-1.4
  Scenario: a classic topic that is created when it is used is a classic one
    Given the name of an absent classic topic
    And a producer on the topic
    When the producer sends 3 messages without keys
    Then the classic part of the topic holds 3 messages

  @id:migration-keyless @COMPAT-1.4 @IMPL-2.6
  Scenario: messages without keys go round the partitions
    Given a classic topic with 3 partitions
    And a producer on the topic
    When the producer sends 9 messages without keys
    Then the messages without a key went round the 3 segments in turn

  @id:migration-exclusive @COMPAT-1.4 @IMPL-2.10
  Scenario: exclusive access is to every partition
    Given a classic topic with 2 partitions
    And producer "a" on the topic with
      | access | exclusive |
    When the application tries to create producer "b" on the topic with
      | access | exclusive |
    Then the create fails because another producer holds the topic
    When producer "a" sends 4 messages with 4 keys
    Then every message of the topic is stored exactly once

  @id:migration-connection-lost @COMPAT-1.4 @needs-faults
  Scenario: after a lost connection the topic is still the classic one
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When all connections are lost
    And the producer sends 4 messages with 4 keys
    Then the classic part of the topic holds 8 messages

  # ---- reading ----

  @id:migration-reads-partitions @COMPAT-1.6
  Scenario: a checkpoint consumer reads every partition
    Given a classic topic with 3 partitions
    And a producer on the topic
    And the producer has sent 12 messages with 6 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 12 messages
    And the producer sends 6 messages with 6 keys
    And the checkpoint consumer receives 6 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:migration-readers @COMPAT-1.6 @needs-journal
  Scenario: a partition is read by its own name
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 4 messages
    Then the client attached to the 2 partitions of the topic by their names

  @id:migration-checkpoint @COMPAT-1.6 @API-4.3.9
  Scenario: a checkpoint of a classic topic is gone on from
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 5 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 3 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"

  # ---- classic clients beside ----

  @id:migration-classic-beside @IMPL-2.7 @COMPAT-1.5
  Scenario: classic and scalable clients send a key to the same partition
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 4 messages with 4 keys
    And a classic client sends 4 messages with 4 keys to the topic
    And the producer sends 4 messages with 4 keys
    And a classic client sends 4 messages with 4 keys to the topic
    And the queue consumer receives and acknowledges 16 messages
    Then every message was received exactly once
    And every keyed message is in partition (masked hash of its key) mod 2

  @id:migration-classic-read @COMPAT-1.6
  Scenario: a checkpoint consumer reads what a classic client sends
    Given a classic topic with 2 partitions
    And a checkpoint consumer on the topic from earliest
    When a classic client sends 6 messages with 3 keys to the topic
    And the checkpoint consumer receives 6 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:migration-refused @COMPAT-1.4
  Scenario: a migration that is refused for a classic client changes nothing
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When a migration of the topic is refused since a classic client is attached
    And the producer sends 4 messages with 4 keys
    Then the classic part of the topic holds 8 messages

  @id:migration-more-partitions @IMPL-2.7 @COMPAT-1.5
  Scenario: who comes after partitions were added finds them all
    Given a classic topic with 2 partitions
    And producer "before" on the topic
    And producer "before" has sent 4 messages with 4 keys
    When the topic gets 4 partitions
    And producer "before" sends 4 messages with 4 keys
    And the application creates producer "after" on the topic
    And the application subscribes a queue consumer on the topic with subscription "s"
    And producer "after" sends 12 messages with 12 keys
    And the queue consumer receives and acknowledges 20 messages
    Then every message was received exactly once
    And every keyed message that producer "after" sent is in partition (masked hash of its key) mod 4

  # ---- the cut-over under a producer ----

  @id:migration-cut-over @IMPL-4.2
  Scenario Outline: sends go on while the topic is migrated: <case>
    Given a classic topic <shape>
    And a producer on the topic with
      | batching | off |
    And the producer has sent 5 messages with 5 keys
    When the producer starts to send 20 messages with 5 keys
    And the topic is migrated
    And the producer starts to send 20 messages with 5 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends
    And the topic has <segments> active segments
    And a classic client can send to the topic no more

    Examples:
      | case       | shape              | segments |
      | partitions | with 2 partitions  | 2        |
      | plain      | without partitions | 1        |

  @id:migration-in-flight @IMPL-4.2 @needs-faults
  Scenario: sends in flight at the cut-over are refused and go to the new segments
    Given a classic topic with 2 partitions
    And a producer on the topic with
      | batching | off |
    And the producer has sent 4 messages with 4 keys
    And the next 8 SEND on the topic are held
    When the producer starts to send 8 messages with 4 keys
    And 8 frames are held
    And the topic is migrated
    And the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends
    And the classic part of the topic holds 4 messages

  @id:migration-close-before-push @IMPL-4.2 @needs-control
  Scenario: the partitions are closed before the new layout has come
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When layout pushes of the topic are held
    And the topic is migrated
    And the producer starts to send 8 messages with 4 keys
    Then no started send has ended
    When layout pushes of the topic are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends
    And the classic part of the topic holds 4 messages

  @id:migration-batches @IMPL-4.2 @needs-faults
  Scenario: batches that are cut off go to the new segments whole
    Given a classic topic with 2 partitions
    And a producer on the topic with
      | batching | 10 messages, 20 ms |
    And the producer has sent 4 messages with 4 keys
    And the next 2 SEND on the topic are held
    When the producer starts to send 40 messages with 8 keys
    And 2 frames are held
    And the topic is migrated
    And the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:migration-connection-lost-meanwhile @IMPL-4.2 @needs-control @needs-faults
  Scenario: the connection is lost before the new layout has come
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When layout pushes of the topic are held
    And the topic is migrated
    And the producer starts to send 8 messages with 4 keys
    And all connections are lost
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends
    And the classic part of the topic holds 4 messages

  @id:migration-exclusive-lives @IMPL-4.2 @IMPL-2.10
  Scenario: exclusive access goes over to the new segments
    Given a classic topic with 2 partitions
    And producer "a" on the topic with
      | access | exclusive |
    And producer "a" has sent 4 messages with 4 keys
    When the topic is migrated
    And producer "a" sends 8 messages with 8 keys
    And the application tries to create producer "b" on the topic with
      | access | exclusive |
    Then the create fails because another producer holds the topic
    When producer "a" sends 2 messages with 2 keys
    Then every message of the topic is stored exactly once

  @id:migration-classic-transaction @API-6.1 @API-6.7 @transactions
  Scenario: a transaction over a classic topic
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 4 messages with 4 keys in the transaction
    Then a receive from the queue consumer gives nothing within 300 ms
    When the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once

  @id:migration-transaction @API-6.1 @API-6.7 @transactions
  Scenario: a transaction spans the partitions and the segments of a migrated topic
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 4 messages with 4 keys in the transaction
    And the topic is migrated
    And the producer sends 4 messages with 4 keys in the transaction
    Then a receive from the queue consumer gives nothing within 300 ms
    When the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once

  @id:migration-schema @COMPAT-1.4 @ERR-2.8
  Scenario: a migrated topic has the schema of the classic one
    Given a classic topic with 2 partitions
    And a producer on the topic with
      | schema | int32 |
    When the producer sends a message with
      | value | 7 |
    And the topic is migrated
    And the application tries to create producer "other" on the topic with
      | schema | string    |
      | access | exclusive |
    Then it fails with the category IncompatibleSchema

  @id:migration-routes-anew @COMPAT-1.4 @IMPL-2.1
  Scenario: a migrated topic is routed as any scalable topic
    Given a classic topic with 3 partitions
    And a producer on the topic
    And the producer has sent 3 messages with 3 keys
    When the topic is migrated
    And the producer sends 20 messages with 20 keys
    Then the classic part of the topic holds 3 messages
    And every keyed message of the topic is in a segment whose range holds the high half of its key

  @id:migration-old-name @IMPL-2.1 @COMPAT-1.5
  Scenario: the old name leads to the migrated topic
    Given a classic topic with 2 partitions
    And producer "before" on the topic
    And producer "before" has sent 4 messages with 4 keys
    When the topic is migrated
    And the topic is called by its persistent name
    And the application creates producer "after" on the topic
    And producer "after" sends 8 messages with 8 keys
    Then every keyed message of the topic is in a segment whose range holds the high half of its key
    When the application subscribes a queue consumer on the topic with subscription "s"
    And the queue consumer receives and acknowledges 12 messages
    Then every message was received exactly once

  @id:migration-then-split @IMPL-4.2 @IMPL-4.1 @IMPL-4.5
  Scenario: a migrated topic is split and merged
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the topic is migrated
    And the producer sends 8 messages with 8 keys
    And segment 2 of the topic is split
    And the producer starts to send 8 messages with 8 keys
    And segments 3 and 5 of the topic are merged
    And the producer starts to send 8 messages with 8 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And every keyed message of the topic is in a segment whose range holds the high half of its key
    When the queue consumer receives and acknowledges 28 messages
    Then every message was received exactly once

  # ---- the cut-over under consumers ----

  @id:migration-queue-lives @COMPAT-1.5 @IMPL-5.3 @IMPL-5.7
  Scenario: a queue consumer reads what is left in the partitions, and the new segments
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 8 messages with 4 keys
    When the queue consumer receives and acknowledges 2 messages
    And the topic is migrated
    And the producer sends 8 messages with 4 keys
    And the queue consumer receives and acknowledges 14 messages
    Then every message was received exactly once
    And a receive from the queue consumer gives nothing within 300 ms

  @id:migration-queue-comes-back @COMPAT-1.5 @API-4.2.4 @IMPL-5.3
  Scenario: a subscription keeps its place in the partitions
    Given a classic topic with 2 partitions
    And a producer on the topic
    And queue consumer "a" on the topic with subscription "s"
    And the producer has sent 8 messages with 4 keys
    When queue consumer "a" receives and acknowledges 3 messages
    And the application closes queue consumer "a"
    And the topic is migrated
    And the producer sends 4 messages with 4 keys
    And the application subscribes queue consumer "b" on the topic with subscription "s"
    And queue consumer "b" receives and acknowledges 9 messages
    Then every message was received exactly once
    And a receive from queue consumer "b" gives nothing within 300 ms

  @id:migration-late-acknowledgement @COMPAT-1.5 @API-4.2.4
  Scenario: what was received before the cut-over is acknowledged after it
    Given a classic topic with 2 partitions
    And a producer on the topic
    And queue consumer "a" on the topic with subscription "s"
    And the producer has sent 6 messages with 3 keys
    When queue consumer "a" receives 4 messages
    And the topic is migrated
    And queue consumer "a" acknowledges everything it received
    And the application closes queue consumer "a"
    And the application subscribes queue consumer "b" on the topic with subscription "s"
    And queue consumer "b" receives and acknowledges 2 messages
    Then every message was received exactly once
    And a receive from queue consumer "b" gives nothing within 300 ms

  @id:migration-late-rejection @COMPAT-1.5 @API-4.2.5 @IMPL-5.6
  Scenario: what was received before the cut-over is rejected after it, and comes again
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the queue consumer receives 4 messages
    And the topic is migrated
    And the queue consumer negatively acknowledges message number 2 of those it received
    And the queue consumer receives 1 message
    Then the last message is message number 2 of those the queue consumer received

  @id:migration-reader-lives @COMPAT-1.6 @WIRE-6.3.2 @needs-faults
  Scenario: a checkpoint consumer reads the partitions before the new segments
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When the topic is migrated
    And the producer sends 8 messages with 4 keys
    And the messages of segment 0 of the topic come 300 ms late
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 16 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:migration-while-reading @COMPAT-1.6
  Scenario: a topic is migrated while a checkpoint consumer reads it
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 3 messages
    And the topic is migrated
    And the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 13 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:migration-checkpoint-kept @COMPAT-1.6 @API-4.3.9
  Scenario: a checkpoint from before the migration is gone on from after it
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 5 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the topic is migrated
    And the producer sends 4 messages with 4 keys
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 7 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And checkpoint consumer "b" received the messages of each key in the order of publishing

  @id:migration-stream @IMPL-4.2 @API-4.1.5 @IMPL-5.12
  Scenario: a stream consumer of a migrated topic reads the partitions, then the segments
    Given a classic topic with 2 partitions
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When the topic is migrated
    And the producer sends 8 messages with 4 keys
    And the application subscribes a stream consumer on the topic with subscription "s"
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends

  @id:migration-namespace @API-4.4.5 @namespace
  Scenario: a topic enters a namespace subscription when it is migrated
    Given a namespace
    And scalable topic "new" in the namespace with 1 segment
    And classic topic "old" in the namespace with 2 partitions
    And producer "new" on topic "new"
    And producer "old" on topic "old"
    And producer "old" has sent 4 messages with 4 keys
    And a stream consumer on the namespace with subscription "s"
    When producer "new" sends 2 messages without keys
    And the stream consumer receives and acknowledges 2 messages
    Then a receive from the stream consumer gives nothing within 300 ms
    When topic "old" is migrated
    And producer "old" sends 4 messages with 4 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And every message told the topic that it was sent to
