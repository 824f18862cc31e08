package stc.v5;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;

/**
 * A consumer of any kind. What a kind has no call for is unsupported.
 *
 * @param <T> the values of its messages
 */
abstract class OpenConsumer<T> {
    /** What it received. */
    final Received<T> received;

    OpenConsumer(Reading<T> schema) {
        received = new Received<>(schema);
    }

    /** Waits for a message as long as it takes. */
    abstract Message<T> receive() throws Refusal, InterruptedException;

    /** Waits for a message; {@code null} when none came in time. */
    abstract Message<T> receive(Duration wait) throws Refusal, InterruptedException;

    List<Message<T>> receiveMulti(int max, Duration wait) throws Refusal, InterruptedException {
        throw new Refusal.Unsupported("receiveMulti of this consumer");
    }

    abstract String topic();

    /** {@code null} when the SDK does not tell. */
    String name() {
        return null;
    }

    void acknowledge(MessageId id) throws Refusal {
        throw new Refusal.Unsupported("acknowledge of this consumer");
    }

    void acknowledgeCumulative(MessageId id) throws Refusal {
        throw new Refusal.Unsupported("acknowledgeCumulative of this consumer");
    }

    void negativeAcknowledge(MessageId id) throws Refusal {
        throw new Refusal.Unsupported("negativeAcknowledge of this consumer");
    }

    Checkpoint checkpoint() throws Refusal, InterruptedException {
        throw new Refusal.Unsupported("checkpoint of this consumer");
    }

    abstract CompletableFuture<Void> closeAsync();
}
