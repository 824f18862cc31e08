Feature: Authentication, authorization and TLS
  The mechanisms are Pulsar's own, on segments too. What a client shows is what it has at the moment.

  @id:security-fresh-when-asked @WIRE-10.2 @COMPAT-5.1 @needs-control @needs-journal @needs-virtual-time
  Scenario: a broker that asks for fresh credentials gets them, and the connection stays
    Given a cluster that asks for tokens
      | alice | produce, consume |
    And the client with
      | token | alice-token |
    And a scalable topic with 3 segments
    And a producer on the topic
    And the producer has sent 6 messages
    When the token "alice-2" of alice becomes valid
    And the client gets the token "alice-2"
    And the token "alice-token" expires
    And 300 s pass
    And the producer sends 6 messages without keys
    Then every question for credentials was answered with the token "alice-2"
    And no connection was closed

  @id:security-fresh-on-reconnect @WIRE-10.2 @COMPAT-5.1 @needs-control @needs-faults @needs-journal
  Scenario: a connection that is made again shows the credentials of now
    Given a cluster that asks for tokens
      | alice | produce, consume |
    And the client with
      | token | alice-token |
    And a scalable topic with 3 segments
    And a producer on the topic
    And the producer has sent 6 messages
    When the token "alice-2" of alice becomes valid
    And the client gets the token "alice-2"
    And the journal is marked
    And all connections are lost
    And the producer sends 6 messages without keys
    Then every connection since the mark was opened with the token "alice-2"
    And every send succeeds

  @id:security-tls @WIRE-10.2 @COMPAT-5.1 @needs-control @needs-faults @needs-journal
  Scenario: a client that is told TLS uses it with every broker, after losses and moves too
    Given a cluster that speaks TLS too
    And the client with
      | tls | yes |
    And a scalable topic with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a stream consumer on the topic with subscription "t"
    When the producer sends 8 messages without keys
    And segment 0 of the topic is split
    And all connections are lost
    And the producer sends 8 messages without keys
    And segment 1 of the topic moves to another broker
    And the producer sends 8 messages without keys
    And the queue consumer receives and acknowledges 24 messages
    Then every message was received exactly once
    And every connection of the client is over TLS

  @id:security-tls-token @COMPAT-5.1 @needs-control @needs-faults @needs-journal
  Scenario: tokens are shown by TLS as well
    Given a cluster that speaks TLS too
    And a cluster that asks for tokens
      | alice | produce, consume |
    And the client with
      | tls   | yes         |
      | token | alice-token |
    And a scalable topic with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the journal is marked
    And all connections are lost
    And the producer sends 8 messages without keys
    And the queue consumer receives and acknowledges 8 messages
    Then every message was received exactly once
    And every connection since the mark was opened with the token "alice-token"
    And every connection of the client is over TLS

  @id:security-authentication @ERR-2.2 @ERR-3.5 @C13 @needs-control @needs-journal
  Scenario Outline: credentials that the broker refuses are told as such, at once: <case>
    Given a cluster that asks for tokens
      | alice | produce, consume |
    And the client with
      | <option> | <value> |
    And a scalable topic with 1 segment
    When the application tries to create a producer on the topic
    Then it fails with the category Authentication
    And the client sent CONNECT 1 time

    Examples:
      | case  | option       | value         |
      | wrong | token        | somebody-else |
      | none  | memory limit | 1000000       |

  @id:security-produce @ERR-2.3 @C13 @needs-control
  Scenario: who may only consume is refused as a producer of a segment
    Given a cluster that asks for tokens
      | bob | consume |
    And the client with
      | token | bob-token |
    And a scalable topic with 2 segments
    When the application tries to create a producer on the topic with
      | access | exclusive |
    Then it fails with the category Authorization

  @id:security-consume @ERR-2.3 @C13 @needs-control
  Scenario Outline: who may only produce is refused as a consumer: <case>
    Given a cluster that asks for tokens
      | alice | produce |
    And the client with
      | token | alice-token |
    And a scalable topic with 2 segments
    When <attempt>
      | subscription | s |
    Then it fails with the category Authorization

    Examples:
      | case   | attempt                                                                  |
      | queue  | the application tries to subscribe the queue consumer on the topic with  |
      | stream | the application tries to subscribe the stream consumer on the topic with |

  @id:security-look @ERR-2.3 @ERR-4.4 @C13 @needs-control
  Scenario: who may do nothing may not even look
    Given a cluster that asks for tokens
      | nobody | nothing |
    And the client with
      | token | nobody-token |
    And a scalable topic with 1 segment
    When the application tries to create a producer on the topic
    Then it fails with the category Authorization
