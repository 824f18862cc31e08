@C13
Feature: Error model
  Failures carry a category that an application can branch on.

  @id:C13-authorization @ERR-2.3 @ERR-3.5 @ERR-4.4 @needs-faults @needs-journal
  Scenario: no permission to resolve the topic
    Given a scalable topic with 1 segment
    And the next 1 SCALABLE_TOPIC_LOOKUP on the topic is answered with AuthorizationError
    When the application tries to create a producer on the topic
    Then it fails with the category Authorization
    And the client sent SCALABLE_TOPIC_LOOKUP 1 time

  @id:C13-timeout @ERR-2.4 @ERR-3.11 @needs-faults @needs-journal @needs-virtual-time
  Scenario: a send without a receipt times out, and is not sent again
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | send timeout | 2000 ms |
    And the producer has sent 1 message with 1 key
    And the next 1 SEND on the topic is held
    When the producer tries to send a message with key "key-0"
    Then it fails with the category Timeout
    When 120 s pass
    Then the client sent SEND 2 times

  @id:C13-consumer-busy @ERR-2.7 @needs-faults
  Scenario: a subscription that admits no such consumer
    Given a scalable topic with 1 segment
    And the next 1 SUBSCRIBE on the topic is answered with ConsumerBusy
    When the application tries to subscribe the queue consumer on the topic with subscription "s"
    Then it fails with the category ConsumerBusy

  @id:C13-not-connected @ERR-2.10 @needs-control @needs-virtual-time
  Scenario: no broker can be reached
    Given a cluster of 1 broker
    And a scalable topic with 1 segment
    When broker 0 dies
    And the application tries to create a producer on the topic
    Then it fails with the category NotConnected

  @id:C13-no-topic @ERR-2.15 @ERR-1.1 @ERR-1.3
  Scenario: a producer without a topic
    When the application tries to create a producer without a topic
    Then it fails with the category InvalidConfiguration

  @id:C13-service-url @ERR-2.16
  Scenario: a malformed service URL is told when the client is built
    When the application tries to build a client for the service URL "not a url"
    Then it fails with the category InvalidServiceURL

  @id:C13-incompatible-schema @ERR-2.8 @C11
  Scenario: a schema that the topic's does not admit
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When the application tries to subscribe the queue consumer on the topic with
      | subscription | s     |
      | schema       | int64 |
    Then it fails with the category IncompatibleSchema

  @id:C13-schema-not-retried @ERR-3.6 @C11 @needs-journal
  Scenario: an incompatible schema is not tried again
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When the application tries to subscribe the queue consumer on the topic with
      | subscription | s     |
      | schema       | int64 |
    Then it fails with the category IncompatibleSchema
    And the client sent SUBSCRIBE 1 time

  @id:C13-queue-full @ERR-2.11 @ERR-1.2 @needs-faults
  Scenario: a full queue of pending sends fails the next ones, where the application does not want to wait
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching            | off |
      | max pending         | 3   |
      | block if queue full | no  |
    And the producer has sent 1 message
    And the next 3 SEND on the topic are held
    When the producer starts to send 6 messages of 10 bytes
    And 3 frames are held
    Then some of the started sends have failed with the category ProducerQueueFull
    When the held frames are released
    And every send has ended
    And the producer sends 3 messages without keys
    Then the last 3 sends succeeded

  @id:C13-queue-waits @ERR-2.11 @needs-faults
  Scenario: a full queue of pending sends makes the next ones wait, where the application wants that
    Given a scalable topic with 1 segment
    And a producer on the topic with
      | batching            | off |
      | max pending         | 3   |
      | block if queue full | yes |
    And the producer has sent 1 message
    And the next 3 SEND on the topic are held
    When the producer starts to send 6 messages with 1 key
    And 3 frames are held
    Then no started send has ended
    When the held frames are released
    Then every send succeeds
    And every message of the topic is stored exactly once
    And the messages of every key of the topic are stored in the order of their sends

  @id:C13-memory-full @ERR-2.12 @ERR-3.13 @needs-faults
  Scenario: the client's memory limit fails sends, and they are not tried again
    Given the client with
      | memory limit | 2000 |
    And a scalable topic with 1 segment
    And a producer on the topic with
      | block if queue full | no |
    And the producer has sent 1 message
    And the next 1 SEND on the topic is held
    When the producer starts to send 12 messages of 500 bytes
    Then some of the started sends have failed with the category MemoryBufferFull
    When the held frames are released
    And every send has ended
    And the producer sends 3 messages without keys
    Then the last 3 sends succeeded
    And no message of the topic whose send failed is stored

  @id:C13-failures-by-future @ERR-1.2 @ERR-1.3
  Scenario: an asynchronous send fails its future and throws nothing
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When the application closes the producer
    And the producer starts to send 3 messages of 10 bytes
    Then the started sends have failed with the category AlreadyClosed
