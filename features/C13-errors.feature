@C13
Feature: Error model
  Failures carry a category that an application can branch on.

  @id:C13-authorization @ERR-2.3 @ERR-3.5 @ERR-4.4 @needs-control @needs-journal
  Scenario: no permission to resolve the topic
    Given a scalable topic with 1 segment
    And the next 1 SCALABLE_TOPIC_LOOKUP on the topic is answered with AuthorizationError
    When the application tries to create a producer on the topic
    Then it fails with the category Authorization
    And the client sent SCALABLE_TOPIC_LOOKUP 1 time

  @id:C13-timeout @ERR-2.4 @ERR-3.11 @needs-control @needs-journal @needs-virtual-time
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

  @id:C13-consumer-busy @ERR-2.7 @needs-control
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

  @id:C13-no-topic @ERR-2.15 @ERR-1.1
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
