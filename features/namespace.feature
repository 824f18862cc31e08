@namespace
Feature: Subscribing to a namespace
  A stream consumer of a namespace reads all its scalable topics, or those with certain properties. Topics come and go while
  it lives; its acknowledgements are cumulative across all of them.

  # ---- subscribing ----

  @id:NS-all-topics @API-4.4.1 @API-4.4.3 @WIRE-7.10 @CONF-3.4
  Scenario: everything that is in the namespace's topics comes through one consumer
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 4 messages with 4 keys
    And producer "b" has sent 3 messages with 3 keys
    When the stream consumer receives 7 messages
    Then every message came to the stream consumers exactly once
    And every message told the topic that it was sent to

  @id:NS-older-messages @API-4.4.1 @API-4.1.3
  Scenario: a new subscription begins where it is told in every topic
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 2 messages with 2 keys
    And producer "b" has sent 2 messages with 2 keys
    When the application subscribes a stream consumer on the namespace with subscription "s"
    And the stream consumer receives 4 messages
    Then every message came to the stream consumers exactly once

  @id:NS-filters @API-4.4.2
  Scenario: topics are read that have all the properties that are asked for
    Given a namespace
    And scalable topic "both" in the namespace with 1 segment and the properties "team=x, tier=1"
    And scalable topic "one" in the namespace with 1 segment and the properties "team=x"
    And scalable topic "other" in the namespace with 1 segment and the properties "team=x, tier=2"
    And scalable topic "more" in the namespace with 1 segment and the properties "team=x, tier=1, kind=log"
    And scalable topic "none" in the namespace with 1 segment
    And a stream consumer on the topics with "team=x, tier=1" of the namespace with subscription "s"
    And producer "both" on topic "both"
    And producer "one" on topic "one"
    And producer "other" on topic "other"
    And producer "more" on topic "more"
    And producer "none" on topic "none"
    When producer "one" sends 2 messages with 2 keys
    And producer "other" sends 2 messages with 2 keys
    And producer "none" sends 2 messages with 2 keys
    And producer "both" sends a message
    And the stream consumer receives 1 message
    And producer "more" sends a message
    And the stream consumer receives 1 message
    Then every message told the topic that it was sent to
    And a receive from the stream consumer gives nothing within 300 ms

  @id:NS-watch @WIRE-7.1 @WIRE-7.2 @needs-journal
  Scenario Outline: the topics are found through a watch with the filters that are asked for: <case>
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment and the properties "team=x, tier=1"
    When the application subscribes a stream consumer on the topics with "<properties>" of the namespace with subscription "s"
    Then the client watches the namespace for topics with "<properties>"

    Examples:
      | case | properties     |
      | all  |                |
      | one  | team=x         |
      | two  | team=x, tier=1 |

  @id:NS-own-sessions @WIRE-7.9 @needs-journal
  Scenario: each topic is looked up and registered for by itself
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 2 segments
    When the application subscribes a stream consumer on the namespace with subscription "s"
    Then the stream consumer has a layout watch and a registration of its own for each of the topics "a, b"

  @id:NS-both @C7 @API-4.1.1
  Scenario: a topic and a namespace together are refused
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    When the application tries to subscribe a stream consumer on topic "a" and the namespace
    Then the subscribe to both is refused

  @id:NS-absent @API-4.4.7 @ERR-2.18 @needs-control
  Scenario: a namespace that does not exist fails the subscribe
    Given the name of a namespace that does not exist
    When the application tries to subscribe a stream consumer on the namespace
    Then it fails with the category NotFound

  @id:NS-refused @API-4.4.7 @needs-faults
  Scenario Outline: a watch that is refused fails the subscribe: <case>
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And the next 1 WATCH_SCALABLE_TOPICS is answered with <error>
    When the application tries to subscribe a stream consumer on the namespace
    Then it fails with the category <category>

    Examples:
      | case          | error              | category      |
      | not-found     | TopicNotFound      | NotFound      |
      | authorization | AuthorizationError | Authorization |

  @id:NS-gated @C15 @COMPAT-3.2 @needs-control @needs-journal
  Scenario: a broker that does not advertise scalable topics gets no watch
    Given a cluster whose brokers do not advertise scalable topics
    And a namespace
    When the application tries to subscribe a stream consumer on the namespace
    Then it fails
    And the client sent no scalable-topic command

  # ---- topics that come and go ----

  @id:NS-topic-comes @API-4.4.4 @WIRE-7.12
  Scenario Outline: a topic that is made later is read too: <case>
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment and the properties "<first>"
    And a stream consumer on the topics with "team=x" of the namespace with subscription "s"
    When scalable topic "b" is created in the namespace with 2 segments and the properties "team=x"
    And scalable topic "c" is created in the namespace with 1 segment and the properties "team=x"
    And the application creates producer "b" on topic "b"
    And the application creates producer "c" on topic "c"
    And producer "b" sends 4 messages with 4 keys
    And producer "c" sends 2 messages with 2 keys
    And the stream consumer receives 6 messages
    Then every message came to the stream consumers exactly once
    And every message told the topic that it was sent to

    Examples:
      | case              | first  |
      | beside-another    | team=x |
      | into-an-empty-set | team=y |

  @id:NS-property-comes @API-4.4.4 @needs-control
  Scenario: a topic that gets the properties that are asked for is read from then on
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment and the properties "team=y"
    And producer "a" on topic "a"
    And producer "a" has sent 2 messages with 2 keys
    And a stream consumer on the topics with "team=x" of the namespace with subscription "s"
    When topic "a" gets the properties "team=x"
    And the stream consumer receives 2 messages
    Then every message came to the stream consumers exactly once

  @id:NS-topic-goes @API-4.4.5
  Scenario: a topic that is deleted is forgotten, and the others are read on
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "b" on topic "b"
    When topic "a" is deleted
    And scalable topic "c" is created in the namespace with 1 segment
    And the application creates producer "c" on topic "c"
    And producer "c" sends 2 messages with 2 keys
    And producer "b" sends 4 messages with 4 keys
    And the stream consumer receives and acknowledges 6 messages
    Then every message came to the stream consumers exactly once
    And topic "a" does not exist

  @id:NS-property-goes @API-4.4.5 @IMPL-6.9 @needs-control @needs-journal
  Scenario: a topic that loses the properties that are asked for is let go of
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments and the properties "team=x"
    And scalable topic "b" in the namespace with 1 segment and the properties "team=x"
    And a stream consumer on the topics with "team=x" of the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 4 messages with 4 keys
    When the stream consumer receives 4 messages
    And topic "a" gets the properties "team=y"
    Then the client has let go of topic "a"
    And nothing of topic "a" was acknowledged
    When producer "a" sends 2 messages with 2 keys
    And producer "b" sends a message
    And the stream consumer receives 1 message
    Then every message told the topic that it was sent to
    And a receive from the stream consumer gives nothing within 300 ms

  @id:NS-topic-again @API-4.4.4 @API-4.4.5
  Scenario: a topic that is deleted and created again is read again
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "a" has sent 2 messages with 2 keys
    When the stream consumer receives and acknowledges 2 messages
    And the application closes producer "a"
    And topic "a" is deleted
    And topic "a" is created again with 1 segment
    And the application creates producer "new" on topic "a"
    And producer "new" sends 3 messages with 3 keys
    And the stream consumer receives 3 messages
    Then every message came to the stream consumers exactly once

  @id:NS-removed-before-added @WIRE-7.6 @needs-virtual-time @needs-journal
  Scenario: of a diff that names a topic twice, what it removes comes first
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    When topic "a" is deleted and created again at once
    And the application creates a producer on topic "a"
    And the producer sends 3 messages with 3 keys
    And the stream consumer receives 3 messages
    Then a diff that removes and adds topic "a" went to the client
    And every message came to the stream consumers exactly once

  @id:NS-returns @IMPL-6.10 @IMPL-6.9 @needs-control
  Scenario: what was not acknowledged of a topic that left comes again when the topic does
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments and the properties "team=x"
    And a stream consumer on the topics with "team=x" of the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "a" has sent 4 messages with 4 keys
    When the stream consumer receives 4 messages
    And the stream consumer acknowledges message number 2 of those it received
    And topic "a" gets the properties "team=y"
    And topic "a" gets the properties "team=x"
    Then the stream consumer receives exactly what was not acknowledged

  @id:NS-split @API-4.4.6 @IMPL-6.6
  Scenario: topics of the set are split while they are read
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 6 messages with 6 keys
    And producer "b" has sent 6 messages with 6 keys
    When segment 0 of topic "a" is split
    And producer "a" sends 6 messages with 6 keys
    And the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    When producer "b" sends 2 messages with 2 keys
    And the application closes the stream consumer
    And the application subscribes stream consumer "next" on the namespace with subscription "s"
    Then stream consumer "next" receives exactly what was not acknowledged

  @id:NS-shared @API-4.4.1 @API-4.1.10
  Scenario: the consumers of a subscription share the topics' messages
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments
    And scalable topic "b" in the namespace with 2 segments
    And stream consumer "one" on the namespace with subscription "s"
    And stream consumer "two" on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 12 messages with 12 keys
    And producer "b" has sent 12 messages with 12 keys
    When the stream consumers receive and acknowledge everything
    Then every message came to the stream consumers exactly once
    And each stream consumer received a part of the messages

  # ---- acknowledgements across topics ----

  @id:NS-cumulative @API-4.4.6 @IMPL-6.6 @IMPL-6.7 @WIRE-7.11
  Scenario Outline: an acknowledgement covers what came before in all topics, and nothing else: <case>
    Given a namespace
    And scalable topic "a" in the namespace with 2 segments
    And scalable topic "b" in the namespace with 1 segment
    And scalable topic "c" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "c" on topic "c"
    And producer "a" has sent 3 messages with 3 keys
    When the stream consumer receives 3 messages
    And producer "b" sends 2 messages with 2 keys
    And the stream consumer receives 2 messages
    And producer "c" sends 2 messages with 2 keys
    And the stream consumer receives 2 messages
    And producer "a" sends 3 messages with 3 keys
    And the stream consumer receives 3 messages
    And the stream consumer acknowledges message number <number> of those it received
    And the application closes the stream consumer
    And the application subscribes stream consumer "next" on the namespace with subscription "s"
    Then stream consumer "next" receives exactly what was not acknowledged

    Examples:
      | case                  | number |
      | in-the-first-topic    | 2      |
      | in-the-second         | 4      |
      | last-of-a-topic       | 7      |
      | in-the-first-again    | 9      |
      | everything            | 10     |

  @id:NS-close-acknowledges-nothing @C7 @IMPL-6.8
  Scenario: a close acknowledges nothing in any topic
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 2 messages with 2 keys
    And producer "b" has sent 2 messages with 2 keys
    When the stream consumer receives 4 messages
    And the application closes the stream consumer
    And the application subscribes stream consumer "next" on the namespace with subscription "s"
    Then stream consumer "next" receives exactly what was not acknowledged

  @id:NS-passes-over @IMPL-6.11 @API-4.4.6
  Scenario: an acknowledgement passes over what came of a topic that is gone
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "a" on topic "a"
    And producer "b" on topic "b"
    And producer "a" has sent 1 message
    When the stream consumer receives 1 message
    And producer "b" sends a message
    And the stream consumer receives 1 message
    And the application closes producer "a"
    And topic "a" is deleted
    And scalable topic "c" is created in the namespace with 1 segment
    And the application creates producer "c" on topic "c"
    And producer "c" sends a message
    And the stream consumer receives 1 message
    And the stream consumer acknowledges message number 2 of those it received
    And the application closes the stream consumer
    And the application subscribes stream consumer "next" on the namespace with subscription "s"
    Then stream consumer "next" receives exactly what was not acknowledged

  # ---- losses ----

  @id:NS-reconnect @WIRE-11.8 @WIRE-7.7 @needs-faults @needs-journal
  Scenario: a lost watch is opened again with the hash of the set, and the set stays as it is without a snapshot
    Given a namespace
    And scalable topic "a" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    And producer "b" on topic "b"
    When the journal is marked
    And all connections are lost
    Then the namespace watch was opened again since the mark with the hash of topics "b, a"
    When producer "b" sends 2 messages with 2 keys
    And the stream consumer receives and acknowledges 2 messages
    And scalable topic "c" is created in the namespace with 1 segment
    And the application creates producer "c" on topic "c"
    And producer "c" sends 2 messages with 2 keys
    And the stream consumer receives 2 messages
    Then every message came to the stream consumers exactly once
    And no snapshot of the namespace went to the client since the mark

  @id:NS-reconnect-grown @WIRE-7.7 @WIRE-11.8 @needs-faults @needs-journal
  Scenario: the hash is that of the set after the diffs
    Given a namespace
    And scalable topic "z" in the namespace with 1 segment
    And scalable topic "b" in the namespace with 1 segment
    And a stream consumer on the namespace with subscription "s"
    When scalable topic "a" is created in the namespace with 1 segment
    And the application creates producer "a" on topic "a"
    And producer "a" sends a message
    And the stream consumer receives and acknowledges 1 message
    And topic "z" is deleted
    Then the client has let go of topic "z"
    When the journal is marked
    And all connections are lost
    Then the namespace watch was opened again since the mark with the hash of topics "a, b"

  @id:NS-reconnect-changed @WIRE-7.5 @WIRE-11.8 @needs-control @needs-faults @needs-journal
  Scenario: a snapshot takes the place of the set that was known
    Given a namespace
    And scalable topic "stays" in the namespace with 1 segment and the properties "team=x"
    And scalable topic "leaves" in the namespace with 1 segment and the properties "team=x"
    And scalable topic "comes" in the namespace with 1 segment and the properties "team=y"
    And a stream consumer on the topics with "team=x" of the namespace with subscription "s"
    And producer "stays" on topic "stays"
    And producer "leaves" on topic "leaves"
    And producer "comes" on topic "comes"
    When the journal is marked
    And the fault is armed
      """
      when: { command: WATCH_SCALABLE_TOPICS }
      effect: hold
      """
    And all connections are lost
    And 1 frame is held
    And topic "leaves" gets the properties "team=y"
    And topic "comes" gets the properties "team=x"
    And the held frames are released
    Then the client has let go of topic "leaves"
    And a snapshot of the namespace went to the client since the mark
    When producer "leaves" sends 2 messages with 2 keys
    And producer "comes" sends a message
    And the stream consumer receives and acknowledges 1 message
    And producer "stays" sends a message
    And the stream consumer receives and acknowledges 1 message
    Then every message told the topic that it was sent to
    And a receive from the stream consumer gives nothing within 300 ms
