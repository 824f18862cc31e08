package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Function;
import org.apache.pulsar.client.api.v5.schema.Schema;
import org.apache.pulsar.client.api.v5.schema.SchemaType;

/**
 * A schema for consumers, with the values that they receive: in JSON {@code {"text": "m-0"}}.
 *
 * @param schema the SDK's schema
 * @param write a value in JSON
 * @param <T> the values in Java
 */
record Reading<T>(Schema<T> schema, Function<T, ObjectNode> write) {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** The schema that a field {@code schema} names; text when there is none. */
    static Reading<?> of(Params options) throws Refusal {
        SchemaKind kind = SchemaKind.of(options);
        return switch (kind.name()) {
            case "bytes" -> new Reading<>(Schema.bytes(), value -> named("bytes", Json.base64(value)));
            case "text" -> new Reading<>(Schema.string(), value -> named("text", JSON.textNode(value)));
            case "bool" -> new Reading<>(Schema.bool(), value -> named("bool", JSON.booleanNode(value)));
            case "int8" -> new Reading<>(Schema.int8(), Reading::whole);
            case "int16" -> new Reading<>(Schema.int16(), Reading::whole);
            case "int32" -> new Reading<>(Schema.int32(), Reading::whole);
            case "int64" -> new Reading<>(Schema.int64(), Reading::whole);
            case "float" -> new Reading<>(Schema.float32(), value -> named("double", JSON.numberNode(value.doubleValue())));
            case "double" -> new Reading<>(Schema.float64(), value -> named("double", JSON.numberNode(value)));
            case "json" -> new Reading<>(Schema.generic(kind.info(SchemaType.JSON)), Reading::any);
            case "avro" -> new Reading<>(Schema.generic(kind.info(SchemaType.AVRO)), Reading::any);
            case "auto" -> new Reading<>(Schema.autoConsume(), Reading::any);
            default -> throw kind.unsupported();
        };
    }

    private static ObjectNode named(String name, JsonNode value) {
        ObjectNode json = JSON.objectNode();
        json.set(name, value);
        return json;
    }

    private static ObjectNode whole(Number value) {
        return named("int64", Json.number(value.longValue()));
    }

    /** A value whose type only the message tells. */
    private static ObjectNode any(Object value) {
        JsonNode json = Records.toJson(value);
        if (json.isTextual()) {
            return named("text", json);
        }
        if (json.isBoolean()) {
            return named("bool", json);
        }
        if (json.isIntegralNumber()) {
            return named("int64", json);
        }
        return named(json.isNumber() ? "double" : "record", json);
    }
}
