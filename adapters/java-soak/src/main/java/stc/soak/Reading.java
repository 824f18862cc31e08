package stc.soak;

import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.CheckpointConsumer;
import org.apache.pulsar.client.api.v5.CheckpointConsumerBuilder;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.config.BackoffPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** One consumer of any kind, as {@link Reader} needs it. */
interface Reading extends AutoCloseable {
    /** A message that was given back comes again soon. */
    BackoffPolicy GIVEN_BACK_FOR = BackoffPolicy.exponential(Duration.ofMillis(100), Duration.ofMillis(200));

    /** The next message, or null when none came in time. */
    Message<String> receive(Duration timeout) throws PulsarClientException;

    /** Acknowledges what was received since the last call. */
    void acknowledge(List<MessageId> received);

    /** Gives a message back, where the kind of consumer can. */
    default void giveBack(MessageId id) {
        throw new UnsupportedOperationException();
    }

    /** The position as hex, where the kind of consumer has one. */
    default String position() {
        throw new UnsupportedOperationException();
    }

    @Override
    void close() throws PulsarClientException;

    /**
     * A stream consumer: acknowledges all at once, by the last message, and by each message that an earlier one of its
     * segment followed: the client acknowledges no further than to the message that came last (docs/divergences.md, J28).
     */
    static Reading stream(PulsarClient client, String topic, String subscription, String name) throws Exception {
        StreamConsumer<String> consumer = client.newStreamConsumer(Schema.string()).topic(topic)
                .subscriptionName(subscription).consumerName(name)
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
        return new Reading() {
            @Override
            public Message<String> receive(Duration timeout) throws PulsarClientException {
                return consumer.receive(timeout);
            }

            @Override
            public void acknowledge(List<MessageId> received) {
                for (int i = 1; i < received.size(); i++) {
                    if (received.get(i).compareTo(received.get(i - 1)) < 0) {
                        consumer.acknowledgeCumulative(received.get(i - 1));
                    }
                }
                consumer.acknowledgeCumulative(received.getLast());
            }

            @Override
            public void close() throws PulsarClientException {
                consumer.close();
            }
        };
    }

    /** A queue consumer: acknowledges each message. */
    static Reading queue(PulsarClient client, String topic, String subscription, String name) throws Exception {
        QueueConsumer<String> consumer = client.newQueueConsumer(Schema.string()).topic(topic)
                .subscriptionName(subscription).consumerName(name).negativeAckRedeliveryBackoff(GIVEN_BACK_FOR)
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
        return new Reading() {
            @Override
            public Message<String> receive(Duration timeout) throws PulsarClientException {
                return consumer.receive(timeout);
            }

            @Override
            public void acknowledge(List<MessageId> received) {
                received.forEach(consumer::acknowledge);
            }

            @Override
            public void giveBack(MessageId id) {
                consumer.negativeAcknowledge(id);
            }

            @Override
            public void close() throws PulsarClientException {
                consumer.close();
            }
        };
    }

    /** A checkpoint consumer from a position as hex, or from the beginning; in a group when one is named. */
    static Reading checkpoint(PulsarClient client, String topic, String group, String name, String position)
            throws Exception {
        CheckpointConsumerBuilder<String> builder = client.newCheckpointConsumer(Schema.string()).topic(topic)
                .consumerName(name).startPosition(position == null ? Checkpoint.earliest()
                        : Checkpoint.fromByteArray(HexFormat.of().parseHex(position)));
        CheckpointConsumer<String> consumer = (group == null ? builder : builder.consumerGroup(group)).create();
        return new Reading() {
            @Override
            public Message<String> receive(Duration timeout) throws PulsarClientException {
                return consumer.receive(timeout);
            }

            @Override
            public void acknowledge(List<MessageId> received) {
                // Nothing to acknowledge: the application holds the position.
            }

            @Override
            public String position() {
                return HexFormat.of().formatHex(consumer.checkpoint().toByteArray());
            }

            @Override
            public void close() throws PulsarClientException {
                try {
                    consumer.close();
                } catch (java.io.IOException e) {
                    throw new PulsarClientException(e);
                }
            }
        };
    }
}
