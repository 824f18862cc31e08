@C14
Feature: A topic that is deleted and created again
  The new topic of the name begins at epoch 0, and its segments have the ids of former ones. Whoever was created before
  and not closed goes on with it (docs/readings.md, "A topic that is deleted and created again").

  @id:C14-recreated-producing @API-2.6
  Scenario Outline: a producer goes on with the topic that took the place of the one that was deleted: <case>
    Given a scalable topic with 2 segments
    And the topic was split <splits> times
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When the topic is deleted
    And the topic is created again with 2 segments
    And the producer sends 6 messages with 6 keys
    Then the last 6 sends succeeded
    And the topic stores 6 messages

    Examples:
      | case         | splits |
      | equal-epoch  | 0      |
      | lower-epoch  | 2      |

  @id:C14-recreated-pending @API-2.6 @needs-virtual-time
  Scenario: sends that are made while the topic is not there go to the next one
    Given a scalable topic with 2 segments
    And the topic was split 1 times
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    When the topic is deleted
    And the producer starts to send 4 messages with 4 keys
    And 10 s pass
    And the topic is created again with 2 segments
    Then every send succeeds
    And the topic stores 4 messages

  @id:C14-recreated-queue @API-2.6 @C8
  Scenario Outline: a queue consumer goes on with the topic that took the place of the one that was deleted: <case>
    Given a scalable topic with 2 segments
    And the topic was split <splits> times
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the queue consumer receives and acknowledges 4 messages
    And the topic is deleted
    And the topic is created again with 2 segments
    And the application creates producer "new" on the topic
    And producer "new" sends 6 messages with 6 keys
    And the queue consumer receives and acknowledges 6 messages
    Then every message was received exactly once

    Examples:
      | case         | splits |
      | equal-epoch  | 0      |
      | lower-epoch  | 2      |

  @id:C14-recreated-stream @API-2.6 @C7
  Scenario Outline: a stream consumer goes on with the topic that took the place of the one that was deleted: <case>
    Given a scalable topic with 2 segments
    And the topic was split <splits> times
    And a producer on the topic
    And stream consumer "a" on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the stream consumers receive and acknowledge everything
    And the topic is deleted
    And the topic is created again with 2 segments
    And the application creates producer "new" on the topic
    And producer "new" sends 6 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    And the application subscribes stream consumer "b" on the topic with subscription "s"
    And producer "new" sends 12 messages with 12 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And the messages of each key came in the order of their sends
    And each stream consumer received a part of the messages

    Examples:
      | case         | splits |
      | equal-epoch  | 0      |
      | lower-epoch  | 2      |

  @id:C14-recreated-checkpoint @API-2.6 @C9
  Scenario Outline: a checkpoint consumer goes on with the topic that took the place of the one that was deleted: <case>
    Given a scalable topic with 2 segments
    And the topic was split <splits> times
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    And a checkpoint consumer on the topic from <start>
    When the producer sends 4 messages with 4 keys
    And the checkpoint consumer receives <messages> messages
    And the topic is deleted
    And the topic is created again with 2 segments
    And the application creates producer "new" on the topic
    And producer "new" sends 6 messages with 6 keys
    And the checkpoint consumer receives 6 messages
    Then the checkpoint consumer received the messages of each key in the order of publishing
    And a receive from the checkpoint consumer gives nothing within 500 ms

    Examples:
      | case         | splits | start    | messages |
      | equal-epoch  | 0      | earliest | 8        |
      | lower-epoch  | 2      | earliest | 8        |
      | from-latest  | 2      | latest   | 4        |

  @id:C14-recreated-group @API-2.6 @C9 @needs-journal
  Scenario Outline: the members of a group go on with the topic that took the place of the one that was deleted: <case>
    Given a scalable topic with 2 segments
    And the topic was split <splits> times
    And a producer on the topic
    And checkpoint consumer "a" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "b" of client "second" on the topic with
      | start | earliest |
      | group | g        |
    When the producer sends 8 messages without keys
    And checkpoint consumers "a" and "b" receive 8 messages together
    And the topic is deleted
    And the topic is created again with 2 segments
    Then the segments of the topic are shared between 2 members
    When the application creates producer "new" on the topic
    And producer "new" sends 6 messages without keys
    And checkpoint consumers "a" and "b" receive 6 messages together
    Then the checkpoint consumers together received every message exactly once
    And checkpoint consumer "a" has received something
    And checkpoint consumer "b" has received something

    Examples:
      | case         | splits |
      | equal-epoch  | 0      |
      | lower-epoch  | 2      |
