Feature: A protocol that grows
  A later release of the broker may put optional fields into its commands that today's clients do not know.

  @id:STAB-unknown-fields @STAB-4.1.1 @needs-control @needs-journal
  Scenario: every command of the brokers carries unknown fields
    Given a cluster whose brokers put unknown fields into every command
    And a scalable topic with 1 segment
    When the application tries to create a producer on the topic
    Then it succeeds
    When the producer sends 8 messages with 4 keys
    And segment 0 of the topic is split
    And the producer sends 8 messages with 4 keys
    And the application tries to subscribe the queue consumer on the topic with
      | subscription     | s        |
      | initial position | earliest |
    Then it succeeds
    When the queue consumer receives and acknowledges 16 messages
    Then every message was received exactly once
    And no connection was closed
