@C14
Feature: Loss of the connection at every step
  Whatever command the connection breaks at, before the broker acts on it or after, when only the answer is lost: the
  same producer or consumer goes on, and nothing is lost. Each row is one command of one flow, and one side of the
  broker's change of state. The fault strikes the first such command; one that never struck fails its row.

  @id:C14-loss-producing @API-2.7 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a producer
    Given deduplication is enabled for the namespace
    And a scalable topic with 2 segments
    And the connection breaks <when> the next <command>
    And a producer on the topic with
      | name | p |
    When the producer starts to send 8 messages with 4 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends
    When the application closes the producer
    Then no producer of the topic is open any more

    Examples:
      | case           | when  | command               |
      | connect        | at    | CONNECT               |
      | connected      | after | CONNECT               |
      | watch          | at    | SCALABLE_TOPIC_LOOKUP |
      | watched        | after | SCALABLE_TOPIC_LOOKUP |
      | attach         | at    | PRODUCER              |
      | attached       | after | PRODUCER              |
      | send           | at    | SEND                  |
      | stored         | after | SEND                  |
      | close          | at    | CLOSE_PRODUCER        |
      | closed         | after | CLOSE_PRODUCER        |
      | watch-close    | at    | SCALABLE_TOPIC_CLOSE  |
      | watch-closed   | after | SCALABLE_TOPIC_CLOSE  |

  @id:C14-loss-producing-lookup @API-2.7 @needs-faults
  Scenario Outline: the connection breaks <when> the LOOKUP that follows a failed attempt to attach a producer
    Given a scalable topic with 2 segments
    And the connection breaks at the next PRODUCER
    And the connection breaks <when> the next LOOKUP
    And a producer on the topic
    When the producer starts to send 8 messages with 4 keys
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

    Examples:
      | case   | when  |
      | asked  | at    |
      | told   | after |

  @id:C14-loss-queue @API-2.7 @C8 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a queue consumer
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And the connection breaks <when> the next <command>
    And queue consumer "a" of client "two" on the topic with subscription "s"
    When queue consumer "a" receives and acknowledges everything
    And the application closes queue consumer "a"
    Then queue consumer "a" is attached to no segment any more
    When the application subscribes queue consumer "later" on the topic with subscription "s"
    Then a receive from queue consumer "later" gives nothing within 500 ms

    Examples:
      | case       | when  | command               |
      | connect    | at    | CONNECT               |
      | connected  | after | CONNECT               |
      | watch      | at    | SCALABLE_TOPIC_LOOKUP |
      | watched    | after | SCALABLE_TOPIC_LOOKUP |
      | attach     | at    | SUBSCRIBE             |
      | attached   | after | SUBSCRIBE             |
      | permits    | at    | FLOW                  |
      | permitted  | after | FLOW                  |
      | ack        | at    | ACK                   |
      | acked      | after | ACK                   |
      | close      | at    | CLOSE_CONSUMER        |
      | closed     | after | CLOSE_CONSUMER        |

  @id:C14-loss-queue-lookup @API-2.7 @C8 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> the LOOKUP that follows a failed attempt to attach a queue consumer
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And the connection breaks at the next SUBSCRIBE
    And the connection breaks <when> the next LOOKUP
    And queue consumer "a" of client "two" on the topic with subscription "s"
    When queue consumer "a" receives and acknowledges everything
    And the application closes queue consumer "a"
    Then queue consumer "a" is attached to no segment any more

    Examples:
      | case   | when  |
      | asked  | at    |
      | told   | after |

  @id:C14-loss-redelivery @API-2.7 @C8 @needs-faults
  Scenario Outline: the connection breaks <when> a queue consumer asks for a message again
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages
    And a queue consumer on the topic with subscription "s"
    When the queue consumer receives 4 messages
    And the connection breaks <when> the next REDELIVER_UNACKNOWLEDGED_MESSAGES
    And the queue consumer negatively acknowledges message number 2 of those it received
    And the queue consumer receives and acknowledges 4 messages
    Then a receive from the queue consumer gives nothing within 1000 ms

    Examples:
      | case   | when  |
      | asked  | at    |
      | sent   | after |

  @id:C14-loss-stream @API-2.7 @IMPL-8.13 @C7 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a stream consumer
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And the connection breaks <when> the next <command>
    And stream consumer "a" of client "two" on the topic with subscription "s"
    When the stream consumers receive and acknowledge everything
    Then stream consumer "a" is attached to exactly what it is assigned
    And every message came to the stream consumers
    And the messages of each key came in the order of their sends
    When the application closes stream consumer "a"
    Then nothing of stream consumer "a" is open any more
    When the application subscribes stream consumer "later" on the topic with subscription "s"
    Then stream consumer "later" receives exactly what was not acknowledged

    Examples:
      | case       | when  | command                    |
      | connect    | at    | CONNECT                    |
      | connected  | after | CONNECT                    |
      | watch      | at    | SCALABLE_TOPIC_LOOKUP      |
      | watched    | after | SCALABLE_TOPIC_LOOKUP      |
      | register   | at    | SCALABLE_TOPIC_SUBSCRIBE   |
      | registered | after | SCALABLE_TOPIC_SUBSCRIBE   |
      | attach     | at    | SUBSCRIBE                  |
      | attached   | after | SUBSCRIBE                  |
      | permits    | at    | FLOW                       |
      | permitted  | after | FLOW                       |
      | ack        | at    | ACK                        |
      | acked      | after | ACK                        |
      | leave      | at    | SCALABLE_TOPIC_UNSUBSCRIBE |
      | left       | after | SCALABLE_TOPIC_UNSUBSCRIBE |
      | close      | at    | CLOSE_CONSUMER             |
      | closed     | after | CLOSE_CONSUMER             |

  @id:C14-loss-stream-lookup @API-2.7 @IMPL-8.13 @C7 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> the LOOKUP that follows a failed attempt to attach a stream consumer
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    And the connection breaks at the next SUBSCRIBE
    And the connection breaks <when> the next LOOKUP
    And stream consumer "a" of client "two" on the topic with subscription "s"
    When the stream consumers receive and acknowledge everything
    Then stream consumer "a" is attached to exactly what it is assigned
    And every message came to the stream consumers
    And the messages of each key came in the order of their sends

    Examples:
      | case   | when  |
      | asked  | at    |
      | told   | after |

  @id:C14-loss-drain @API-2.7 @IMPL-8.13 @C7 @needs-faults @needs-virtual-time @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a stream consumer that drains a segment
    Given a scalable topic with 2 segments
    And a producer on the topic
    And stream consumer "a" of client "two" on the topic with subscription "s"
    When the producer sends 12 messages with 6 keys
    And stream consumer "a" receives 12 messages
    And the application starts to subscribe stream consumer "b" on the topic with subscription "s"
    And the connection breaks <when> the next <command>
    And stream consumer "a" acknowledges its last message
    And the subscribe of stream consumer "b" has ended
    And the producer sends 12 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then stream consumer "a" is attached to exactly what it is assigned
    And stream consumer "b" is attached to exactly what it is assigned
    And every message came to the stream consumers
    And the messages of each key came in the order of their sends

    Examples:
      | case    | when  | command        |
      | ack     | at    | ACK            |
      | acked   | after | ACK            |
      | close   | at    | CLOSE_CONSUMER |
      | closed  | after | CLOSE_CONSUMER |

  @id:C14-loss-checkpoint @API-2.7 @IMPL-5.15 @C9 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a checkpoint consumer
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the connection breaks <when> the next <command>
    And the application creates checkpoint consumer "a" of client "two" on the topic from earliest
    And checkpoint consumer "a" receives 16 messages
    Then checkpoint consumer "a" received every message exactly once
    And checkpoint consumer "a" received the messages of each key in the order of publishing
    And a receive from checkpoint consumer "a" gives nothing within 1000 ms
    When the application closes checkpoint consumer "a"
    Then no reader of the topic is open any more

    Examples:
      | case       | when  | command               |
      | connect    | at    | CONNECT               |
      | connected  | after | CONNECT               |
      | watch      | at    | SCALABLE_TOPIC_LOOKUP |
      | watched    | after | SCALABLE_TOPIC_LOOKUP |
      | attach     | at    | SUBSCRIBE             |
      | attached   | after | SUBSCRIBE             |
      | permits    | at    | FLOW                  |
      | permitted  | after | FLOW                  |
      | end        | at    | GET_LAST_MESSAGE_ID   |
      | end-told   | after | GET_LAST_MESSAGE_ID   |
      | close      | at    | CLOSE_CONSUMER        |
      | closed     | after | CLOSE_CONSUMER        |

  @id:C14-loss-checkpoint-latest @API-2.7 @IMPL-5.15 @C9 @needs-faults
  Scenario Outline: the connection breaks <when> a checkpoint consumer asks where a segment ends to start there
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 4 messages with 4 keys
    And the connection breaks <when> the next GET_LAST_MESSAGE_ID
    And a checkpoint consumer on the topic from latest
    When the producer sends 4 messages with 4 keys
    And the checkpoint consumer receives 4 messages
    Then the checkpoint consumer received exactly the last 4 messages

    Examples:
      | case   | when  |
      | asked  | at    |
      | told   | after |

  @id:C14-loss-group @API-2.7 @IMPL-5.15 @C9 @needs-faults @needs-journal
  Scenario Outline: the connection breaks <when> a <command> of a member of a checkpoint group
    Given a scalable topic with 2 segments
    And a producer on the topic
    And the producer has sent 8 messages with 4 keys
    When the connection breaks <when> the next <command>
    And the application creates checkpoint consumer "a" of client "two" on the topic with
      | start | earliest |
      | group | g        |
    And checkpoint consumer "a" receives 8 messages
    And the producer sends 8 messages with 4 keys
    And checkpoint consumer "a" receives 8 messages
    Then checkpoint consumer "a" received every message exactly once
    And checkpoint consumer "a" received the messages of each key in the order of publishing
    And each active segment of the topic has exactly one reader
    When the application closes checkpoint consumer "a"
    Then no reader of the topic is open any more

    Examples:
      | case       | when  | command                    |
      | connect    | at    | CONNECT                    |
      | connected  | after | CONNECT                    |
      | watch      | at    | SCALABLE_TOPIC_LOOKUP      |
      | watched    | after | SCALABLE_TOPIC_LOOKUP      |
      | register   | at    | SCALABLE_TOPIC_SUBSCRIBE   |
      | registered | after | SCALABLE_TOPIC_SUBSCRIBE   |
      | attach     | at    | SUBSCRIBE                  |
      | attached   | after | SUBSCRIBE                  |
      | permits    | at    | FLOW                       |
      | permitted  | after | FLOW                       |
      | leave      | at    | SCALABLE_TOPIC_UNSUBSCRIBE |
      | left       | after | SCALABLE_TOPIC_UNSUBSCRIBE |
      | close      | at    | CLOSE_CONSUMER             |
      | closed     | after | CLOSE_CONSUMER             |
