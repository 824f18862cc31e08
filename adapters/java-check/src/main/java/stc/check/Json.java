package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/** JSON building and printing. Printed text is plain ASCII, so that no editor or diff can change a key. */
final class Json {
    private static final ObjectMapper MAPPER = JsonMapper.builder()
            .enable(com.fasterxml.jackson.core.json.JsonWriteFeature.ESCAPE_NON_ASCII)
            .build();

    private Json() {
    }

    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static ArrayNode numbers(Collection<? extends Number> values) {
        ArrayNode array = MAPPER.createArrayNode();
        for (Number value : values) {
            array.add(value.longValue());
        }
        return array;
    }

    /** The JSON that Pulsar's admin REST gives for an object of Pulsar's, with number types as a parser gives them. */
    static ObjectNode ofPulsar(Object value) {
        try {
            return (ObjectNode) parse(ObjectMapperFactory.getMapper().writer().writeValueAsString(value));
        } catch (java.io.IOException e) {
            throw new AssertionError("Pulsar's mapper cannot write " + value, e);
        }
    }

    /** A value as it reads back from the text that it prints as. */
    static JsonNode value(Object value) {
        try {
            return MAPPER.readTree(MAPPER.writeValueAsString(value));
        } catch (java.io.IOException e) {
            throw new AssertionError("cannot print " + value, e);
        }
    }

    static JsonNode parse(String text) throws java.io.IOException {
        return MAPPER.readTree(text);
    }

    static String line(JsonNode node) {
        try {
            return MAPPER.writeValueAsString(node);
        } catch (java.io.IOException e) {
            throw new AssertionError("cannot print JSON", e);
        }
    }
}
