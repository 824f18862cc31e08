package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;

/** Consumers of all kinds. */
final class ConsumerOperations {
    private ConsumerOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("subscribeQueue", (scenario, params) -> open(scenario, params, QueueSide::subscribe));
        operations.put("subscribeStream", (scenario, params) -> open(scenario, params, StreamSide::subscribe));
        operations.put("subscribeNamespace", ConsumerOperations::openNamespace);
        operations.put("createCheckpointConsumer", (scenario, params) -> open(scenario, params, CheckpointSide::create));
        operations.put("describeConsumer", ConsumerOperations::describe);
        operations.put("receive", (scenario, params) -> receive(scenario.consumers.get(params), params));
        operations.put("receiveMulti", (scenario, params) -> receiveMulti(scenario.consumers.get(params), params));
        operations.put("acknowledge", acknowledging(OpenConsumer::acknowledge));
        operations.put("acknowledgeCumulative", acknowledging(OpenConsumer::acknowledgeCumulative));
        operations.put("negativeAcknowledge", acknowledging(OpenConsumer::negativeAcknowledge));
        operations.put("acknowledgeId", ConsumerOperations::acknowledgeId);
        operations.put("checkpoint", ConsumerOperations::checkpoint);
        operations.put("closeConsumer", ConsumerOperations::close);
    }

    /** How one kind of consumer is made. */
    private interface Opening {
        <T> OpenConsumer<T> open(PulsarClient client, Reading<T> schema, Params options)
                throws Refusal, InterruptedException;
    }

    private static JsonNode open(Scenario scenario, Params params, Opening opening)
            throws Refusal, InterruptedException {
        PulsarClient client = scenario.clients.get(params).client();
        Params options = params.object("options");
        return Json.number(scenario.consumers.add(opening.open(client, Reading.of(options), options)));
    }

    /** The schema is among the options of the stream consumer within. */
    private static JsonNode openNamespace(Scenario scenario, Params params) throws Refusal, InterruptedException {
        PulsarClient client = scenario.clients.get(params).client();
        Params options = params.object("options");
        Params stream = options.object("stream");
        Reading<?> schema = Reading.of(stream);
        return Json.number(scenario.consumers.add(StreamSide.subscribeNamespace(client, schema, options, stream)));
    }

    /** Where a new subscription begins, when the suite says. */
    static Optional<SubscriptionInitialPosition> initialPosition(Params options) {
        return options.optional("initialPosition")
                .map(position -> IdOperations.isEarliest(position)
                        ? SubscriptionInitialPosition.EARLIEST
                        : SubscriptionInitialPosition.LATEST);
    }

    private static JsonNode describe(Scenario scenario, Params params) throws Refusal {
        OpenConsumer<?> consumer = scenario.consumers.get(params);
        ObjectNode described = JsonNodeFactory.instance.objectNode().put("topic", consumer.topic());
        return consumer.name() == null ? described : described.put("name", consumer.name());
    }

    private static <T> JsonNode receive(OpenConsumer<T> consumer, Params params) throws Refusal, InterruptedException {
        Optional<Duration> wait = params.millis("waitMs");
        Message<T> message = wait.isPresent() ? consumer.receive(wait.get()) : consumer.receive();
        return message == null ? Json.NULL : consumer.received.add(message);
    }

    private static <T> JsonNode receiveMulti(OpenConsumer<T> consumer, Params params)
            throws Refusal, InterruptedException {
        int max = (int) params.number("max");
        ArrayNode messages = JsonNodeFactory.instance.arrayNode();
        for (Message<T> message : consumer.receiveMulti(max, Duration.ofMillis(params.number("waitMs")))) {
            messages.add(consumer.received.add(message));
        }
        return messages;
    }

    /** An acknowledgement of one of the kinds. */
    private interface Acknowledgement {
        void send(OpenConsumer<?> consumer, MessageId id) throws Refusal;
    }

    private static Session.Operation acknowledging(Acknowledgement acknowledgement) {
        return (scenario, params) -> {
            OpenConsumer<?> consumer = scenario.consumers.get(params);
            acknowledgement.send(consumer, consumer.received.id(params.number("handle")));
            return Json.NULL;
        };
    }

    private static JsonNode acknowledgeId(Scenario scenario, Params params) throws Refusal {
        scenario.consumers.get(params).acknowledge(IdOperations.restored(params, "id"));
        return Json.NULL;
    }

    private static JsonNode checkpoint(Scenario scenario, Params params) throws Refusal, InterruptedException {
        return Json.base64(scenario.consumers.get(params).checkpoint().toByteArray());
    }

    private static JsonNode close(Scenario scenario, Params params) throws Refusal, InterruptedException {
        OpenConsumer<?> consumer = scenario.consumers.get(params);
        Calls.future(consumer::closeAsync);
        return Json.NULL;
    }
}
