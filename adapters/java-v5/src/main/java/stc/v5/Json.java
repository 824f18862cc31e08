package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.Base64;

/** The forms of numbers and bytes in JSON. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();
    static final JsonNode NULL = JsonNodeFactory.instance.nullNode();

    private Json() {
    }

    static JsonNode number(long number) {
        return JsonNodeFactory.instance.numberNode(number);
    }

    static JsonNode base64(byte[] bytes) {
        return JsonNodeFactory.instance.textNode(Base64.getEncoder().encodeToString(bytes));
    }
}
