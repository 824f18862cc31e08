package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * A schema of the SDK, with its values in JSON: {@code {"text": "m-0"}}.
 *
 * @param <T> the values in Java
 */
abstract class Kind<T> {
    static final Kind<byte[]> BYTES = new Kind<>("bytes", Schema.bytes()) {
        @Override
        byte[] read(JsonNode value) throws Refusal {
            return Params.bytes(value);
        }

        @Override
        JsonNode write(byte[] value) {
            return Json.base64(value);
        }
    };

    static final Kind<String> TEXT = new Kind<>("text", Schema.string()) {
        @Override
        String read(JsonNode value) {
            return value.asText();
        }

        @Override
        JsonNode write(String value) {
            return JsonNodeFactory.instance.textNode(value);
        }
    };

    static final Kind<Long> INT64 = new Kind<>("int64", Schema.int64()) {
        @Override
        Long read(JsonNode value) {
            return value.asLong();
        }

        @Override
        JsonNode write(Long value) {
            return Json.number(value);
        }
    };

    final Schema<T> schema;
    private final String name;

    private Kind(String name, Schema<T> schema) {
        this.name = name;
        this.schema = schema;
    }

    /** The kind that a field {@code schema} names; text when there is none. */
    static Kind<?> of(Params options) throws Refusal {
        String name = options.text("schema").orElse("text");
        return switch (name) {
            case "bytes" -> BYTES;
            case "text" -> TEXT;
            case "int64" -> INT64;
            default -> throw new Refusal.Unsupported("the schema " + name);
        };
    }

    /** A value that a message is to have. Bytes are given as text as well, where a step needs no more. */
    final T fromJson(JsonNode json) throws Refusal {
        JsonNode value = json.get(name);
        if (value != null) {
            return read(value);
        }
        if (this == BYTES && json.has("text")) {
            return read(Json.base64(json.get("text").asText().getBytes(StandardCharsets.UTF_8)));
        }
        throw new Refusal.Unsupported("a value " + json + " in a " + name + " schema");
    }

    /** A value that a message has. */
    final ObjectNode toJson(T value) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.set(name, write(value));
        return json;
    }

    abstract T read(JsonNode value) throws Refusal;

    abstract JsonNode write(T value);
}
