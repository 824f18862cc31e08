package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;
import org.apache.pulsar.common.scalable.SegmentInfo;
import org.apache.pulsar.common.topics.TopicList;
import org.apache.pulsar.common.util.Murmur3_32Hash;

/** Hashes of keys and of sets of topics, and the client's routing. */
final class KeyVectors {
    private KeyVectors() {
    }

    static void hashing(JsonNode vector, VectorFiles.Found found) {
        byte[] utf8 = vector.path("key").asText().getBytes(StandardCharsets.UTF_8);
        int raw = ScalableTopicHashing.murmur(utf8);
        found.value("utf8", vector.path("utf8"), HexFormat.of().formatHex(utf8));
        found.value("raw", vector.path("raw"), Integer.toUnsignedLong(raw));
        found.value("segment_hash", vector.path("segment_hash"), ScalableTopicHashing.segmentHash(raw));
        found.value("bucket_hash", vector.path("bucket_hash"), ScalableTopicHashing.entryBucketHash(raw));
    }

    static void legacyRouting(JsonNode vector, VectorFiles.Found found) {
        String key = vector.path("key").asText();
        int masked = Murmur3_32Hash.getInstance().makeHash(key.getBytes(StandardCharsets.UTF_8));
        found.value("masked", vector.path("masked"), masked);
        vector.path("choices").properties().forEach(choice -> {
            int n = Integer.parseInt(choice.getKey());
            // Of the many segments that N may be, the router wants a list of all of them.
            long chosen = n <= 1024 ? Internals.route(key, HashSection.legacySegments(n)) : masked % n;
            found.value(choice.getKey(), choice.getValue(), chosen);
        });
    }

    static void segmentRouting(JsonNode vector, VectorFiles.Found found) {
        // The router takes the segments in the order of their ids, as the client keeps them.
        List<SegmentInfo> active = LayoutVectors.segments(vector.path("layout")).values().stream()
                .filter(SegmentInfo::isActive).toList();
        vector.path("routes").properties().forEach(route ->
                found.value(route.getKey(), route.getValue(), Internals.route(route.getKey(), active)));
    }

    static void namespaceHash(JsonNode vector, VectorFiles.Found found) {
        List<String> topics = VectorFiles.items(vector.path("topics")).stream().map(JsonNode::asText).toList();
        found.value("current_hash", vector.path("current_hash"), TopicList.calculateHash(topics));
    }

    /** An inclusive range out of two fields. */
    static HashRange range(JsonNode fields) {
        return HashRange.of(fields.path("hash_start").asInt(), fields.path("hash_end").asInt());
    }
}
