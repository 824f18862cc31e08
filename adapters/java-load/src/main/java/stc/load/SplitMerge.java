package stc.load;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * A producer and a queue consumer go on while the topic is split twice and merged once. Nothing may be lost, nothing
 * may come twice, and all of it must be acknowledged at the end. The summary lists what was sent per key, in order, so
 * that the caller can compare it with what the broker stored.
 */
final class SplitMerge implements Scenario {
    private static final String SUBSCRIPTION = "work";

    private final SendLog sent = new SendLog();
    private final ReceiveLog received = new ReceiveLog();

    @Override
    public void run(PulsarClient client, Admin admin, Options options, Summary summary) throws Exception {
        admin.create(1);
        try (Producer<String> producer = producer(client, admin, options)) {
            try (QueueConsumer<String> consumer = consumer(client, admin);
                    Receiver receiver = new Receiver(consumer, received)) {
                try (Sender sender = new Sender(producer, sent, options.keys(), options.rate())) {
                    changeLayout(admin, options, summary);
                }
                summary.check(sent.awaitSettled(options.patience()), "some sends got no result");
                summary.check(received.awaitDistinct(sent.count(), options.patience()), "not all was received in time");
            }
            // The consumer is closed, which sends the acknowledgements that it still held.
            acknowledged(client, admin, options, producer, summary);
        }
        report(admin, summary);
        if (options.readBack()) {
            ReadBack.check(client, admin, sent.byKey(), options, summary);
        }
    }

    private static Producer<String> producer(PulsarClient client, Admin admin, Options options) throws Exception {
        BatchingPolicy batching =
                options.batching() ? BatchingPolicy.builder().build() : BatchingPolicy.ofDisabled();
        return client.newProducer(Schema.string()).topic(admin.topic()).producerName("producer")
                .batchingPolicy(batching).blockIfQueueFull(true).create();
    }

    private static QueueConsumer<String> consumer(PulsarClient client, Admin admin) throws Exception {
        return client.newQueueConsumer(Schema.string()).topic(admin.topic()).subscriptionName(SUBSCRIPTION)
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
    }

    private void changeLayout(Admin admin, Options options, Summary summary) throws IOException, InterruptedException {
        Random random = new Random(options.seed());
        ArrayNode operations = summary.json().putArray("operations");
        for (String name : List.of("split", "split", "merge")) {
            awaitMore(options, summary);
            List<Layout.Segment> active = admin.layout().active();
            int at = random.nextInt(name.equals("split") ? active.size() : active.size() - 1);
            ObjectNode operation = operations.addObject().put("op", name);
            operation.withArray("segments").add(active.get(at).id());
            int before = sent.count();
            operation.put("in_flight", sent.inFlight());
            long start = System.nanoTime();
            if (name.equals("split")) {
                admin.split(active.get(at).id());
            } else {
                operation.withArray("segments").add(active.get(at + 1).id());
                admin.merge(active.get(at).id(), active.get(at + 1).id());
            }
            operation.put("ms", (System.nanoTime() - start) / 1_000_000);
            operation.put("sent_before", before);
            operation.put("sent_during", sent.count() - before);
        }
        awaitMore(options, summary);
    }

    private void awaitMore(Options options, Summary summary) throws InterruptedException {
        int goal = sent.count() + options.messages();
        summary.check(sent.awaitSent(goal, options.patience()), "sending stopped at " + sent.count() + " messages");
    }

    /** A new consumer of the subscription must find nothing but what is sent from now on. */
    private void acknowledged(PulsarClient client, Admin admin, Options options, Producer<String> producer,
            Summary summary) throws Exception {
        // The broker counts an acknowledgement when it has stored it, which may be after it closed the consumer.
        long end = System.nanoTime() + options.patience().toNanos();
        long backlog = admin.backlog(SUBSCRIPTION);
        while (backlog != 0 && System.nanoTime() < end) {
            LockSupport.parkNanos(50_000_000);
            backlog = admin.backlog(SUBSCRIPTION);
        }
        summary.json().put("backlog", backlog);
        summary.check(backlog == 0, "backlog of the subscription: " + backlog);
        ReceiveLog again = new ReceiveLog();
        try (QueueConsumer<String> consumer = consumer(client, admin);
                Receiver receiver = new Receiver(consumer, again)) {
            for (int i = 0; i < options.keys(); i++) {
                String key = "key-" + i;
                String value = key + "#end";
                sent.sending(key, value);
                producer.newMessage().key(key).value(value).send();
                sent.settled(value, null);
            }
            summary.check(again.awaitDistinct(options.keys(), options.patience()), "the last message of some key is missing");
        }
        summary.check(again.count() == options.keys(), "after all was acknowledged, a new consumer received "
                + again.count() + " messages, not " + options.keys());
        summary.checkNone(again.failures(), "failures of the new consumer");
        summary.json().put("received_again", again.count());
    }

    private void report(Admin admin, Summary summary) throws IOException, InterruptedException {
        ObjectNode json = summary.json();
        var byKey = sent.byKey();
        json.put("sent", sent.count());
        json.put("received", received.count());
        summary.checkNone(sent.failures(), "sends failed");
        summary.checkNone(received.failures(), "failures of the consumer");
        summary.checkNone(received.moreThanOnce(), "messages came more than once");
        summary.checkNone(received.missing(byKey).stream().filter(value -> !value.endsWith("#end")).toList(),
                "messages are lost");
        summary.checkNone(received.strangers(byKey), "messages came that were not sent so");
        Layout layout = admin.layout();
        summary.check(layout.epoch() >= 3, "epoch " + layout.epoch() + " after three operations");
        summary.check(layout.active().size() == 2, layout.active().size() + " active segments after the merge, not 2");
        json.set("layout", layout.json());
        summary.sentByKey(byKey);
    }
}
