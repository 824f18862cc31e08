package stc.load;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * Sends, receives and takes the time, as directed line by line on standard input: the directions and answers of
 * {@code client/examples/load.rs}, which does the same with the reference client.
 */
public final class Timed {
    private static final int WINDOW = 20_000;
    private static final int KEYS = 100;
    private static final int SIZE = 100;
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    /** How long a broker may take until it is there. */
    private static final Duration START = Duration.ofSeconds(120);

    private final String serviceUrl;

    private Timed(String serviceUrl) {
        this.serviceUrl = serviceUrl;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 1) {
            System.err.println("usage: stc.load.Timed SERVICE_URL");
            System.exit(2);
        }
        Timed timed = new Timed(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" +");
            System.out.println(switch (words[0]) {
                case "ready" -> "{}";
                case "first" -> timed.first(words[1]);
                case "latency" -> timed.latency(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                case "produce" -> timed.produce(words[1], Double.parseDouble(words[2]));
                case "consume" -> timed.consume(words[1], Integer.parseInt(words[2]),
                        Double.parseDouble(words[3]));
                default -> throw new IllegalArgumentException("no such direction: " + line);
            });
            System.out.flush();
        }
        System.exit(0);
    }

    private PulsarClient client() throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(serviceUrl).build();
    }

    private static Producer<byte[]> producer(PulsarClient client, String topic, boolean batching)
            throws PulsarClientException {
        var builder = client.newProducer(Schema.bytes()).topic(topic);
        if (!batching) {
            builder = builder.batchingPolicy(BatchingPolicy.ofDisabled());
        }
        return builder.create();
    }

    /** A broker that just started refuses connections and then, for a while, topics. */
    private String first(String topic) throws InterruptedException {
        URI uri = URI.create(serviceUrl);
        long deadline = System.nanoTime() + START.toNanos();
        while (System.nanoTime() < deadline) {
            try (Socket probe = new Socket(uri.getHost(), uri.getPort())) {
                probe.close();
            } catch (IOException refused) {
                Thread.sleep(1);
                continue;
            }
            try (PulsarClient client = client(); Producer<byte[]> producer = producer(client, topic, false)) {
                producer.newMessage().key("key").value(new byte[SIZE]).send();
                return "{}";
            } catch (PulsarClientException notYet) {
                System.err.println("not yet: " + notYet);
            }
        }
        throw new IllegalStateException("the broker does not come up");
    }

    private String latency(String topic, int warmUp, int count) throws PulsarClientException {
        long[] nanos = new long[count];
        try (PulsarClient client = client(); Producer<byte[]> producer = producer(client, topic, false)) {
            for (int n = 0; n < warmUp + count; n++) {
                var message = producer.newMessage().key(key(n)).value(new byte[SIZE]);
                long before = System.nanoTime();
                message.send();
                if (n >= warmUp) {
                    nanos[n - warmUp] = System.nanoTime() - before;
                }
            }
        }
        return "{\"nanos\":" + Arrays.toString(nanos) + "}";
    }

    private String produce(String topic, double seconds) throws Exception {
        try (PulsarClient client = client(); Producer<byte[]> producer = producer(client, topic, true)) {
            Semaphore window = new Semaphore(WINDOW);
            AtomicReference<Throwable> failure = new AtomicReference<>();
            int messages = 0;
            long before = System.nanoTime();
            while (since(before) < seconds) {
                window.acquire();
                producer.async().newMessage().key(key(messages)).value(new byte[SIZE]).send()
                        .whenComplete((id, error) -> {
                            if (error != null) {
                                failure.set(error);
                            }
                            window.release();
                        });
                messages++;
            }
            window.acquire(WINDOW);
            String answer = rate(messages, before);
            if (failure.get() != null) {
                throw new IllegalStateException("a send failed", failure.get());
            }
            return answer;
        }
    }

    private String consume(String topic, int count, double seconds) throws PulsarClientException {
        try (PulsarClient client = client()) {
            long before = System.nanoTime();
            try (QueueConsumer<byte[]> consumer = client.newQueueConsumer(Schema.bytes()).topic(topic)
                    .subscriptionName("load").subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                    .subscribe()) {
                int messages = 0;
                while (messages < count && since(before) < seconds) {
                    Message<byte[]> message = consumer.receive(PATIENCE);
                    if (message == null) {
                        throw new IllegalStateException(messages + " of " + count + " messages came");
                    }
                    consumer.acknowledge(message.id());
                    messages++;
                }
                return rate(messages, before);
            }
        }
    }

    private static String rate(int messages, long before) {
        return "{\"messages\":" + messages + ",\"seconds\":" + since(before) + "}";
    }

    private static double since(long before) {
        return (System.nanoTime() - before) / 1e9;
    }

    private static String key(int n) {
        return "key-" + n % KEYS;
    }
}
