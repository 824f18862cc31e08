package stc.v5;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.QueueConsumerBuilder;
import org.apache.pulsar.client.api.v5.Transaction;
import org.apache.pulsar.client.api.v5.config.BackoffPolicy;
import org.apache.pulsar.client.api.v5.config.DeadLetterPolicy;

/** A queue consumer. */
final class QueueSide<T> extends OpenConsumer<T> {
    private final QueueConsumer<T> consumer;

    private QueueSide(QueueConsumer<T> consumer, Reading<T> schema) {
        super(schema);
        this.consumer = consumer;
    }

    static <T> QueueSide<T> subscribe(PulsarClient client, Reading<T> schema, Params options)
            throws Refusal, InterruptedException {
        Optional<DeadLetterPolicy> deadLetters =
                options.has("deadLetters") ? Optional.of(deadLetters(options.object("deadLetters"))) : Optional.empty();
        QueueConsumer<T> consumer = Calls.future(() -> {
            QueueConsumerBuilder<T> builder = client.newQueueConsumer(schema.schema());
            options.text("topic").ifPresent(builder::topic);
            options.text("subscription").ifPresent(builder::subscriptionName);
            options.text("name").ifPresent(builder::consumerName);
            ConsumerOperations.initialPosition(options).ifPresent(builder::subscriptionInitialPosition);
            options.optional("receiverQueue").ifPresent(size -> builder.receiverQueueSize(size.asInt()));
            // One that is fixed the SDK refuses when it subscribes.
            options.millis("redeliveryDelayMs")
                    .ifPresent(delay -> builder.negativeAckRedeliveryBackoff(BackoffPolicy.exponential(delay, delay)));
            deadLetters.ifPresent(builder::deadLetterPolicy);
            Encryption.ofConsumer(options, builder::encryptionPolicy);
            options.end("a queue consumer");
            return builder.subscribeAsync();
        });
        return new QueueSide<>(consumer, schema);
    }

    private static DeadLetterPolicy deadLetters(Params policy) throws Refusal {
        DeadLetterPolicy.Builder builder = DeadLetterPolicy.builder();
        builder.maxRedeliverCount((int) policy.number("maxRedeliveries"));
        policy.text("topic").ifPresent(builder::deadLetterTopic);
        policy.end("a dead-letter policy");
        return builder.build();
    }

    @Override
    Message<T> receive() throws Refusal, InterruptedException {
        return Calls.future(() -> consumer.async().receive());
    }

    /** The SDK has no future for this one. */
    @Override
    Message<T> receive(Duration wait) throws Refusal {
        return Calls.blocking(() -> consumer.receive(wait));
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
    void acknowledge(MessageId id) throws Refusal {
        Calls.run(() -> consumer.acknowledge(id));
    }

    @Override
    void acknowledge(MessageId id, Transaction transaction) throws Refusal {
        Calls.run(() -> consumer.acknowledge(id, transaction));
    }

    @Override
    void negativeAcknowledge(MessageId id) throws Refusal {
        Calls.run(() -> consumer.negativeAcknowledge(id));
    }

    @Override
    CompletableFuture<Void> closeAsync() {
        return consumer.async().close();
    }
}
