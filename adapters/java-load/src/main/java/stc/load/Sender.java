package stc.load;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.v5.Producer;

/** Keeps sending keyed messages on a thread of its own, at a steady rate, until it is stopped. */
final class Sender implements AutoCloseable {
    private static final int IN_FLIGHT = 200;

    private final Producer<String> producer;
    private final SendLog log;
    private final int keys;
    private final long nanosBetween;
    private final Semaphore permits = new Semaphore(IN_FLIGHT);
    private final Thread thread;
    private volatile boolean stopped;

    Sender(Producer<String> producer, SendLog log, int keys, int rate) {
        this.producer = producer;
        this.log = log;
        this.keys = keys;
        nanosBetween = Duration.ofSeconds(1).toNanos() / rate;
        thread = Thread.ofPlatform().name("sender").daemon().start(this::run);
    }

    private void run() {
        long next = System.nanoTime();
        for (int n = 0; !stopped; n++) {
            permits.acquireUninterruptibly();
            String key = "key-" + n % keys;
            String value = key + "#" + n / keys;
            log.sending(key, value);
            try {
                producer.async().newMessage().key(key).value(value).send().whenComplete((id, failure) -> {
                    log.settled(value, failure);
                    permits.release();
                });
            } catch (RuntimeException e) {
                log.settled(value, e);
                permits.release();
            }
            next += nanosBetween;
            LockSupport.parkNanos(next - System.nanoTime());
        }
    }

    /** Stops; what was sent already goes on to its result. */
    @Override
    public void close() throws InterruptedException {
        stopped = true;
        thread.join();
    }
}
