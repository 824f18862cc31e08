package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.CheckpointConsumer;
import org.apache.pulsar.client.api.v5.CheckpointConsumerBuilder;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.PulsarClient;

/** A checkpoint consumer. */
final class CheckpointSide<T> extends OpenConsumer<T> {
    private final CheckpointConsumer<T> consumer;

    private CheckpointSide(CheckpointConsumer<T> consumer, Reading<T> schema) {
        super(schema);
        this.consumer = consumer;
    }

    static <T> CheckpointSide<T> create(PulsarClient client, Reading<T> schema, Params options)
            throws Refusal, InterruptedException {
        CheckpointConsumer<T> consumer = Calls.future(() -> {
            CheckpointConsumerBuilder<T> builder = client.newCheckpointConsumer(schema.schema());
            options.text("topic").ifPresent(builder::topic);
            Optional<JsonNode> start = options.optional("start");
            if (start.isPresent()) {
                builder.startPosition(start(start.get()));
            }
            options.text("group").ifPresent(builder::consumerGroup);
            options.text("name").ifPresent(builder::consumerName);
            Encryption.ofConsumer(options, builder::encryptionPolicy);
            // "receiverQueue" is left over: the builder has no such thing.
            options.end("a checkpoint consumer");
            return builder.createAsync();
        });
        return new CheckpointSide<>(consumer, schema);
    }

    /** {@code {"boundary": "earliest"}}, or {@code {"checkpoint": "base64"}}. */
    private static Checkpoint start(JsonNode start) throws Refusal, IOException {
        if (start.has("checkpoint")) {
            return Checkpoint.fromByteArray(Params.bytes(start.get("checkpoint")));
        }
        return IdOperations.isEarliest(start.path("boundary")) ? Checkpoint.earliest() : Checkpoint.latest();
    }

    @Override
    Message<T> receive() throws Refusal, InterruptedException {
        return Calls.future(() -> consumer.async().receive());
    }

    @Override
    Message<T> receive(Duration wait) throws Refusal, InterruptedException {
        return Calls.future(() -> consumer.async().receive(wait));
    }

    @Override
    List<Message<T>> receiveMulti(int max, Duration wait) throws Refusal, InterruptedException {
        return Calls.future(() -> consumer.async().receiveMulti(max, wait));
    }

    @Override
    String topic() {
        return consumer.topic();
    }

    @Override
    Checkpoint checkpoint() throws Refusal, InterruptedException {
        return Calls.future(() -> consumer.async().checkpoint());
    }

    @Override
    CompletableFuture<Void> closeAsync() {
        return consumer.async().close();
    }
}
