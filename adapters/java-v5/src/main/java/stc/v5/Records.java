package stc.v5;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.pulsar.client.api.v5.schema.Field;
import org.apache.pulsar.client.api.v5.schema.GenericRecord;

/** Records between JSON and what the SDK takes and gives. */
final class Records {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Records() {
    }

    /** A record as JSON text. */
    static byte[] json(JsonNode record) throws Refusal {
        try {
            return Json.MAPPER.writeValueAsBytes(record);
        } catch (JsonProcessingException e) {
            throw new Refusal.Invalid(e.toString());
        }
    }

    /** A record in Avro's binary form. */
    static byte[] avro(String definition, JsonNode record) throws Refusal {
        Schema schema = new Schema.Parser().parse(definition);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        try {
            new GenericDatumWriter<>(schema).write(avroValue(schema, record), encoder);
            encoder.flush();
        } catch (IOException e) {
            throw new Refusal.Invalid(e.toString());
        }
        return bytes.toByteArray();
    }

    private static Object avroValue(Schema schema, JsonNode value) throws Refusal {
        return switch (schema.getType()) {
            case RECORD -> {
                GenericData.Record record = new GenericData.Record(schema);
                for (Schema.Field field : schema.getFields()) {
                    record.put(field.name(), avroValue(field.schema(), value.path(field.name())));
                }
                yield record;
            }
            case UNION -> {
                boolean none = value.isNull() || value.isMissingNode();
                List<Schema> choices = schema.getTypes();
                Schema chosen = choices.stream()
                        .filter(choice -> (choice.getType() == Schema.Type.NULL) == none)
                        .findFirst()
                        .orElseThrow(() -> new Refusal.Invalid(value + " is nothing of " + schema));
                yield none ? null : avroValue(chosen, value);
            }
            case STRING -> value.asText();
            case INT -> value.asInt();
            case LONG -> value.asLong();
            case FLOAT -> (float) value.asDouble();
            case DOUBLE -> value.asDouble();
            case BOOLEAN -> value.asBoolean();
            default -> throw new Refusal.Unsupported("an Avro field of the type " + schema.getType());
        };
    }

    /** A value that the SDK decoded, whatever it is. */
    static JsonNode toJson(Object value) {
        return switch (value) {
            case null -> JSON.nullNode();
            case GenericRecord record -> record.fields().isEmpty() ? toJson(record.nativeObject()) : fields(record);
            case JsonNode json -> json;
            case Boolean bool -> JSON.booleanNode(bool);
            case Float number -> JSON.numberNode(number.doubleValue());
            case Double number -> JSON.numberNode(number);
            case Number number -> JSON.numberNode(number.longValue());
            case List<?> list -> {
                ArrayNode array = JSON.arrayNode();
                list.forEach(element -> array.add(toJson(element)));
                yield array;
            }
            default -> JSON.textNode(value.toString());
        };
    }

    private static ObjectNode fields(GenericRecord record) {
        ObjectNode json = JSON.objectNode();
        for (Field field : record.fields()) {
            json.set(field.name(), toJson(record.field(field)));
        }
        return json;
    }
}
