package stc.v5;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumerBuilder;
import org.apache.pulsar.client.api.v5.Transaction;

/** A stream consumer. */
final class StreamSide<T> extends OpenConsumer<T> {
    private final StreamConsumer<T> consumer;

    private StreamSide(StreamConsumer<T> consumer, Reading<T> schema) {
        super(schema);
        this.consumer = consumer;
    }

    static <T> StreamSide<T> subscribe(PulsarClient client, Reading<T> schema, Params options)
            throws Refusal, InterruptedException {
        return subscribe(client, schema, options, Optional.empty());
    }

    /** A consumer of a namespace, which {@code options} tell; {@code stream} is all else. */
    static <T> StreamSide<T> subscribeNamespace(PulsarClient client, Reading<T> schema, Params options, Params stream)
            throws Refusal, InterruptedException {
        Optional<Namespace> namespace =
                Optional.of(new Namespace(options.required("namespace").asText(), options.strings("topicProperties")));
        options.end("a consumer of a namespace");
        return subscribe(client, schema, stream, namespace);
    }

    /** The topics of a namespace that have certain properties. */
    private record Namespace(String name, Map<String, String> properties) {}

    private static <T> StreamSide<T> subscribe(
            PulsarClient client, Reading<T> schema, Params options, Optional<Namespace> namespace)
            throws Refusal, InterruptedException {
        StreamConsumer<T> consumer = Calls.future(() -> {
            StreamConsumerBuilder<T> builder = client.newStreamConsumer(schema.schema());
            options.text("topic").ifPresent(builder::topic);
            namespace.ifPresent(all -> builder.namespace(all.name(), all.properties()));
            options.text("subscription").ifPresent(builder::subscriptionName);
            options.text("name").ifPresent(builder::consumerName);
            ConsumerOperations.initialPosition(options).ifPresent(builder::subscriptionInitialPosition);
            builder.subscriptionProperties(options.strings("properties"));
            options.flag("readCompacted").ifPresent(builder::readCompacted);
            options.millis("ackGroupTimeMs").ifPresent(builder::acknowledgmentGroupTime);
            Encryption.ofConsumer(options, builder::encryptionPolicy);
            // "replicateState" and "receiverQueue" are left over: the builder has no such thing.
            options.end("a stream consumer");
            return builder.subscribeAsync();
        });
        return new StreamSide<>(consumer, schema);
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
    String name() {
        return consumer.consumerName();
    }

    @Override
    void acknowledgeCumulative(MessageId id) throws Refusal {
        Calls.run(() -> consumer.acknowledgeCumulative(id));
    }

    @Override
    void acknowledgeCumulative(MessageId id, Transaction transaction) throws Refusal {
        Calls.run(() -> consumer.acknowledgeCumulative(id, transaction));
    }

    @Override
    CompletableFuture<Void> closeAsync() {
        return consumer.async().close();
    }
}
