@migration
Feature: Migration bridge
  Classic topics are produced to and consumed from under their own names.

  @id:migration-wrapped-topic @WIRE-3.2 @COMPAT-1.5 @needs-journal
  Scenario: a legacy segment is attached to by the name of the topic that it wraps
    Given a classic topic with 2 partitions
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the producer sends 6 messages with 6 keys
    And the queue consumer receives and acknowledges 6 messages
    Then every message was received exactly once
    And the client attached to the 2 partitions of the topic by their names

  @id:migration-short-name @COMPAT-1.3
  Scenario: a short name means the persistent topic in public/default
    Given a classic topic without partitions
    And the topic is called by its short name
    And a producer on the topic
    When the producer sends 3 messages without keys
    Then the messages are stored in the persistent topic of that name
