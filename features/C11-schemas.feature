@C11
Feature: Schemas
  Every producer and consumer has a schema; the topic has one, and every segment is attached to with it.

  @id:C11-values @DATA-6.1 @DATA-6.3
  Scenario Outline: a value arrives as it was sent, in the encoding that all clients share: <case>
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | schema | <schema> |
    And a queue consumer on the topic with
      | subscription | s        |
      | schema       | <schema> |
    When the producer sends a message with
      | value | <value> |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | value   | <value>   |
      | payload | <payload> |

    Examples:
      | case     | schema                                | value   | payload                    |
      | bytes    | bytes                                 | 00ff10  | 00ff10                     |
      | string   | string                                | grüße   | 6772c3bcc39f65             |
      | boolean  | boolean                               | true    | 01                         |
      | int8     | int8                                  | -2      | fe                         |
      | int16    | int16                                 | -2      | fffe                       |
      | int32    | int32                                 | 1000000 | 000f4240                   |
      | int64    | int64                                 | -2      | fffffffffffffffe           |
      | float    | float                                 | 0.5     | 3f000000                   |
      | double   | double                                | -2.25   | c002000000000000           |
      | pair     | key/value of string and int32, inline | k = 7   | 000000016b0000000400000007 |

  @id:C11-separated-pair @DATA-6.3
  Scenario: the first half of a separated pair is the message's key
    Given a scalable topic with 2 segments
    And a producer on the topic with
      | schema | key/value of string and int32, separated |
    And a queue consumer on the topic with
      | subscription | s                                        |
      | schema       | key/value of string and int32, separated |
    When the producer sends a message with
      | value | naïve = 7 |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | value   | naïve = 7 |
      | payload | 00000007  |

  @id:C11-records @DATA-6.1 @DATA-6.3
  Scenario Outline: records arrive as they were sent: <case>
    Given the record "user" with the fields
      | name | string       |
      | age  | optional int |
    And a scalable topic with 2 segments
    And a producer on the topic with
      | schema | <schema> |
    And a queue consumer on the topic with
      | subscription | s        |
      | schema       | <schema> |
    When the producer sends a message with
      | value | {"name": "Ada", "age": 36} |
    And the producer sends a message with
      | value | {"name": "Ada", "age": null} |
    And the queue consumer receives and acknowledges 2 messages
    Then the received messages have the values
      | {"name": "Ada", "age": 36}   |
      | {"name": "Ada", "age": null} |

    Examples:
      | case | schema    |
      | json | json user |
      | avro | avro user |

  @id:C11-avro-binary @DATA-6.1 @DATA-6.3
  Scenario: an Avro record has Avro's binary form
    Given the record "user" with the fields
      | name | string       |
      | age  | optional int |
    And a scalable topic with 1 segment
    And a producer on the topic with
      | schema | avro user |
    And a queue consumer on the topic with
      | subscription | s         |
      | schema       | avro user |
    When the producer sends a message with
      | value | {"name": "Ada", "age": 36} |
    And the queue consumer receives and acknowledges 1 message
    Then the last message has
      | payload | 064164610248 |

  @id:C11-evolved @DATA-6.1
  Scenario: an Avro record of an earlier version is read by the schema that it was written with
    Given the record "old" with the fields
      | name | string |
    And the record "new" with the fields
      | name | string       |
      | age  | optional int |
    And a scalable topic with 2 segments
    And producer "old" on the topic with
      | schema | avro old |
    And producer "new" on the topic with
      | schema | avro new |
    When producer "old" sends a message with
      | value | {"name": "Ada"} |
    And segment 0 of the topic is split
    And producer "new" sends a message with
      | value | {"name": "Bob", "age": 36} |
    And the application subscribes the queue consumer on the topic with
      | subscription | s    |
      | schema       | auto |
    And the queue consumer receives and acknowledges 2 messages
    Then the received messages have the values
      | {"name": "Ada"}            |
      | {"name": "Bob", "age": 36} |

  @id:C11-every-segment @DATA-6.2 @WIRE-10.3 @needs-journal
  Scenario: producers and consumers tell every segment the same schema, the children of a split too
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a stream consumer on the topic with subscription "t"
    And checkpoint consumer "reader" on the topic from earliest
    When the producer sends 12 messages without keys
    And segment 0 of the topic is split
    And the producer sends 12 messages without keys
    And the queue consumer receives and acknowledges 24 messages
    Then every attachment to the topic tells the schema String

  @id:C11-every-segment-record @DATA-6.2 @WIRE-10.3 @needs-journal
  Scenario: the definition of a record is told to every segment
    Given the record "user" with the fields
      | name | string |
    And a scalable topic with 3 segments
    And a producer on the topic with
      | schema | avro user |
    And a queue consumer on the topic with
      | subscription | s         |
      | schema       | avro user |
    When the producer sends a message with
      | value | {"name": "Ada"} |
    And segments 0 and 1 of the topic are merged
    And the producer sends a message with
      | value | {"name": "Bob"} |
    And the queue consumer receives and acknowledges 2 messages
    Then every attachment to the topic tells the schema Avro

  @id:C11-refused @ERR-2.8
  Scenario Outline: a schema that does not go with the topic's is refused everywhere: <case>
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When segment 0 of the topic is split
    And <attempt>
      | subscription | t     |
      | schema       | int64 |
    Then it fails with the category IncompatibleSchema

    Examples:
      | case   | attempt                                                                    |
      | queue  | the application tries to subscribe the queue consumer on the topic with    |
      | stream | the application tries to subscribe the stream consumer on the topic with   |

  @id:C11-producer-refused @ERR-2.8
  Scenario: a producer whose schema does not go with the topic's is refused
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    When segment 0 of the topic is split
    And the application closes the producer
    And the application tries to create producer "other" on the topic with
      | schema | int64     |
      | access | exclusive |
    Then it fails with the category IncompatibleSchema

  @id:C11-pending-refused @ERR-2.8
  Scenario: a shared producer is told of its incompatible schema by its sends
    Given a scalable topic with 1 segment
    And a producer on the topic
    And the producer has sent 1 message
    And producer "other" on the topic with
      | schema | int64 |
    When producer "other" tries to send a message with
      | value | 7 |
    Then it fails with the category IncompatibleSchema
