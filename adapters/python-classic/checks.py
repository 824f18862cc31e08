"""The checks: each uses a topic of its own, given as a broker and a number of partitions (0: none)."""

import pulsar
from pulsar import ConsumerType
from pulsar.schema import JsonSchema, Record, String, StringSchema

from harness import KEYS, expect, expect_same_order, expect_same_set, pair, send

COUNT = 80
BATCHED = {"batching_enabled": True, "batching_max_messages": 10, "batching_max_publish_delay_ms": 5}
KEY_BATCHED = {**BATCHED, "batching_type": pulsar.BatchingType.KeyBased}


def send_both_ways(broker, topic, count=COUNT):
    """Half of the messages in batches, half alone."""
    return send(broker, topic, 0, count // 2, **BATCHED) + send(broker, topic, count // 2, count - count // 2)


def exclusive(broker, partitions):
    """All comes once and in order; a second consumer is refused; what was acknowledged does not come again."""
    topic = broker.create_topic("exclusive", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    sent = send_both_ways(broker, topic)
    messages = broker.receive(consumer, COUNT)
    expect_same_order(sent, [pair(m) for m in messages], "exclusive")
    expect(all(m.redelivery_count() == 0 for m in messages), "a first delivery has a redelivery count")
    try:
        broker.subscribe(topic, "s", ConsumerType.Exclusive)
        expect(False, "a second exclusive consumer was accepted")
    except pulsar.ConsumerBusy:
        pass
    for message in messages:
        if pair(message) not in sent[-5:]:
            consumer.acknowledge(message)
    consumer.close()
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    left = [pair(m) for m in broker.receive(consumer, 5)]
    expect_same_set(sent[-5:], left, "after closing with 5 unacknowledged")
    consumer.close()


def batch_index(broker, partitions):
    """Only the unacknowledged members of a batch come again."""
    topic = broker.create_topic("batch-index", partitions)
    options = {"batch_index_ack_enabled": True}
    consumer = broker.subscribe(topic, "s", ConsumerType.Shared, **options)
    sent = send(broker, topic, 0, COUNT, **BATCHED)
    kept = []
    for message in broker.receive(consumer, COUNT):
        if int(pair(message)[1].removeprefix("m-")) % 3 == 0:
            kept.append(pair(message))
        else:
            consumer.acknowledge(message)
    expect_same_set(sent[::3], kept, "kept unacknowledged")
    consumer.close()
    consumer = broker.subscribe(topic, "s", ConsumerType.Shared, **options)
    expect_same_set(kept, [pair(m) for m in broker.receive(consumer, len(kept))], "after closing")
    consumer.close()


def cumulative(broker, partitions):
    """A cumulative acknowledgement covers what came before it (on each partition)."""
    topic = broker.create_topic("cumulative", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    send(broker, topic, 0, COUNT)
    last = {}
    for message in broker.receive(consumer, COUNT):
        last[message.topic_name()] = message
    for message in last.values():
        consumer.acknowledge_cumulative(message)
    consumer.close()
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    after = send(broker, topic, COUNT, len(KEYS))
    expect_same_set(after, [pair(m) for m in broker.receive(consumer, len(after))], "after a cumulative acknowledgement")
    consumer.close()


def shared(broker, partitions):
    """Two consumers share: all comes once over both, and both get some."""
    topic = broker.create_topic("shared", partitions)
    consumers = [broker.subscribe(topic, "s", ConsumerType.Shared, receiver_queue_size=5) for _ in range(2)]
    sent = send_both_ways(broker, topic)
    received = broker.receive_from_any(consumers, COUNT)
    for consumer, message in received:
        consumer.acknowledge(message)
    expect_same_set(sent, [pair(m) for _, m in received], "shared")
    expect(len({id(consumer) for consumer, _ in received}) == 2, "one of two shared consumers got everything")
    for consumer in consumers:
        consumer.close()


def negative_acknowledgement(broker, partitions):
    """What is refused comes again with redelivery count 1, and nothing else does."""
    topic = broker.create_topic("nack", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
    sent = send(broker, topic, 0, COUNT)
    refused = []
    for message in broker.receive(consumer, COUNT):
        if pair(message)[0] == KEYS[0]:
            refused.append(pair(message))
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    again = broker.receive(consumer, len(refused))
    expect(refused and all(p in sent for p in refused), "nothing was refused")
    expect_same_set(refused, [pair(m) for m in again], "redelivery")
    counts = {m.redelivery_count() for m in again}
    expect(counts == {1}, f"redelivery counts {counts}, not 1")
    for message in again:
        consumer.acknowledge(message)
    consumer.close()


def failover(broker, partitions):
    """When a consumer closes, the other one goes on without loss and in order."""
    topic = broker.create_topic("failover", partitions)
    first = broker.subscribe(topic, "s", ConsumerType.Failover, consumer_name="a")
    second = broker.subscribe(topic, "s", ConsumerType.Failover, consumer_name="b")
    sent = send_both_ways(broker, topic)
    received = broker.receive_from_any([first, second], COUNT)
    for consumer, message in received:
        consumer.acknowledge(message)
    expect_same_order(sent, [pair(m) for _, m in received], "failover")
    if not partitions:
        expect(len({id(consumer) for consumer, _ in received}) == 1, "both failover consumers were active")
    first.close()
    more = send(broker, topic, COUNT, COUNT)
    messages = broker.receive(second, COUNT)
    expect_same_order(more, [pair(m) for m in messages], "after the hand-over")
    second.close()


def key_shared(broker, partitions):
    """Each key goes to one of two consumers, in order."""
    topic = broker.create_topic("key-shared", partitions)
    consumers = [broker.subscribe(topic, "s", ConsumerType.KeyShared) for _ in range(2)]
    sent = send(broker, topic, 0, COUNT) + send(broker, topic, COUNT, COUNT, **KEY_BATCHED)
    received = broker.receive_from_any(consumers, 2 * COUNT)
    for consumer, message in received:
        consumer.acknowledge(message)
    expect_same_order(sent, [pair(m) for _, m in received], "key_shared")
    owners = {}
    for consumer, message in received:
        # On a partitioned topic every partition divides the keys by itself, and a key stays on one partition.
        owners.setdefault(pair(message)[0], set()).add(id(consumer))
    divided = [key for key, consumers_of in owners.items() if len(consumers_of) != 1]
    expect(not divided, f"keys {divided} went to both consumers")
    for consumer in consumers:
        consumer.close()


def reader(broker, partitions):
    """A reader gets everything in order and then says that nothing is left; it can start behind a message."""
    topic = broker.create_topic("reader", partitions)
    sent = send_both_ways(broker, topic)
    source = broker.client.create_reader(topic, pulsar.MessageId.earliest)
    messages = []
    while source.has_message_available():
        messages.append(source.read_next(timeout_millis=broker.timeout_ms))
    expect_same_order(sent, [pair(m) for m in messages], "reader")
    source.close()
    if not partitions:
        source = broker.client.create_reader(topic, messages[COUNT // 4].message_id())
        following = pair(source.read_next(timeout_millis=broker.timeout_ms))
        expect(following == sent[COUNT // 4 + 1], f"a reader behind message {COUNT // 4} starts with {following}")
        source.close()


def seek(broker, partitions):
    """A seek to the beginning, and (on one log) behind a message, delivers from there although it was acknowledged."""
    topic = broker.create_topic("seek", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    sent = send(broker, topic, 0, COUNT)
    messages = broker.receive(consumer, COUNT)
    for message in messages:
        consumer.acknowledge(message)
    consumer.seek(pulsar.MessageId.earliest)
    again = broker.receive(consumer, COUNT)
    expect_same_order(sent, [pair(m) for m in again], "after a seek to the beginning")
    if not partitions:
        consumer.seek(again[COUNT // 2].message_id())
        rest = [pair(m) for m in broker.receive(consumer, COUNT - COUNT // 2 - 1)]
        expect(rest == sent[COUNT // 2 + 1:], f"after a seek behind message {COUNT // 2} came {rest[:2]}")
    consumer.close()


def schema(broker, partitions):
    """Strings come back as strings; a producer with an incompatible schema is refused with the right error."""

    class Order(Record):
        """A schema that cannot read strings."""

        name = String()

    topic = broker.create_topic("schema", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive, schema=StringSchema())
    producer = broker.client.create_producer(topic, schema=StringSchema())
    values = ["text", "", "ключ 🔑"]
    for value in values:
        producer.send(value, partition_key="key-0")
    received = [m.value() for m in broker.receive(consumer, len(values))]
    expect(received == values, f"received {received}")
    try:
        broker.client.create_producer(topic, schema=JsonSchema(Order))
        expect(False, "a producer with an incompatible schema was accepted")
    except pulsar.IncompatibleSchema:
        pass
    producer.close()
    consumer.close()


def codecs(broker, partitions):
    """What is compressed comes back as it was sent, in batches and alone."""
    topic = broker.create_topic("codecs", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    sent = []
    for codec in (pulsar.CompressionType.LZ4, pulsar.CompressionType.ZLib, pulsar.CompressionType.ZSTD,
                  pulsar.CompressionType.SNAPPY):
        for options in (BATCHED, {}):
            sent += send(broker, topic, len(sent), 10, compression_type=codec, **options)
    expect_same_order(sent, [pair(m) for m in broker.receive(consumer, len(sent))], "codecs")
    consumer.close()


def chunks(broker, partitions):
    """A message larger than an entry comes back whole, among small ones, and is acknowledged as a whole."""
    topic = broker.create_topic("chunks", partitions)
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    producer = broker.client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    values = [b"small", bytes(range(256)) * 48 * 1024, b"behind"]
    for value in values:
        producer.send(value, partition_key="key-0")
    for value in values:
        message = broker.receive(consumer, 1)[0]
        expect(message.data() == value, f"{len(value)} bytes were sent, {len(message.data())} others received")
        consumer.acknowledge(message)
    consumer.close()
    consumer = broker.subscribe(topic, "s", ConsumerType.Exclusive)
    producer.send(b"next", partition_key="key-0")
    expect(broker.receive(consumer, 1)[0].data() == b"next", "something acknowledged came again")
    producer.close()
    consumer.close()


ALL = [exclusive, batch_index, cumulative, shared, negative_acknowledgement, failover, key_shared, reader, seek, schema,
       codecs, chunks]
