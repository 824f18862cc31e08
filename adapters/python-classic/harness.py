"""What the checks share: the broker's admin REST, a client, keyed sends, and receiving with a time limit."""

import json
import time
import urllib.error
import urllib.request

import pulsar

NAMESPACE = "public/default"
KEYS = [f"key-{i}" for i in range(6)] + ["ключ", "🔑"]


class CheckFailed(Exception):
    """A check does not hold; the message says what was seen."""


def expect(holds, message):
    """Fails the running check unless the condition holds."""
    if not holds:
        raise CheckFailed(message)


class Broker:
    """The broker under test: its admin REST and one client."""

    def __init__(self, service_url, admin_url, timeout_s, log):
        self.admin_url = admin_url.rstrip("/")
        self.timeout_ms = timeout_s * 1000
        self.run = format(time.time_ns() // 1_000_000, "x")
        # Standard output belongs to the summary.
        self.client = pulsar.Client(
            service_url,
            operation_timeout_seconds=timeout_s,
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Info, log),
        )

    def close(self):
        self.client.close()

    def admin(self, method, path, body=None):
        """One admin call; any answer but 2xx is an error."""
        request = urllib.request.Request(f"{self.admin_url}/admin/v2/{path}", method=method)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_ms / 1000) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise CheckFailed(f"{method} {path} answered {error.code}: {error.read()[:300]!r}") from error
        return json.loads(text) if text.strip() else None

    def create_topic(self, name, partitions):
        """A new classic topic; 0 partitions is a topic without partitions. Returns its full name."""
        local = f"classic-{name}-{partitions}-{self.run}"
        path = f"persistent/{NAMESPACE}/{local}"
        if partitions:
            self.admin("PUT", f"{path}/partitions", partitions)
            seen = self.admin("GET", f"{path}/partitions")["partitions"]
            expect(seen == partitions, f"created {partitions} partitions, the broker says {seen}")
        else:
            self.admin("PUT", path)
        return f"persistent://{NAMESPACE}/{local}"

    def subscribe(self, topic, subscription, kind, **options):
        """A consumer that starts at the beginning unless told otherwise."""
        options.setdefault("initial_position", pulsar.InitialPosition.Earliest)
        return self.client.subscribe(topic, subscription, consumer_type=kind, **options)

    def receive(self, source, count):
        """Exactly the next `count` messages of a consumer."""
        messages = []
        while len(messages) < count:
            try:
                messages.append(source.receive(timeout_millis=self.timeout_ms))
            except pulsar.Timeout as error:
                raise CheckFailed(f"received {len(messages)} messages, not {count}") from error
        return messages

    def receive_from_any(self, consumers, count):
        """The next `count` messages of several consumers, as pairs of consumer and message."""
        received = []
        deadline = time.monotonic() + self.timeout_ms / 1000
        while len(received) < count:
            expect(time.monotonic() < deadline, f"received {len(received)} messages, not {count}")
            for consumer in consumers:
                try:
                    received.append((consumer, consumer.receive(timeout_millis=10)))
                except pulsar.Timeout:
                    continue
        return received


def send(broker, topic, start, count, **options):
    """Sends `count` keyed messages, numbered from `start`. Returns (key, value) in send order."""
    options.setdefault("block_if_queue_full", True)
    producer = broker.client.create_producer(topic, **options)
    sent, results = [], []
    for number in range(start, start + count):
        key, value = KEYS[number % len(KEYS)], f"m-{number}"
        producer.send_async(value.encode(), lambda result, _id: results.append(result), partition_key=key)
        sent.append((key, value))
    producer.flush()
    producer.close()
    expect(len(results) == count, f"{len(results)} of {count} sends have a result")
    bad = [str(result) for result in results if result != pulsar.Result.Ok]
    expect(not bad, f"{len(bad)} sends failed, the first with {bad[:1]}")
    return sent


def pair(message):
    """Key and value of a received message."""
    return message.partition_key(), message.data().decode()


def by_key(pairs):
    """Values of each key, in order."""
    values = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def expect_same_order(sent, received, what):
    """Every key came complete, once, and in send order."""
    sent, received = by_key(sent), by_key(received)
    wrong = [key for key in sent.keys() | received.keys() if sent.get(key) != received.get(key)]
    expect(not wrong, f"{what}: keys {wrong} differ, e.g. sent {sent.get((wrong or [''])[0])}, "
                      f"received {received.get((wrong or [''])[0])}")


def expect_same_set(sent, received, what):
    """Everything came once, in any order."""
    expect(sorted(sent) == sorted(received),
           f"{what}: lost {sorted(set(sent) - set(received))[:5]}, "
           f"{len(received) - len(set(received))} came more than once, "
           f"never sent {sorted(set(received) - set(sent))[:5]}")
