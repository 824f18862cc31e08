package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Optional;
import org.apache.pulsar.client.api.v5.ProducerBuilder;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.ChunkingPolicy;
import org.apache.pulsar.client.api.v5.config.CompressionPolicy;
import org.apache.pulsar.client.api.v5.config.CompressionType;
import org.apache.pulsar.client.api.v5.config.MemorySize;
import org.apache.pulsar.client.api.v5.config.ProducerAccessMode;

/** Options of a producer. Those that are absent stay at the SDK's default. */
final class ProducerOptions {
    private ProducerOptions() {
    }

    static <T> ProducerBuilder<T> apply(ProducerBuilder<T> builder, Params options) throws Refusal {
        options.text("topic").ifPresent(builder::topic);
        options.text("name").ifPresent(builder::producerName);
        Optional<String> access = options.text("access");
        if (access.isPresent()) {
            builder.accessMode(accessMode(access.get()));
        }
        options.optional("initialSequenceId").ifPresent(id -> builder.initialSequenceId(id.asLong()));
        Optional<JsonNode> batching = options.optional("batching");
        if (batching.isPresent()) {
            builder.batchingPolicy(batchingPolicy(batching.get()));
        }
        Optional<String> compression = options.text("compression");
        if (compression.isPresent()) {
            builder.compressionPolicy(CompressionPolicy.of(compressionType(compression.get())));
        }
        Optional<JsonNode> chunking = options.optional("chunking");
        if (chunking.isPresent()) {
            builder.chunkingPolicy(chunkingPolicy(chunking.get()));
        }
        Encryption.ofProducer(options, builder::encryptionPolicy);
        options.millis("sendTimeoutMs").ifPresent(builder::sendTimeout);
        options.flag("blockIfQueueFull").ifPresent(builder::blockIfQueueFull);
        builder.properties(options.strings("properties"));
        options.end("a producer");
        return builder;
    }

    private static ProducerAccessMode accessMode(String name) throws Refusal {
        return switch (name) {
            case "shared" -> ProducerAccessMode.SHARED;
            case "exclusive" -> ProducerAccessMode.EXCLUSIVE;
            case "exclusiveWithFencing" -> ProducerAccessMode.EXCLUSIVE_WITH_FENCING;
            case "waitForExclusive" -> ProducerAccessMode.WAIT_FOR_EXCLUSIVE;
            default -> throw new Refusal.Unsupported("the access mode " + name);
        };
    }

    /** {@code "off"}, or {@code {"on": {"maxMessages": 10, "maxDelayMs": 5}}}. */
    private static BatchingPolicy batchingPolicy(JsonNode batching) throws Refusal {
        if (batching.isTextual()) {
            return BatchingPolicy.ofDisabled();
        }
        Params on = Params.of(batching).object("on");
        BatchingPolicy.Builder policy = BatchingPolicy.builder()
                .enabled(true)
                .maxMessages((int) on.number("maxMessages"))
                .maxPublishDelay(Duration.ofMillis(on.number("maxDelayMs")));
        on.optional("maxBytes").ifPresent(bytes -> policy.maxSize(MemorySize.ofBytes(bytes.asLong())));
        on.end("batching");
        return policy.build();
    }

    /** {@code "off"}, or {@code {"on": {"maxBytes": 100}}}. */
    private static ChunkingPolicy chunkingPolicy(JsonNode chunking) throws Refusal {
        if (chunking.isTextual()) {
            return ChunkingPolicy.ofDisabled();
        }
        Params on = Params.of(chunking).object("on");
        ChunkingPolicy.Builder policy = ChunkingPolicy.builder().enabled(true);
        on.optional("maxBytes").ifPresent(bytes -> policy.chunkSize(bytes.asInt()));
        on.end("chunking");
        return policy.build();
    }

    private static CompressionType compressionType(String name) throws Refusal {
        return switch (name) {
            case "none" -> CompressionType.NONE;
            case "lz4" -> CompressionType.LZ4;
            case "zlib" -> CompressionType.ZLIB;
            case "zstd" -> CompressionType.ZSTD;
            case "snappy" -> CompressionType.SNAPPY;
            default -> throw new Refusal.Unsupported("the compression " + name);
        };
    }
}
