package stc.load;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/** The one line of JSON that a run prints: facts, and the checks that did not hold. */
final class Summary {
    private static final int SHOWN = 10;

    private final ObjectNode json = new ObjectMapper().createObjectNode();
    private final ArrayNode failures;

    Summary(Options options, String topic) {
        json.put("ok", false);
        json.put("scenario", options.scenario());
        json.put("topic", topic);
        json.put("seed", options.seed());
        failures = json.putArray("failures");
    }

    ObjectNode json() {
        return json;
    }

    void check(boolean holds, String failure) {
        if (!holds) {
            failures.add(failure);
        }
    }

    /** Fails once for a whole list, showing how many and the first of them. */
    void checkNone(List<String> found, String what) {
        check(found.isEmpty(), found.size() + " " + what + ": " + found.stream().limit(SHOWN).toList());
    }

    void sentByKey(Map<String, List<String>> sent) {
        ObjectNode byKey = json.putObject("sent_by_key");
        sent.forEach((key, values) -> values.forEach(byKey.withArray(key)::add));
    }

    /** Ends the summary; the result is the exit code. */
    int print() {
        boolean ok = failures.isEmpty();
        json.put("ok", ok);
        System.out.println(json);
        return ok ? 0 : 1;
    }
}
