package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.pulsar.client.api.v5.schema.Schema;
import org.apache.pulsar.client.api.v5.schema.SchemaType;

/**
 * A schema for producers, with the values that they send: in JSON {@code {"text": "m-0"}}.
 *
 * @param schema the SDK's schema
 * @param field the name of the values in JSON
 * @param read a value in Java
 * @param <T> the values in Java
 */
record Writing<T>(Schema<T> schema, String field, Reader<T> read) {
    /** Reads a value. */
    @FunctionalInterface
    interface Reader<T> {
        T read(JsonNode value) throws Refusal;
    }

    /** The schema that a field {@code schema} names; text when there is none. */
    static Writing<?> of(Params options) throws Refusal {
        SchemaKind kind = SchemaKind.of(options);
        return switch (kind.name()) {
            case "bytes" -> new Writing<>(Schema.bytes(), "bytes", Params::bytes);
            case "text" -> new Writing<>(Schema.string(), "text", JsonNode::asText);
            case "bool" -> new Writing<>(Schema.bool(), "bool", JsonNode::asBoolean);
            case "int8" -> new Writing<>(Schema.int8(), "int64", value -> (byte) value.asInt());
            case "int16" -> new Writing<>(Schema.int16(), "int64", value -> (short) value.asInt());
            case "int32" -> new Writing<>(Schema.int32(), "int64", JsonNode::asInt);
            case "int64" -> new Writing<>(Schema.int64(), "int64", JsonNode::asLong);
            case "float" -> new Writing<>(Schema.float32(), "double", value -> (float) value.asDouble());
            case "double" -> new Writing<>(Schema.float64(), "double", JsonNode::asDouble);
            // The SDK makes records of classes alone. What an application has in another form it sends as bytes that the
            // SDK checks against the definition.
            case "json" -> new Writing<>(
                    Schema.autoProduceBytesOf(Schema.generic(kind.info(SchemaType.JSON))), "record", Records::json);
            case "avro" -> new Writing<>(
                    Schema.autoProduceBytesOf(Schema.generic(kind.info(SchemaType.AVRO))), "record",
                    value -> Records.avro(kind.definition(), value));
            default -> throw kind.unsupported();
        };
    }

    /** A value that a message is to have. Bytes are given as text as well, where a step needs no more. */
    T value(JsonNode json) throws Refusal {
        JsonNode value = json.get(field);
        if (value == null && field.equals("bytes") && json.has("text")) {
            value = Json.base64(json.get("text").asText().getBytes(StandardCharsets.UTF_8));
        }
        if (value == null) {
            throw new Refusal.Unsupported("a value " + json + " in another schema");
        }
        return read.read(value);
    }
}
