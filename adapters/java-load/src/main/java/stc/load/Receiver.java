package stc.load;

import java.time.Duration;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.QueueConsumer;

/** Keeps receiving and acknowledging on a thread of its own, until it is stopped and its queue is empty. */
final class Receiver implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(100);

    private final QueueConsumer<String> consumer;
    private final ReceiveLog log;
    private final Thread thread;
    private volatile boolean stopped;

    Receiver(QueueConsumer<String> consumer, ReceiveLog log) {
        this.consumer = consumer;
        this.log = log;
        thread = Thread.ofPlatform().name("receiver").daemon().start(this::run);
    }

    private void run() {
        try {
            while (true) {
                Message<String> message = consumer.receive(POLL);
                if (message != null) {
                    log.received(message.key().orElse(null), message.value(), message.redeliveryCount());
                    consumer.acknowledge(message.id());
                } else if (stopped) {
                    return;
                }
            }
        } catch (PulsarClientException | RuntimeException e) {
            log.failed("receive failed: " + e);
        }
    }

    @Override
    public void close() throws InterruptedException {
        stopped = true;
        thread.join();
    }
}
