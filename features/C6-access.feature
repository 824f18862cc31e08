@C6
Feature: Producer access modes
  Under shared access, which is the default, several producers publish to one topic at a time.

  @id:C6-shared @API-3.1.14
  Scenario: producers of one client and of another publish to one topic
    Given a scalable topic with 2 segments
    And producer "a" on the topic
    And producer "b" on the topic
    And producer "c" of client "second" on the topic
    And a queue consumer on the topic with subscription "s"
    When producer "a" sends 3 messages without keys
    And producer "b" sends 3 messages without keys
    And producer "c" sends 3 messages without keys
    And the queue consumer receives and acknowledges 9 messages
    Then every message was received exactly once
