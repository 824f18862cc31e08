package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.MessageMetadata;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;

/** Producers, and what they send. */
final class ProducerOperations {
    private ProducerOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("createProducer", ProducerOperations::create);
        operations.put("describeProducer", ProducerOperations::describe);
        operations.put("send", ProducerOperations::send);
        operations.put("sendAsync", ProducerOperations::sendAsync);
        operations.put("sendOutcome", ProducerOperations::outcome);
        operations.put("flush", ProducerOperations::flush);
        operations.put("lastSequenceId", ProducerOperations::lastSequenceId);
        operations.put("closeProducer", ProducerOperations::close);
    }

    private static JsonNode create(Scenario scenario, Params params) throws Refusal, InterruptedException {
        PulsarClient client = scenario.clients.get(params).client();
        Params options = params.object("options");
        return Json.number(scenario.producers.add(create(client, Writing.of(options), options)));
    }

    private static <T> OpenProducer<T> create(PulsarClient client, Writing<T> schema, Params options)
            throws Refusal, InterruptedException {
        Producer<T> producer =
                Calls.future(() -> ProducerOptions.apply(client.newProducer(schema.schema()), options).createAsync());
        return new OpenProducer<>(producer, schema);
    }

    private static JsonNode describe(Scenario scenario, Params params) throws Refusal {
        Producer<?> producer = scenario.producers.get(params).producer();
        ObjectNode described = JsonNodeFactory.instance.objectNode().put("topic", producer.topic());
        String name = producer.producerName();
        return name == null ? described : described.put("name", name);
    }

    private static JsonNode send(Scenario scenario, Params params) throws Refusal {
        return send(scenario.producers.get(params), params.object("message"));
    }

    private static <T> JsonNode send(OpenProducer<T> open, Params message) throws Refusal {
        MessageId id = Calls.blocking(() -> filled(open.producer().newMessage(), open.schema(), message).send());
        return Json.base64(id.toByteArray());
    }

    private static JsonNode sendAsync(Scenario scenario, Params params) throws Refusal {
        OpenProducer<?> open = scenario.producers.get(params);
        List<Params> messages = new ArrayList<>();
        for (JsonNode message : params.required("messages")) {
            messages.add(Params.of(message));
        }
        ArrayNode tickets = JsonNodeFactory.instance.arrayNode();
        for (Params message : messages) {
            tickets.add(scenario.tickets.add(sending(open, message)));
        }
        return tickets;
    }

    private static <T> CompletableFuture<MessageId> sending(OpenProducer<T> open, Params message) throws Refusal {
        return Calls.started(() -> filled(open.producer().async().newMessage(), open.schema(), message).send());
    }

    private static JsonNode outcome(Scenario scenario, Params params) throws Refusal, InterruptedException {
        return Json.base64(Calls.outcome(scenario.tickets.get(params)).toByteArray());
    }

    /** Gives a message what the suite wants it to have. */
    private static <T, B extends MessageMetadata<T, B>> B filled(B builder, Writing<T> schema, Params message)
            throws Refusal {
        builder.value(schema.value(message.required("value")));
        message.text("key").ifPresent(builder::key);
        builder.properties(message.strings("properties"));
        message.millis("eventTimeMs").ifPresent(time -> builder.eventTime(Instant.EPOCH.plus(time)));
        message.optional("sequenceId").ifPresent(id -> builder.sequenceId(id.asLong()));
        message.millis("deliverAfterMs").ifPresent(builder::deliverAfter);
        message.millis("deliverAtMs").ifPresent(time -> builder.deliverAt(Instant.EPOCH.plus(time)));
        message.optional("replicateTo").ifPresent(clusters -> {
            List<String> names = new ArrayList<>();
            clusters.forEach(cluster -> names.add(cluster.asText()));
            builder.replicationClusters(names);
        });
        message.end("a message");
        return builder;
    }

    private static JsonNode flush(Scenario scenario, Params params) throws Refusal, InterruptedException {
        Producer<?> producer = scenario.producers.get(params).producer();
        Calls.future(() -> producer.async().flush());
        return Json.NULL;
    }

    private static JsonNode lastSequenceId(Scenario scenario, Params params) throws Refusal {
        Producer<?> producer = scenario.producers.get(params).producer();
        long last = Calls.blocking(producer::lastSequenceId);
        return last < 0 ? Json.NULL : Json.number(last);
    }

    private static JsonNode close(Scenario scenario, Params params) throws Refusal, InterruptedException {
        Producer<?> producer = scenario.producers.get(params).producer();
        Calls.future(() -> producer.async().close());
        return Json.NULL;
    }
}
