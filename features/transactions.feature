@transactions
Feature: Transactions
  What is published and acknowledged in a transaction takes effect all at once when it is committed, or not at all.

  # ---- commit and abort ----

  @id:TXN-send-commit @API-3.2.8 @API-6.5 @API-6.7
  Scenario: messages of a transaction are seen from the commit on
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 6 messages with 6 keys in the transaction
    Then a receive from the queue consumer gives nothing within 300 ms
    When the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once

  @id:TXN-abort @API-6.8 @API-6.2
  Scenario: an abort leaves nothing of a transaction
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 2 messages with 2 keys
    When the queue consumer receives 2 messages
    And the application opens a transaction of 60 s
    And the producer sends 4 messages with 4 keys in the transaction
    And the queue consumer acknowledges message number 1 of those it received in the transaction
    And the application aborts the transaction
    And the queue consumer receives 1 message
    Then no message of the transaction was received
    And the last message is message number 1 of those the queue consumer received
    And the last message has redelivery count 1
    And a receive from the queue consumer gives nothing within 300 ms

  @id:TXN-whole @API-6.1 @API-6.7 @needs-journal
  Scenario: a transaction takes effect as a whole, on the topics and subscriptions that it touched
    Given a scalable topic "in" with 2 segments
    And a scalable topic "out" with 2 segments
    And producer "in" on topic "in"
    And producer "out" on topic "out"
    And queue consumer "in" on topic "in" with subscription "s"
    And queue consumer "out" on topic "out" with subscription "s"
    And producer "in" has sent 4 messages with 4 keys
    When queue consumer "in" receives 4 messages
    And the application opens transaction "a" of 60 s
    And the application opens transaction "b" of 60 s
    And queue consumer "in" acknowledges message number 1 of those it received in transaction "a"
    And queue consumer "in" acknowledges message number 2 of those it received in transaction "a"
    And queue consumer "in" acknowledges message number 3 of those it received in transaction "b"
    And producer "out" sends 6 messages with 6 keys in transaction "a"
    And producer "out" sends 6 messages with 6 keys in transaction "b"
    And the application aborts transaction "b"
    And the application commits transaction "a"
    And queue consumer "out" receives and acknowledges everything of transaction "a"
    And queue consumer "in" receives 1 message
    Then the last message is message number 3 of those queue consumer "in" received
    And no message of transaction "b" was received
    And the journal shows every transaction whole or not at all

  @id:TXN-commit-waits @API-6.1 @needs-faults @needs-journal
  Scenario: a commit waits for the messages that are on their way
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 1 message
    And a transaction of 60 s
    And the next 1 SEND on the topic is held
    When the producer starts to send 2 messages with 2 keys in the transaction
    And 1 frame is held
    And the application starts to commit the transaction
    Then the commit of the transaction is still under way
    And the end of the transaction was not asked for
    When the held frames are released
    And the commit of the transaction has ended
    And the queue consumer receives and acknowledges 3 messages
    Then every message was received exactly once

  @id:TXN-holds-back @API-6.7
  Scenario: an open transaction holds back what follows it in its segment, and its commit lets it go
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 2 messages with 2 keys in the transaction
    And the producer sends 2 messages with 2 keys
    And the application commits the transaction
    And the queue consumer receives and acknowledges 4 messages
    Then every message was received exactly once

  # ---- acknowledgements ----

  @id:TXN-queue-ack @API-4.2.7 @API-6.6
  Scenario: a queue acknowledgement in a transaction counts from the commit on
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 4 messages with 4 keys
    When the queue consumer receives 4 messages
    And the application opens transaction "a" of 60 s
    And the application opens transaction "b" of 60 s
    And the queue consumer acknowledges message number 1 of those it received in transaction "a"
    And the queue consumer acknowledges message number 2 of those it received in transaction "b"
    And the queue consumer acknowledges message number 3 of those it received
    And the queue consumer acknowledges message number 4 of those it received
    And the application commits transaction "a"
    And the application aborts transaction "b"
    And the queue consumer receives 1 message
    Then the last message is message number 2 of those the queue consumer received
    And a receive from the queue consumer gives nothing within 300 ms

  @id:TXN-stream-ack @API-4.1.12 @API-6.6
  Scenario: a stream acknowledgement in a transaction counts from the commit on
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a stream consumer on the topic with subscription "s"
    And the producer has sent 6 messages with 6 keys
    When the stream consumer receives 6 messages
    And the application opens transaction "a" of 60 s
    And the stream consumer acknowledges its last message in transaction "a"
    And the application aborts transaction "a"
    And the stream consumer receives 6 messages
    And the application opens transaction "b" of 60 s
    And the stream consumer acknowledges its last message in transaction "b"
    And the application commits transaction "b"
    And the application closes the stream consumer
    And the application subscribes stream consumer "next" on the topic with subscription "s"
    Then a receive from stream consumer "next" gives nothing within 300 ms

  @id:TXN-conflict @ERR-2.13 @API-6.1
  Scenario: two transactions cannot acknowledge one message
    Given a scalable topic "in" with 1 segment
    And a scalable topic "out" with 1 segment
    And producer "in" on topic "in"
    And producer "out" on topic "out"
    And queue consumer "in" on topic "in" with subscription "s"
    And queue consumer "out" on topic "out" with subscription "s"
    And producer "in" has sent 1 message
    When queue consumer "in" receives 1 message
    And the application opens transaction "a" of 60 s
    And the application opens transaction "b" of 60 s
    And producer "out" sends 1 message with 1 key in transaction "a"
    And producer "out" sends 1 message with 1 key in transaction "b"
    And queue consumer "in" acknowledges message number 1 of those it received in transaction "a"
    And queue consumer "in" acknowledges message number 1 of those it received in transaction "b"
    Then transaction "b" and transaction "a" cannot both commit
    And it fails with the category TransactionConflict
    When queue consumer "out" receives 1 message
    Then a receive from queue consumer "out" gives nothing within 300 ms
    And a receive from queue consumer "in" gives nothing within 300 ms
    And no message of transaction "refused" was received

  # ---- states ----

  @id:TXN-states @API-6.9 @API-6.4
  Scenario: the state of a transaction can be read
    Given a scalable topic with 1 segment
    And transaction "a" of 60 s
    And transaction "b" of 60 s
    Then transaction "a" is open
    When the application commits transaction "a"
    And the application aborts transaction "b"
    Then transaction "a" is committed
    And transaction "b" is aborted

  @id:TXN-timeout @API-6.3 @API-6.4 @API-6.10 @needs-virtual-time
  Scenario: a transaction that is not ended in its time takes no effect
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 1 message
    When the queue consumer receives 1 message
    And the application opens a transaction of 3 s
    And the producer sends 2 messages with 2 keys in the transaction
    And the queue consumer acknowledges message number 1 of those it received in the transaction
    Then the transaction is open
    When 5 s pass
    Then the transaction is timed-out
    When the application tries to commit the transaction
    Then it fails with the category TransactionConflict
    When the queue consumer receives 1 message
    Then the last message is message number 1 of those the queue consumer received
    And no message of the transaction was received
    And a receive from the queue consumer gives nothing within 300 ms

  @id:TXN-timeout-unobserved @API-6.3 @API-6.4 @API-6.10 @needs-journal
  Scenario: a transaction ends at its coordinator although the client does not end it
    Given the client with
      | transaction timeout | 2 |
    And a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    When the application opens a transaction of 2 s
    And the producer sends 2 messages with 2 keys in the transaction
    # Held back until the coordinator has ended the transaction.
    And the producer sends a message
    And the queue consumer receives 1 message
    And the application tries to commit the transaction
    Then it fails with the category TransactionConflict
    And no message of the transaction was received
    And a receive from the queue consumer gives nothing within 300 ms
    And the journal shows every transaction whole or not at all

  @id:TXN-ended @API-6.10
  Scenario Outline: a transaction that has ended cannot be ended: <case>
    Given a scalable topic with 1 segment
    And a transaction of 60 s
    When the application <first> the transaction
    And the application tries to <second> the transaction
    Then it fails with the category TransactionConflict

    Examples:
      | case                  | first   | second |
      | commit after commit   | commits | commit |
      | abort after commit    | commits | abort  |
      | commit after an abort | aborts  | commit |
      | abort after an abort  | aborts  | abort  |

  @id:TXN-send-after-end @API-6.10
  Scenario: nothing is sent in a transaction that has ended
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a transaction of 60 s
    When the application commits the transaction
    And the application tries to commit the transaction
    Then it fails with the category TransactionConflict
    When the producer tries to send a message in the transaction
    Then it fails with the category TransactionConflict
    And nothing is stored in the topic

  @id:TXN-not-retried @ERR-3.14 @needs-faults @needs-journal
  Scenario: what the coordinator refuses for the state of the transaction is not tried again
    Given a scalable topic with 1 segment
    And a transaction of 60 s
    And the next 1 END_TXN is answered with InvalidTxnStatus
    When the application tries to commit the transaction
    Then it fails with the category TransactionConflict
    And the client sent END_TXN 1 time

  # ---- commands ----

  @id:TXN-commands @WIRE-8.1 @needs-journal
  Scenario: transactions use the commands of clients
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And the producer has sent 1 message
    When the queue consumer receives 1 message
    And the application opens a transaction of 60 s
    And the producer sends 1 message with 1 key in the transaction
    And the queue consumer acknowledges message number 1 of those it received in the transaction
    And the application commits the transaction
    Then the client used the transaction commands of clients only

  @id:TXN-partitions @WIRE-8.2.1 @needs-journal
  Scenario: the coordinator is told of the segments that are written to
    Given a scalable topic with 4 segments
    And a producer on the topic
    And a transaction of 60 s
    When the producer sends 12 messages with 12 keys in the transaction
    And the application commits the transaction
    Then every transaction was told of exactly the segments that it wrote to

  @id:TXN-split @WIRE-8.2.2 @API-6.7 @needs-journal
  Scenario: a split within a transaction adds the successor
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends a message with key "key-1" in the transaction
    And segment 0 of the topic is split
    And the producer sends a message with key "key-1"
    And the producer sends a message with key "key-1" in the transaction
    Then a transaction wrote to 2 segments
    When the application commits the transaction
    Then every transaction was told of exactly the segments that it wrote to
    When the queue consumer receives and acknowledges 3 messages
    Then every message was received exactly once
    And the journal shows every transaction whole or not at all

  @id:TXN-merge @WIRE-8.2.2 @needs-journal
  Scenario: a merge within a transaction adds the successor
    Given a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 6 messages with 6 keys in the transaction
    And segments 0 and 1 of the topic are merged
    And the producer sends a message with key "key-1"
    And the producer sends 6 messages with 6 keys in the transaction
    Then a transaction wrote to 3 segments
    When the application commits the transaction
    Then every transaction was told of exactly the segments that it wrote to
    When the queue consumer receives and acknowledges 13 messages
    Then every message was received exactly once

  @id:TXN-sealed @API-6.7 @IMPL-4.8 @needs-control
  Scenario: a message of a transaction whose segment is sealed goes to the successor, and the commit knows nothing of it
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 2 messages with 2 keys in the transaction
    And layout pushes of the topic are held
    And segment 0 of the topic is split
    And the producer starts to send 2 messages with 2 keys in the transaction
    Then no started send has ended
    When layout pushes of the topic are released
    And the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once
    And segment 0 of the topic holds 2 messages

  # ---- coordinators ----

  @id:TXN-watch @WIRE-8.1.1 @needs-control @needs-journal
  Scenario: coordinators are found by one watch
    Given a cluster whose transaction coordinators are spread over its brokers
    And a scalable topic with 1 segment
    And transaction "a" of 60 s
    And transaction "b" of 60 s
    When the application commits transaction "a"
    And the application commits transaction "b"
    Then the client found the coordinators by one watch

  @id:TXN-lookup @COMPAT-3.4 @COMPAT-3.5 @needs-control @needs-journal
  Scenario: without the watch coordinators are found by the classic lookup
    Given a cluster whose brokers do not advertise the watch of transaction coordinators
    And a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    When the producer sends 2 messages with 2 keys in the transaction
    And the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once
    And the client found the coordinators by the classic lookup

  @id:TXN-election @WIRE-8.1.6 @WIRE-8.1.3 @needs-control @needs-journal
  Scenario: a transaction waits while its coordinator is being elected
    Given a cluster of 1 transaction coordinator
    And a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    And the producer has sent 2 messages with 2 keys in the transaction
    When the election of transaction coordinator 0 begins
    And the journal is marked
    And the application starts to commit the transaction
    Then the commit of the transaction is still under way
    And nothing was asked of transaction coordinator 0 since the mark
    When transaction coordinator 0 is led by broker 1
    And the commit of the transaction has ended
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once

  @id:TXN-moved @WIRE-8.1.4 @WIRE-8.1.3 @needs-control @needs-journal
  Scenario: a coordinator is asked at the leader of the latest snapshot
    Given a cluster of 1 transaction coordinator
    And a scalable topic with 1 segment
    And a producer on the topic
    And transaction coordinator 0 is led by broker 1
    And a transaction of 60 s
    And the producer has sent 2 messages with 2 keys in the transaction
    When transaction coordinator 0 is led by broker 2
    And the journal is marked
    And the application commits the transaction
    Then transaction coordinator 0 was asked at broker 2 since the mark

  @id:TXN-mid-commit @API-6.1 @API-6.7 @WIRE-8.1.4 @needs-control @needs-journal
  Scenario: a commit is carried out once although its coordinator moves meanwhile
    Given a cluster of 1 transaction coordinator
    And a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And transaction coordinator 0 is led by broker 1
    And a transaction of 60 s
    And the producer has sent 6 messages with 6 keys in the transaction
    When the ends of transactions are held
    And the journal is marked
    And the application starts to commit the transaction
    Then the commit of the transaction is still under way
    When transaction coordinator 0 is led by broker 2
    And the ends of transactions are carried out
    And the commit of the transaction has ended
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once
    And the journal shows every transaction whole or not at all

  @id:TXN-broker-dies @API-6.7 @WIRE-8.1.4 @needs-control @needs-journal
  Scenario: a commit survives the death of its coordinator's broker
    Given a cluster of 1 transaction coordinator
    And a scalable topic with 2 segments
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And transaction coordinator 0 is led by broker 1
    And a transaction of 60 s
    And the producer has sent 6 messages with 6 keys in the transaction
    When the ends of transactions are held
    And the application starts to commit the transaction
    And broker 1 dies
    And the ends of transactions are carried out
    And the commit of the transaction has ended
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once
    And the journal shows every transaction whole or not at all

  @id:TXN-answer-lost @API-6.7 @API-6.1 @needs-faults @needs-journal
  Scenario: a commit whose answer gets lost is asked for again and counts once
    Given a scalable topic with 1 segment
    And a producer on the topic
    And a queue consumer on the topic with subscription "s"
    And a transaction of 60 s
    And the producer has sent 2 messages with 2 keys in the transaction
    And the fault
      """
      when: { command: END_TXN }
      effect: close
      at: after
      """
    When the application commits the transaction
    And the queue consumer receives and acknowledges everything of the transaction
    Then every message was received exactly once
    And the client sent END_TXN 2 times
    And the journal shows every transaction whole or not at all

  @id:TXN-watch-refused @WIRE-11.5 @needs-faults
  Scenario: a coordinator watch that is refused fails the transaction that needed it
    Given a scalable topic with 1 segment
    And the next 1 WATCH_TC_ASSIGNMENTS is answered with AuthorizationError
    When the application tries to open a transaction
    Then it fails with the category Authorization

  @id:TXN-watch-lost @WIRE-11.9 @needs-control @needs-faults @needs-journal
  Scenario: a lost coordinator watch is opened again and brings the leaders of now
    Given a cluster of 1 transaction coordinator
    And a scalable topic with 1 segment
    And transaction coordinator 0 is led by broker 1
    And a transaction of 60 s
    When the journal is marked
    And all connections are lost
    Then the client has opened a new coordinator watch since the mark
    When transaction coordinator 0 is led by broker 2
    And the application commits the transaction
    Then transaction coordinator 0 was asked at broker 2 since the mark
