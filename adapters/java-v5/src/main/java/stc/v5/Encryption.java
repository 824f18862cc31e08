package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.auth.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.v5.auth.EncryptionKey;
import org.apache.pulsar.client.api.v5.auth.ProducerCryptoFailureAction;
import org.apache.pulsar.client.api.v5.config.ConsumerEncryptionPolicy;
import org.apache.pulsar.client.api.v5.config.ProducerEncryptionPolicy;

/** Encryption of producers and consumers: the keys that they are given, and what happens where one is missing. */
final class Encryption {
    private Encryption() {
    }

    /** Gives a producer its policy, where the options have one. */
    static void ofProducer(Params options, Consumer<ProducerEncryptionPolicy> builder) throws Refusal {
        if (!options.has("encryption")) {
            return;
        }
        Params policy = options.object("encryption");
        Map<String, byte[]> keys = keys(policy);
        List<String> recipients = new ArrayList<>();
        policy.optional("recipients").ifPresent(names -> names.forEach(name -> recipients.add(name.asText())));
        builder.accept(ProducerEncryptionPolicy.builder()
                .publicKeyProvider(name -> key(keys, name))
                .keyNames(recipients.toArray(String[]::new))
                .failureAction(producerAction(policy.text("onFailure").orElse("fail")))
                .build());
        policy.end("the encryption of a producer");
    }

    /** Gives a consumer its policy, where the options have one. */
    static void ofConsumer(Params options, Consumer<ConsumerEncryptionPolicy> builder) throws Refusal {
        if (!options.has("encryption")) {
            return;
        }
        Params policy = options.object("encryption");
        Map<String, byte[]> keys = keys(policy);
        builder.accept(ConsumerEncryptionPolicy.builder()
                .privateKeyProvider((name, metadata) -> key(keys, name))
                .failureAction(consumerAction(policy.text("onFailure").orElse("fail")))
                .build());
        policy.end("the encryption of a consumer");
    }

    private static Map<String, byte[]> keys(Params policy) throws Refusal {
        Map<String, byte[]> keys = new HashMap<>();
        Optional<JsonNode> listed = policy.optional("keys");
        if (listed.isPresent()) {
            for (JsonNode one : listed.get()) {
                Params key = Params.of(one);
                keys.put(key.required("name").asText(), key.required("pem").asText().getBytes(StandardCharsets.UTF_8));
                key.end("a key");
            }
        }
        return keys;
    }

    private static CompletableFuture<EncryptionKey> key(Map<String, byte[]> keys, String name) {
        byte[] pem = keys.get(name);
        return pem == null
                ? CompletableFuture.failedFuture(new PulsarClientException.CryptoException("there is no key " + name))
                : CompletableFuture.completedFuture(EncryptionKey.of(pem));
    }

    private static ProducerCryptoFailureAction producerAction(String name) throws Refusal {
        return switch (name) {
            case "fail" -> ProducerCryptoFailureAction.FAIL;
            case "sendUnencrypted" -> ProducerCryptoFailureAction.SEND_UNENCRYPTED;
            default -> throw new Refusal.Unsupported("the action " + name + " where encrypting fails");
        };
    }

    private static ConsumerCryptoFailureAction consumerAction(String name) throws Refusal {
        return switch (name) {
            case "fail" -> ConsumerCryptoFailureAction.FAIL;
            case "discard" -> ConsumerCryptoFailureAction.DISCARD;
            case "consume" -> ConsumerCryptoFailureAction.CONSUME;
            default -> throw new Refusal.Unsupported("the action " + name + " where decrypting fails");
        };
    }
}
