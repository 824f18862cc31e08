package stc.soak;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Consumer;

/** What happened, one JSON object a line on standard output, in the order in which it happened. */
final class Events {
    private final ObjectMapper mapper = new ObjectMapper();

    /** Writes one event. Callers write before they act on what they tell, so that no consequence comes first. */
    synchronized void write(String event, Consumer<ObjectNode> fields) {
        ObjectNode json = mapper.createObjectNode().put("event", event);
        fields.accept(json);
        try {
            System.out.println(mapper.writeValueAsString(json));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    void failed(String what, Throwable cause) {
        write("failed", json -> json.put("what", what).put("error", cause.toString()));
    }
}
