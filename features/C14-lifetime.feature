@C14
Feature: Resource lifetime
  A producer or consumer that was made once stays usable until the application closes it; closing is graceful and may be
  repeated.

  @id:C14-close-completes-sends @API-3.3.3 @needs-faults
  Scenario: closing a producer completes the sends that are pending
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the next 1 SEND on the topic is held
    When the producer starts to send 1 message with 1 key
    And 1 frame is held
    And the application starts to close the producer
    Then the close that was started is still waiting
    When the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C14-client-close-completes-sends @API-2.3 @needs-faults
  Scenario: closing the client completes the sends that are pending
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the next 1 SEND on the topic is held
    When the producer starts to send 1 message with 1 key
    And 1 frame is held
    And the application starts to close the client
    Then the close that was started is still waiting
    When the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C14-close-sends-batch @API-3.3.3
  Scenario: closing a producer sends what waits for its batch
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 1000 messages, 120000 ms |
    When the producer starts to send 4 messages with 4 keys
    And the application closes the producer
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C14-client-close-sends-batch @API-2.3
  Scenario: closing the client sends what waits for a batch
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching | 1000 messages, 120000 ms |
    When the producer starts to send 4 messages with 4 keys
    And the application closes the client
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C14-close-releases @API-3.3.4 @needs-journal
  Scenario: closing a producer closes its segment producers and its watch
    Given a scalable topic with 3 segments
    And a producer on the topic
    When the producer sends 6 messages without keys
    And the application closes the producer
    Then no producer of the topic is open any more
    And the client has closed every layout watch of the topic

  @id:C14-close-twice @API-3.3.5
  Scenario: closing a producer again succeeds
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When the application closes the producer
    And the application closes the producer
    Then every send succeeds

  @id:C14-closed-client-refuses @API-2.5
  Scenario: a closed client refuses to make producers
    Given a scalable topic with 1 segment
    And a producer on the topic
    When the application closes the client
    And the application tries to create producer "late" on the topic
    Then it fails with the category AlreadyClosed

  @id:C14-closed-producer-refuses @ERR-2.5 @C13
  Scenario: a closed producer refuses to send
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When the application closes the producer
    And the producer tries to send a message
    Then it fails with the category AlreadyClosed

  @id:C14-lost-connection @API-2.7 @API-2.6 @needs-faults
  Scenario: the same producer and consumer go on after lost connections
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the queue consumer receives and acknowledges 4 messages
    And all connections are lost
    And the producer sends 4 messages with 4 keys
    And the queue consumer receives and acknowledges 4 messages
    Then every message was received exactly once

  @id:C14-loss-with-pending-sends @API-2.7 @needs-faults
  Scenario: sends that are pending when the connection is lost are published
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    And the connection breaks at the next SEND on the topic
    When the producer starts to send 5 messages with 2 keys
    Then every send succeeds
    And every message of the topic is stored exactly once

  @id:C14-keep-alive @API-2.7 @needs-journal @needs-virtual-time
  Scenario: an idle client answers the brokers' pings
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message with 1 key
    When 300 s pass
    Then no connection was closed

  @id:C14-broker-dies @API-2.8 @needs-control @needs-journal
  Scenario: the same producer and consumer go on when the broker of a segment dies
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the queue consumer receives and acknowledges 4 messages
    And the broker of segment 0 of the topic dies
    And the producer sends 4 messages with 4 keys
    Then the queue consumer receives everything, some of it perhaps twice

  @id:C14-after-error @API-2.10 @needs-faults @needs-virtual-time
  Scenario: a send that failed does not spoil the producer
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | send timeout | 2000 ms |
    And the producer has sent 1 message with 1 key
    And the next 1 SEND on the topic is held
    When the producer tries to send a message with key "key-0"
    Then it fails with the category Timeout
    When the held frames are released
    And the producer sends 3 messages with 2 keys
    Then the last 3 sends succeeded

  @id:C14-at-the-same-time @API-2.1
  Scenario: one client is used by many at the same time
    Given a scalable topic with 3 segments
    When the application creates 8 producers on the topic at the same time
    And the application subscribes the queue consumer on the topic with subscription "s"
    And every producer sends 4 messages with 4 keys at the same time
    Then every message of the topic is stored exactly once
    When the queue consumer receives and acknowledges 32 messages
    Then every message was received exactly once

  @id:C14-one-reconnect @IMPL-9.5 @needs-control @needs-faults @needs-journal
  Scenario: one loss leads to one new connection for each broker
    Given a cluster of 2 brokers
    And a scalable topic with 6 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 12 messages
    When the journal is marked
    And all connections are lost
    And the producer sends 12 messages without keys
    And the queue consumer receives and acknowledges 24 messages
    Then the client has connected to each broker once since the mark

  @id:C14-failed-receive @ERR-1.6
  Scenario: a receive that fails leaves the consumer usable
    Given a scalable topic with 1 segment
    And a queue consumer on the topic with
      | subscription | s     |
      | schema       | int64 |
    And producer "raw" on the topic with
      | schema | bytes |
    When producer "raw" sends a message with
      | value | 00ff |
    And producer "raw" sends a message with
      | value | 0000000000000007 |
    And the application tries to receive from the queue consumer
    Then it fails
    When the queue consumer receives 1 message
    Then the last message has
      | value | 7 |
