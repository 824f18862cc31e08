package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentTopicName;

/** Names of topics and segments. Why a text is refused is our own wording; that it is refused is compared. */
final class NameVectors {
    private NameVectors() {
    }

    static void topics(JsonNode vector, VectorFiles.Found found) {
        TopicName name = parse(vector.path("input").asText());
        ObjectNode parts = name == null || name.isSegment() ? null : Json.object().put("canonical", name.toString())
                .put("domain", name.getDomain().value()).put("tenant", name.getTenant())
                .put("namespace", name.getNamespacePortion()).put("local", name.getLocalName());
        found.value("name", vector.path("name"), parts);
    }

    static void segments(JsonNode vector, VectorFiles.Found found) {
        if (vector.path("kind").asText().equals("build")) {
            JsonNode segment = vector.path("segment");
            found.value("name", vector.path("name"), SegmentTopicName.fromParent(
                    TopicName.get(segment.path("topic").asText()), KeyVectors.range(segment),
                    segment.path("segment_id").asLong()).toString());
            return;
        }
        TopicName name = parse(vector.path("input").asText());
        ObjectNode segment = null;
        if (name != null && name.isSegment()) {
            HashRange range = SegmentTopicName.getHashRange(name);
            segment = Json.object().put("topic", SegmentTopicName.getParentTopicName(name).toString())
                    .put("hash_start", range.start()).put("hash_end", range.end())
                    .put("segment_id", SegmentTopicName.getSegmentId(name));
        }
        found.value("segment", vector.path("segment"), segment);
    }

    private static TopicName parse(String text) {
        try {
            return TopicName.get(text);
        } catch (RuntimeException refused) {
            return null;
        }
    }
}
