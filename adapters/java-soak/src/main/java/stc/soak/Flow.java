package stc.soak;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * A producer that sends keyed messages at a steady rate while it is on. Without batches: in a batch, a send that meets a
 * layout change can hang for ever, and those after it (docs/divergences.md, J27).
 */
final class Flow {
    private static final int IN_FLIGHT = 100;
    private static final int KEYS = 16;
    private static final long NANOS_BETWEEN = Duration.ofMillis(2).toNanos();

    private final Events events;
    private final Producer<String> producer;
    private final Semaphore permits = new Semaphore(IN_FLIGHT);
    private volatile boolean on;
    private Thread thread;
    private int sent;

    Flow(PulsarClient client, String topic, Events events) throws Exception {
        this.events = events;
        producer = client.newProducer(Schema.string()).topic(topic).producerName("flow").blockIfQueueFull(true)
                .batchingPolicy(BatchingPolicy.ofDisabled()).create();
    }

    synchronized void start() {
        on = true;
        thread = Thread.ofPlatform().name("flow").daemon().start(() -> {
            long next = System.nanoTime();
            while (on) {
                send("");
                next += NANOS_BETWEEN;
                LockSupport.parkNanos(next - System.nanoTime());
            }
        });
    }

    /** Stops, and returns when every send has its result. */
    synchronized void stop() throws InterruptedException {
        on = false;
        thread.join();
        settle();
    }

    /** Sends one more message with each key, and returns when each has its result. */
    synchronized void last() {
        for (int i = 0; i < KEYS; i++) {
            send("-last");
        }
        settle();
    }

    private void settle() {
        permits.acquireUninterruptibly(IN_FLIGHT);
        permits.release(IN_FLIGHT);
    }

    private void send(String mark) {
        permits.acquireUninterruptibly();
        String key = "key-" + sent % KEYS;
        String value = key + "#" + sent / KEYS + mark;
        sent++;
        events.write("sending", json -> json.put("key", key).put("value", value));
        try {
            producer.async().newMessage().key(key).value(value).send()
                    .whenComplete((id, failure) -> settled(value, failure));
        } catch (RuntimeException e) {
            settled(value, e);
        }
    }

    private void settled(String value, Throwable failure) {
        events.write("sent", json -> {
            json.put("value", value);
            if (failure != null) {
                json.put("error", failure.toString());
            }
        });
        permits.release();
    }
}
