@C12
Feature: Auto-creation and not-found
  Whether an absent topic is created is the broker's policy; when it is not, the application is told so in the category
  NotFound.

  @id:C12-producer-creates @API-7.2
  Scenario: a producer on an absent topic creates it where the policy permits
    Given the name of an absent topic, in a namespace that permits auto-creation
    When the application creates a producer on the topic
    And the producer sends 3 messages without keys
    Then the topic exists
    And every send succeeds

  @id:C12-consumer-creates @API-7.2
  Scenario: a queue consumer on an absent topic creates it where the policy permits
    Given the name of an absent topic, in a namespace that permits auto-creation
    When the application subscribes the queue consumer on the topic with subscription "s"
    And the application creates a producer on the topic
    And the producer sends 3 messages without keys
    And the queue consumer receives and acknowledges 3 messages
    Then the topic exists
    And every message was received exactly once

  @id:C12-producer-not-found @API-3.1.12 @API-7.3 @ERR-2.18 @ERR-2.19
  Scenario: a producer on an absent topic fails with NotFound where the policy forbids
    Given the name of an absent topic, in a namespace that forbids auto-creation
    When the application tries to create a producer on the topic
    Then it fails with the category NotFound
    And the topic does not exist

  @id:C12-consumer-not-found @API-7.3 @ERR-2.18 @ERR-2.19
  Scenario: a queue consumer on an absent topic fails with NotFound where the policy forbids
    Given the name of an absent topic, in a namespace that forbids auto-creation
    When the application tries to subscribe the queue consumer on the topic with subscription "s"
    Then it fails with the category NotFound
    And the topic does not exist

  @id:C12-not-retried @ERR-3.4 @API-7.4 @needs-journal
  Scenario: NotFound is surfaced at once, and nothing is attached to
    Given the name of an absent topic, in a namespace that forbids auto-creation
    When the application tries to create a producer on the topic
    Then it fails with the category NotFound
    And the client sent SCALABLE_TOPIC_LOOKUP 1 time
    And the client sent no PRODUCER

  @id:C12-layout-first @API-7.4 @needs-journal
  Scenario: no segment is attached to before the topic is resolved
    Given the name of an absent topic, in a namespace that permits auto-creation
    When the application creates a producer on the topic
    And the producer sends a message
    Then the client attached to no segment of the topic before it had a layout
