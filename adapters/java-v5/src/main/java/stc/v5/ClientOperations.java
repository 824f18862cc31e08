package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientBuilder;
import org.apache.pulsar.client.api.v5.auth.AuthenticationFactory;
import org.apache.pulsar.client.api.v5.config.MemorySize;
import org.apache.pulsar.client.api.v5.config.TransactionPolicy;

/** Client objects. */
final class ClientOperations {
    private ClientOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("openClient", ClientOperations::open);
        operations.put("renewToken", ClientOperations::renewToken);
        operations.put("closeClient", ClientOperations::close);
    }

    private static JsonNode open(Scenario scenario, Params params) throws Refusal {
        Params options = params.object("options");
        AtomicReference<String> token = new AtomicReference<>();
        Optional<Duration> transactions = options.millis("transactionTimeoutMs");
        PulsarClient client = Calls.blocking(() -> {
            PulsarClientBuilder builder = PulsarClient.builder();
            options.text("serviceUrl").ifPresent(builder::serviceUrl);
            options.millis("operationTimeoutMs").ifPresent(builder::operationTimeout);
            options.text("token").ifPresent(first -> {
                token.set(first);
                builder.authentication(AuthenticationFactory.token(token::get));
            });
            Optional<String> trust = options.text("tlsTrustPem");
            if (trust.isPresent()) {
                Trust.set(builder, file(trust.get()).toString());
            }
            transactions.ifPresent(timeout ->
                    builder.transactionPolicy(TransactionPolicy.builder().timeout(timeout).build()));
            options.optional("memoryLimit")
                    .ifPresent(bytes -> builder.memoryLimit(MemorySize.ofBytes(bytes.asLong())));
            options.end("a client");
            return builder.build();
        });
        return Json.number(scenario.clients.add(new OpenClient(client, token, transactions)));
    }

    /** The SDK takes certificates from files alone. */
    private static Path file(String pem) throws IOException {
        Path file = Files.createTempFile("stc-trust", ".pem");
        file.toFile().deleteOnExit();
        return Files.writeString(file, pem);
    }

    private static JsonNode renewToken(Scenario scenario, Params params) throws Refusal {
        scenario.clients.get(params).token().set(params.required("token").asText());
        return Json.NULL;
    }

    private static JsonNode close(Scenario scenario, Params params) throws Refusal, InterruptedException {
        PulsarClient client = scenario.clients.get(params).client();
        Calls.future(client::closeAsync);
        return Json.NULL;
    }
}
