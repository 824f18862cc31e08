package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import stc.v5.Refusal.Invalid;
import stc.v5.Refusal.Unsupported;

/** The fields of a JSON object. Each is taken once; what is left over in the end is something that this adapter does not know. */
final class Params {
    private final ObjectNode left;

    private Params(ObjectNode left) {
        this.left = left;
    }

    static Params of(JsonNode json) throws Invalid {
        return switch (json) {
            case ObjectNode object -> new Params(object);
            case JsonNode none when none.isMissingNode() -> new Params(JsonNodeFactory.instance.objectNode());
            default -> throw new Invalid("an object was expected instead of " + json);
        };
    }

    /** A field that may be absent. */
    Optional<JsonNode> optional(String name) {
        return Optional.ofNullable(left.remove(name)).filter(value -> !value.isNull());
    }

    boolean has(String name) {
        return left.hasNonNull(name);
    }

    JsonNode required(String name) throws Invalid {
        return optional(name).orElseThrow(() -> new Invalid("there is no \"" + name + "\""));
    }

    Params object(String name) throws Invalid {
        return of(required(name));
    }

    long number(String name) throws Invalid {
        return required(name).asLong();
    }

    byte[] bytes(String name) throws Invalid {
        return bytes(required(name));
    }

    static byte[] bytes(JsonNode base64) throws Invalid {
        try {
            return Base64.getDecoder().decode(base64.asText());
        } catch (IllegalArgumentException e) {
            throw new Invalid(base64 + " is not base64");
        }
    }

    Optional<String> text(String name) {
        return optional(name).map(JsonNode::asText);
    }

    Optional<Boolean> flag(String name) {
        return optional(name).map(JsonNode::asBoolean);
    }

    Optional<Duration> millis(String name) {
        return optional(name).map(value -> Duration.ofMillis(value.asLong()));
    }

    Map<String, String> strings(String name) {
        Map<String, String> strings = new HashMap<>();
        optional(name).ifPresent(object ->
                object.properties().forEach(field -> strings.put(field.getKey(), field.getValue().asText())));
        return strings;
    }

    /** To be called when all has been taken that the SDK offers: what is still there is unsupported. */
    void end(String what) throws Unsupported {
        if (!left.isEmpty()) {
            throw new Unsupported("\"" + left.fieldNames().next() + "\" of " + what);
        }
    }
}
