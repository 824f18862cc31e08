package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.Map;
import org.apache.pulsar.client.api.v5.MessageId;

/** Identifiers of messages. */
final class IdOperations {
    private IdOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("boundaryId", IdOperations::boundary);
        operations.put("restoreId", (scenario, params) -> Json.base64(restored(params, "id").toByteArray()));
        operations.put("compareIds", IdOperations::compare);
    }

    static boolean isEarliest(JsonNode boundary) {
        return boundary.asText().equals("earliest");
    }

    private static JsonNode boundary(Scenario scenario, Params params) throws Refusal {
        MessageId end = isEarliest(params.required("boundary")) ? MessageId.earliest() : MessageId.latest();
        return Json.base64(end.toByteArray());
    }

    /** The identifier that a field has the bytes of. */
    static MessageId restored(Params params, String name) throws Refusal {
        byte[] bytes = params.bytes(name);
        return Calls.blocking(() -> MessageId.fromByteArray(bytes));
    }

    private static JsonNode compare(Scenario scenario, Params params) throws Refusal {
        MessageId one = restored(params, "one");
        MessageId other = restored(params, "other");
        int order = Calls.blocking(() -> one.compareTo(other));
        return JsonNodeFactory.instance.textNode(order < 0 ? "before" : order > 0 ? "after" : "same");
    }
}
