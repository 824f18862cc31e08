package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientBuilder;

/** Client objects. */
final class ClientOperations {
    private ClientOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("openClient", ClientOperations::open);
        operations.put("closeClient", ClientOperations::close);
    }

    private static JsonNode open(Scenario scenario, Params params) throws Refusal {
        Params options = params.object("options");
        PulsarClient client = Calls.blocking(() -> {
            PulsarClientBuilder builder = PulsarClient.builder();
            options.text("serviceUrl").ifPresent(builder::serviceUrl);
            options.millis("operationTimeoutMs").ifPresent(builder::operationTimeout);
            options.end("a client");
            return builder.build();
        });
        return Json.number(scenario.clients.add(client));
    }

    private static JsonNode close(Scenario scenario, Params params) throws Refusal, InterruptedException {
        PulsarClient client = scenario.clients.get(params);
        Calls.future(client::closeAsync);
        return Json.NULL;
    }
}
