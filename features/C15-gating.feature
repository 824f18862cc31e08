@C15
Feature: Feature gating
  A broker that does not advertise scalable topics gets none of their commands, and the operation ends with an error.

  @id:C15-producer @COMPAT-3.2 @COMPAT-3.3 @needs-control @needs-journal
  Scenario: a producer against a broker without scalable topics
    Given a cluster whose brokers do not advertise scalable topics
    And a scalable topic with 1 segment
    When the application tries to create a producer on the topic
    Then the client sent no scalable-topic command
    And it fails

  @id:C15-queue-consumer @COMPAT-3.2 @COMPAT-3.3 @needs-control @needs-journal
  Scenario: a queue consumer against a broker without scalable topics
    Given a cluster whose brokers do not advertise scalable topics
    And a scalable topic with 1 segment
    When the application tries to subscribe the queue consumer on the topic with subscription "s"
    Then the client sent no scalable-topic command
    And it fails
