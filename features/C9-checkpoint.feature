@C9
Feature: Checkpoint consumer
  Reads a topic, or a group's share of it, from a position that the application keeps. Brokers keep none.

  @id:C9-earliest @API-4.3.6
  Scenario: from the earliest checkpoint everything comes, from the latest what is published afterwards
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages with 4 keys
    And checkpoint consumer "old" on the topic from earliest
    And checkpoint consumer "new" on the topic from latest
    When the producer sends 4 messages with 4 keys
    And checkpoint consumer "old" receives 10 messages
    And checkpoint consumer "new" receives 4 messages
    Then checkpoint consumer "old" received every message exactly once
    And checkpoint consumer "new" received exactly the last 4 messages

  @id:C9-start-at-checkpoint @API-4.3.6
  Scenario: a consumer that is given a captured checkpoint starts there
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 3 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 1 message
    Then checkpoint consumer "b" received exactly the last 1 messages

  @id:C9-default-position @API-4.3.2
  Scenario: without a position the consumer starts at latest
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages with 4 keys
    And a checkpoint consumer on the topic
    When the producer sends 4 messages with 4 keys
    And the checkpoint consumer receives 4 messages
    Then the checkpoint consumer received exactly the last 4 messages

  @id:C9-latest-through-split @DATA-5.5 @C10
  Scenario: latest is the end of the topic when the consumer is created, however it is split later
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    And a checkpoint consumer on the topic from latest
    When segment 0 of the topic is split
    And the producer sends 6 messages with 6 keys
    And the checkpoint consumer receives 6 messages
    Then the checkpoint consumer received exactly the last 6 messages
    And a receive from the checkpoint consumer gives nothing within 100 ms

  @id:C9-whole-topic @API-4.3.10
  Scenario: each consumer without a group reads the whole topic, whatever others do
    Given a scalable topic with 3 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic from earliest
    And checkpoint consumer "b" of client "second" on the topic from earliest
    When the producer sends 9 messages with 6 keys
    And checkpoint consumer "a" receives 9 messages
    And checkpoint consumer "b" receives 9 messages
    Then checkpoint consumer "a" received every message exactly once
    And checkpoint consumer "b" received every message exactly once

  @id:C9-reader-per-segment @IMPL-5.13 @needs-journal
  Scenario: a consumer without a group has one reader on each active segment
    Given a scalable topic with 4 segments
    And a checkpoint consumer on the topic from earliest
    Then each active segment of the topic has exactly one reader

  @id:C9-sealed-segments @IMPL-5.13
  Scenario: segments that were sealed before the consumer came are read too
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 6 messages with 3 keys
    When segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 12 messages
    Then the topic has 2 active segments
    And the checkpoint consumer received every message exactly once

  @id:C9-parents-first @WIRE-6.3.2 @needs-faults
  Scenario: the messages of a parent come before those of its children, also when the parent's reader is slow
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 6 messages with 3 keys
    When segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And segment 1 of the topic is split
    And the producer sends 6 messages with 3 keys
    And the messages of segment 0 of the topic come 300 ms late
    And the application creates a checkpoint consumer on the topic with
      | start | earliest |
    And the checkpoint consumer receives 18 messages
    Then the topic has 3 active segments
    And the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-grandparents-first @API-4.3.10 @needs-faults
  Scenario: a child does not come before its grandparent, although the parent between them is empty
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When segment 0 of the topic is split
    And segment 1 of the topic is split
    And segment 2 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the messages of segment 0 of the topic come 300 ms late
    And the application creates a checkpoint consumer on the topic from earliest
    And the checkpoint consumer receives 16 messages
    Then the topic has 4 active segments
    And the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-split-while-reading @WIRE-6.3.2 @needs-journal
  Scenario: a split while messages of the parent wait in the client
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a checkpoint consumer on the topic from earliest
    When the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 2 messages
    Then more messages went to the client than the checkpoint consumer has received
    When segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 14 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing
    And each active segment of the topic has exactly one reader

  @id:C9-merge-while-reading @WIRE-6.3.2 @needs-journal
  Scenario: a merged segment comes after both of its parents
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a checkpoint consumer on the topic from earliest
    When the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 3 messages
    Then more messages went to the client than the checkpoint consumer has received
    When segments 0 and 1 of the topic are merged
    And the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 13 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-atomic @API-4.3.7 @needs-journal
  Scenario: a checkpoint is what the application received, not what the client was sent
    Given a scalable topic with 3 segments
    And a producer on the topic
    And the producer has sent 12 messages with 8 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 5 messages
    Then more messages went to the client than checkpoint consumer "a" has received
    When the application takes checkpoint "c" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 7 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And a receive from checkpoint consumer "b" gives nothing within 100 ms

  @id:C9-later-messages @API-4.3.7
  Scenario: what is received after a checkpoint was taken is not in it
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 8 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 3 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And checkpoint consumer "a" receives 5 messages
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 5 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"

  @id:C9-restore @API-4.3.9
  Scenario: another client reads on exactly where a checkpoint was taken
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 10 messages with 6 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 6 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the producer sends 4 messages with 4 keys
    And the application creates checkpoint consumer "b" of client "second" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 8 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And a receive from checkpoint consumer "b" gives nothing within 100 ms

  @id:C9-restore-in-batch @API-4.3.9
  Scenario: a checkpoint inside a batch divides the batch
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 10 messages, 100 ms |
    When the producer starts to send 10 messages with 1 key
    Then every send succeeds
    And some entry of the topic holds several messages
    When the application creates checkpoint consumer "a" on the topic from earliest
    And checkpoint consumer "a" receives 4 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 6 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And a receive from checkpoint consumer "b" gives nothing within 100 ms

  @id:C9-restore-twice @API-4.3.9
  Scenario: a restored consumer's checkpoint holds what lay before its start
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 12 messages with 6 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 6 messages
    And the application takes checkpoint "first" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "first"
    And the application takes checkpoint "same" of checkpoint consumer "b"
    And checkpoint consumer "b" receives 1 message
    And the application takes checkpoint "second" of checkpoint consumer "b"
    And the application creates checkpoint consumer "c" on the topic from checkpoint "second"
    And checkpoint consumer "c" receives 5 messages
    And the application creates checkpoint consumer "d" on the topic from checkpoint "same"
    And checkpoint consumer "d" receives 6 messages
    Then checkpoint consumer "c" received exactly what lies behind checkpoint "second"
    And checkpoint consumer "d" received exactly what lies behind checkpoint "same"

  @id:C9-restore-after-split @API-4.3.9
  Scenario: a checkpoint from before a split is restored after it
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 3 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 13 messages
    Then the topic has 2 active segments
    And checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And checkpoint consumer "b" received the messages of each key in the order of publishing

  @id:C9-restore-after-merge @API-4.3.9
  Scenario: a checkpoint from before a split and a merge is restored after them
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 5 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And segments 2 and 3 of the topic are merged
    And the producer sends 4 messages with 4 keys
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 11 messages
    Then the topic has 2 active segments
    And checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And checkpoint consumer "b" received the messages of each key in the order of publishing

  @id:C9-checkpoint-between-generations @API-4.3.9
  Scenario: a checkpoint taken while a parent is read and its children wait
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And checkpoint consumer "a" receives 7 messages
    And the application takes checkpoint "parent" of checkpoint consumer "a"
    And checkpoint consumer "a" receives 4 messages
    And the application takes checkpoint "children" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "parent"
    And checkpoint consumer "b" receives 9 messages
    And the application creates checkpoint consumer "c" on the topic from checkpoint "children"
    And checkpoint consumer "c" receives 5 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "parent"
    And checkpoint consumer "c" received exactly what lies behind checkpoint "children"

  @id:C9-restore-positions @IMPL-7.3 @needs-journal
  Scenario: restoring starts the reader of each segment at its saved position
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | batching | off |
    And the producer has sent 8 messages
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 8 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the producer sends 4 messages without keys
    And the journal is marked
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 4 messages
    Then the readers of the topic since the mark start at the positions of checkpoint "c"
    And checkpoint consumer "b" received exactly what lies behind checkpoint "c"

  @id:C9-restore-asks-nothing @IMPL-7.5 @needs-journal
  Scenario: restoring asks the broker nothing but to attach the readers
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 6 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the journal is marked
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    Then the client sent only what attaching takes since the mark

  @id:C9-capture-asks-nothing @IMPL-7.4 @needs-journal
  Scenario: capturing a checkpoint sends nothing
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 4 messages
    And the journal is marked
    And the application takes checkpoint "c" of the checkpoint consumer
    Then the client sent nothing since the mark

  @id:C9-capture-without-brokers @IMPL-7.4 @needs-control @needs-journal
  Scenario: a checkpoint can be taken while no broker is there
    Given a cluster of 1 broker
    And a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 4 messages
    And broker 0 dies
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And broker 0 comes back
    Then a reader of the topic was attached again
    When the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 2 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"

  @id:C9-no-acknowledgement @IMPL-7.6 @needs-journal
  Scenario: neither capturing nor restoring acknowledges anything
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 6 messages
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 6 messages
    Then a receive from checkpoint consumer "a" gives nothing within 1000 ms
    When the journal is marked
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    Then a receive from checkpoint consumer "b" gives nothing within 500 ms
    And nothing was acknowledged since the mark

  @id:C9-no-subscription @API-4.3.4 @needs-journal
  Scenario: the readers of a consumer without a group are not durable
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 4 messages
    Then no reader of the topic left a subscription at the broker

  @id:C9-no-registration @WIRE-6.3.1 @needs-journal
  Scenario: a consumer without a group registers with no controller
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 4 messages
    Then the client registered with no controller

  @id:C9-no-topic @API-4.3.1
  Scenario: a checkpoint consumer needs a topic
    When the application tries to create a checkpoint consumer without a topic
    Then it fails with the category InvalidConfiguration

  @id:C9-lost-connection @IMPL-5.15 @needs-faults @needs-journal
  Scenario: after lost connections the readers go on where they were
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 5 messages
    And all connections are lost
    And the producer sends 4 messages with 4 keys
    And the checkpoint consumer receives 7 messages
    Then a reader of the topic was attached again
    And the checkpoint consumer received every message exactly once
    And a receive from the checkpoint consumer gives nothing within 100 ms
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-broker-dies @IMPL-5.15 @needs-control @needs-journal
  Scenario: the readers of a broker that dies go on at another one
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 8 messages
    And the broker of segment 0 of the topic dies
    And the producer sends 4 messages with 4 keys
    And the checkpoint consumer receives 4 messages
    Then a reader of the topic was attached again
    And the checkpoint consumer received every message exactly once

  @id:C9-loss-at-subscribe @IMPL-5.15 @needs-faults
  Scenario: the connection is lost while a reader is being attached
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And the connection breaks at the next SUBSCRIBE on the topic
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 8 messages
    Then the checkpoint consumer received every message exactly once

  @id:C9-loss-at-end-of-parent @IMPL-5.15 @needs-faults @needs-journal
  Scenario: the connection is lost while the client asks where a sealed segment ends
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 6 messages with 3 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 2 messages
    And the connection breaks at the next GET_LAST_MESSAGE_ID on the topic
    And segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And the checkpoint consumer receives 10 messages
    Then a reader of the topic was attached again
    And the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-segment-moves @IMPL-5.15 @needs-control @needs-journal
  Scenario: a reader follows its segment to another broker
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 3 messages
    And segment 0 of the topic moves to another broker
    And segment 1 of the topic moves to another broker
    And the producer sends 8 messages with 4 keys
    And the checkpoint consumer receives 13 messages
    Then a reader of the topic was attached again
    And the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing

  @id:C9-restore-after-rebucket @API-4.3.9
  Scenario: a checkpoint from before other entry buckets is restored after them
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 3 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And segment 0 of the topic is rebucketed into 8 buckets
    And the producer sends 8 messages with 4 keys
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 13 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And checkpoint consumer "b" received the messages of each key in the order of publishing

  @id:C9-restore-after-pruning @API-4.3.9 @needs-control
  Scenario: a checkpoint that names a segment that is pruned since is restored
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    And checkpoint consumer "a" on the topic from earliest
    When checkpoint consumer "a" receives 4 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the queue consumer receives and acknowledges 4 messages
    And segment 0 of the topic is split
    And the producer sends 4 messages with 4 keys
    And the drained segments of the topic are pruned
    And the application creates checkpoint consumer "b" on the topic from checkpoint "c"
    And checkpoint consumer "b" receives 4 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And a receive from checkpoint consumer "b" gives nothing within 100 ms

  @id:C9-split-while-disconnected @WIRE-6.3.2 @needs-control @needs-faults @needs-journal
  Scenario: a split that the client does not hear of until its connections are back
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 6 messages with 3 keys
    And a checkpoint consumer on the topic from earliest
    When the checkpoint consumer receives 2 messages
    And layout pushes of the topic are held
    And segment 0 of the topic is split
    And all connections are lost
    And layout pushes of the topic are released
    And the producer sends 6 messages with 3 keys
    And the checkpoint consumer receives 10 messages
    Then the checkpoint consumer received every message exactly once
    And the checkpoint consumer received the messages of each key in the order of publishing
    And each active segment of the topic has exactly one reader

  @id:C9-group-shares @API-4.3.11 @IMPL-5.14 @needs-journal
  Scenario: the members of a group share the topic
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 16 messages without keys
    And checkpoint consumers "a" and "b" receive 16 messages together
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 2 members
    And the checkpoint consumers together received every message exactly once
    And checkpoint consumer "a" has received something
    And checkpoint consumer "b" has received something

  @id:C9-group-reader-per-segment @IMPL-5.14 @needs-journal
  Scenario: a member has one reader on each segment that is assigned to it and none on others
    Given a scalable topic with 4 segments
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 1 members
    When the application creates checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 2 members

  @id:C9-group-readers @WIRE-6.2.9 @needs-journal
  Scenario: the members of a group register as checkpoint consumers
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When checkpoint consumer "a" receives 4 messages
    Then the members registered as checkpoint consumers of group "g"
    And no reader of the topic left a subscription at the broker

  @id:C9-group-no-cursor @API-4.3.13 @needs-journal
  Scenario: a group leaves no cursor at the broker
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 4 messages
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When checkpoint consumer "a" receives 4 messages
    And the application closes checkpoint consumer "a"
    Then no reader of the topic left a subscription at the broker

  @id:C9-group-names @API-4.3.3 @needs-journal
  Scenario: the names of the group and of the consumer are those that the application gave
    Given a scalable topic with 2 segments
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | auditors |
      | name  | alice    |
    Then the members registered as checkpoint consumers of group "auditors"
    And a member registered under the name "alice"

  @id:C9-group-join @API-4.3.12 @needs-journal
  Scenario: a member that joins takes over a part of the segments
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 8 messages without keys
    And checkpoint consumer "a" receives 8 messages
    And the application creates checkpoint consumer "b" of client "second" on the topic with
      | start | latest |
      | group | g      |
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 2 members
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive 8 messages together
    Then the checkpoint consumers together received every message exactly once
    And checkpoint consumer "b" has received something

  @id:C9-group-leave @API-4.3.12 @needs-journal
  Scenario: the segments of a member that leaves go to those that stay
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | latest |
      | group | g      |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | latest |
      | group | g      |
    Then the segments of the topic are shared between 2 members
    When the application closes checkpoint consumer "b"
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 1 members
    When the producer sends 8 messages without keys
    And checkpoint consumer "a" receives 8 messages
    Then checkpoint consumer "a" received every message exactly once

  @id:C9-group-lost-member @API-4.3.11 @IMPL-5.15 @needs-faults @needs-virtual-time @needs-journal
  Scenario: within the grace period both members of a group go on with what they had after lost connections
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive 8 messages together
    And all connections are lost
    And the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive 8 messages together
    Then a reader of the topic was attached again
    And each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 2 members
    And the checkpoint consumers together received every message exactly once

  @id:C9-group-past-grace @API-4.3.12 @IMPL-8.15 @needs-faults @needs-virtual-time @needs-journal
  Scenario: a member that was cut off past the grace period loses its segments, and comes back to a fresh assignment
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 8 messages without keys
    And checkpoint consumer "a" receives 8 messages
    And the journal is marked
    And the application creates checkpoint consumer "b" of client "second" on the topic with
      | start | latest |
      | group | g      |
    Then the segments of the topic are shared between 2 members
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive the last 8 messages together
    And the connections since the mark are cut off for 70 s
    Then the segments of the topic are shared between 1 members
    And each active segment of the topic has exactly one reader
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive the last 8 messages together
    And connections may be made again
    Then the segments of the topic are shared between 2 members
    And each active segment of the topic has exactly one reader
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive the last 8 messages together
    Then checkpoint consumer "a" has received something
    And checkpoint consumer "b" has received something

  @id:C9-group-controller-dies @API-2.8 @API-4.3.11 @IMPL-5.15 @C14 @needs-control @needs-journal
  Scenario: the members of a group follow the controller when its broker dies, and share the topic as before
    Given a scalable topic with 3 segments
    And the controller of the topic is not on the broker of the service URL
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 9 messages without keys
    And checkpoint consumers "a" and "b" receive 9 messages together
    And the broker of the controller of the topic dies
    And the producer sends 9 messages without keys
    And checkpoint consumers "a" and "b" receive 9 messages together
    Then each active segment of the topic has exactly one reader
    And the segments of the topic are shared between 2 members
    And the checkpoint consumers together received every message exactly once
    When the application closes checkpoint consumer "b"
    Then the segments of the topic are shared between 1 members
    And each active segment of the topic has exactly one reader

  @id:C9-group-two-groups @API-4.3.11
  Scenario: two groups know nothing of each other
    Given a scalable topic with 2 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | one      |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | two      |
    When the producer sends 6 messages with 4 keys
    And checkpoint consumer "a" receives 6 messages
    And checkpoint consumer "b" receives 6 messages
    Then checkpoint consumer "a" received every message exactly once
    And checkpoint consumer "b" received every message exactly once

  @id:C9-group-own-position @API-4.3.14 @needs-journal
  Scenario: a member reads what it gains from its own start position
    Given a scalable topic with 4 segments
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 16 messages without keys
    And checkpoint consumers "a" and "b" receive 16 messages together
    Then checkpoint consumer "b" has received something
    When the application closes checkpoint consumer "b"
    And the producer sends 4 messages without keys
    Then the segments of the topic are shared between 1 members
    When checkpoint consumer "a" receives 12 messages
    Then checkpoint consumer "a" received every message exactly once

  @id:C9-group-restored-member @API-4.3.14
  Scenario: a member that is restored from its checkpoint goes on there
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 10 messages with 6 keys
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When checkpoint consumer "a" receives 6 messages
    And the application takes checkpoint "c" of checkpoint consumer "a"
    And the application closes checkpoint consumer "a"
    And the application creates checkpoint consumer "b" of client "second" on the topic with
      | start | checkpoint "c" |
      | group | g              |
    And checkpoint consumer "b" receives 4 messages
    Then checkpoint consumer "b" received exactly what lies behind checkpoint "c"
    And a receive from checkpoint consumer "b" gives nothing within 100 ms

  @id:C9-group-split @API-4.3.11 @needs-virtual-time
  Scenario: a group reads the parent before its children
    Given a scalable topic with 1 segment
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 6 messages with 3 keys
    And checkpoint consumer "a" receives 2 messages
    And segment 0 of the topic is split
    And the producer sends 6 messages with 3 keys
    And checkpoint consumer "a" receives 4 messages
    And 120 s pass
    And checkpoint consumer "a" receives 6 messages
    Then the topic has 2 active segments
    And checkpoint consumer "a" received every message exactly once
    And checkpoint consumer "a" received the messages of each key in the order of publishing
