package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.v5.PulsarClient;

/** Who this is, where scenarios begin and end, and which method does what. */
final class Session {
    private static final int PROTOCOL_VERSION = 1;

    /** What the SDK offers. */
    private static final List<String> CAPABILITIES = List.of(
            "sync", "async", "queue-consumer", "stream-consumer", "checkpoint-consumer", "transactions", "namespace",
            "entry-bucketing", "dead-letter", "encryption", "chunking-compression-batching", "migration");

    /** An operation of the scenario that is under way. */
    @FunctionalInterface
    interface Operation {
        JsonNode call(Scenario scenario, Params params) throws Refusal, InterruptedException;
    }

    /** The suite asks for something that this adapter does not know. */
    static final class NoMethod extends Exception {
        private static final long serialVersionUID = 1L;

        NoMethod(String method) {
            super("no method " + method);
        }
    }

    private final Map<String, Operation> operations = new HashMap<>();
    private volatile Scenario scenario = new Scenario();

    Session() {
        ClientOperations.add(operations);
        ProducerOperations.add(operations);
        ConsumerOperations.add(operations);
        TransactionOperations.add(operations);
        IdOperations.add(operations);
    }

    JsonNode call(String method, Params params) throws Refusal, NoMethod, InterruptedException {
        switch (method) {
            case "initialize":
                return introduction();
            case "startScenario":
                scenario = new Scenario();
                return Json.NULL;
            case "endScenario":
                scenario.close();
                return Json.NULL;
            default:
                Operation operation = operations.get(method);
                if (operation == null) {
                    throw new NoMethod(method);
                }
                return operation.call(scenario, params);
        }
    }

    private static ObjectNode introduction() {
        ObjectNode introduction = JsonNodeFactory.instance.objectNode().put("protocolVersion", PROTOCOL_VERSION);
        introduction.putObject("sdk")
                .put("name", "pulsar-client-v5")
                .put("version", PulsarClient.class.getPackage().getImplementationVersion());
        ArrayNode capabilities = introduction.putArray("capabilities");
        CAPABILITIES.forEach(capabilities::add);
        return introduction;
    }
}
