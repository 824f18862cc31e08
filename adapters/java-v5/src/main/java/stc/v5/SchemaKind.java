package stc.v5;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.client.api.v5.schema.SchemaInfo;
import org.apache.pulsar.client.api.v5.schema.SchemaType;

/**
 * A schema as the suite names it: {@code "int32"}, or {@code {"avro": {"definition": "…"}}}.
 *
 * @param name which kind
 * @param definition of a record, in Avro's JSON form; empty for all others
 */
record SchemaKind(String name, String definition) {
    static SchemaKind of(Params options) throws Refusal {
        Optional<JsonNode> schema = options.optional("schema");
        if (schema.isEmpty()) {
            return new SchemaKind("text", "");
        }
        if (schema.get().isTextual()) {
            return new SchemaKind(schema.get().asText(), "");
        }
        String name = schema.get().fieldNames().next();
        return new SchemaKind(name, schema.get().get(name).path("definition").asText());
    }

    /** A record's definition for the SDK. */
    SchemaInfo info(SchemaType type) throws Refusal {
        try {
            String record = Json.MAPPER.readTree(definition).path("name").asText();
            return SchemaInfo.of(record, type, definition.getBytes(StandardCharsets.UTF_8), Map.of());
        } catch (JsonProcessingException e) {
            throw new Refusal.Invalid("the definition of a record is no JSON: " + definition);
        }
    }

    Refusal unsupported() {
        // The SDK has a class for pairs, and no schema of them.
        return new Refusal.Unsupported(name.equals("keyValue") ? "schemas of pairs" : "the schema " + name);
    }
}
