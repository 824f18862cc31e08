package stc.v5;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;

/**
 * The messages that one consumer received, by the handles that the suite knows them by.
 *
 * @param <T> their values
 */
final class Received<T> {
    private final Reading<T> schema;
    private final AtomicLong last = new AtomicLong();
    private final ConcurrentHashMap<Long, MessageId> ids = new ConcurrentHashMap<>();

    Received(Reading<T> schema) {
        this.schema = schema;
    }

    /** The identifier of a message that was received. */
    MessageId id(long handle) throws Refusal.Invalid {
        MessageId id = ids.get(handle);
        if (id == null) {
            throw new Refusal.Invalid("no message " + handle + " was received");
        }
        return id;
    }

    /** Notes a message, and writes it as the suite reads it. */
    ObjectNode add(Message<T> message) throws Refusal {
        long handle = last.incrementAndGet();
        ids.put(handle, message.id());
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("handle", handle);
        json.set("id", Json.base64(message.id().toByteArray()));
        json.set("value", schema.write().apply(Calls.blocking(message::value)));
        json.set("payload", Json.base64(message.data()));
        message.key().ifPresent(key -> json.put("key", key));
        ObjectNode properties = json.putObject("properties");
        message.properties().forEach(properties::put);
        json.put("publishTimeMs", message.publishTime().toEpochMilli());
        message.eventTime().map(Instant::toEpochMilli).ifPresent(time -> json.put("eventTimeMs", time));
        json.put("sequenceId", message.sequenceId());
        message.producerName().ifPresent(name -> json.put("producerName", name));
        json.put("topic", message.topic());
        json.put("redeliveryCount", message.redeliveryCount());
        json.put("size", message.size());
        message.replicatedFrom().ifPresent(cluster -> json.put("replicatedFrom", cluster));
        return json;
    }
}
