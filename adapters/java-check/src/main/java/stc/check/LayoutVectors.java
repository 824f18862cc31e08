package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.SegmentInfo;
import org.apache.pulsar.common.scalable.SegmentState;

/** Layouts with the field names of the wire, and their changes. */
final class LayoutVectors {
    private LayoutVectors() {
    }

    /** The segments of a layout, in the order of their ids. */
    static Map<Long, SegmentInfo> segments(JsonNode layout) {
        Map<Long, SegmentInfo> segments = new TreeMap<>();
        for (JsonNode s : layout.path("segments")) {
            segments.put(s.path("segment_id").asLong(), new SegmentInfo(s.path("segment_id").asLong(),
                    KeyVectors.range(s), SegmentState.valueOf(s.path("state").asText()), longs(s.path("parent_ids")),
                    longs(s.path("child_ids")), s.path("created_at_epoch").asLong(),
                    s.path("sealed_at_epoch").asLong(-1), s.path("created_at_ms").asLong(),
                    s.path("sealed_at_ms").asLong(-1), s.path("legacy_topic_name").asText(null),
                    BucketVectors.splits(s)));
        }
        return segments;
    }

    static SegmentLayout layout(JsonNode numbered) {
        JsonNode layout = numbered.path("layout");
        return new SegmentLayout(layout.path("epoch").asLong(), numbered.path("next_segment_id").asLong(),
                segments(layout));
    }

    static void changes(JsonNode vector, VectorFiles.Found found) {
        JsonNode change = vector.path("change");
        String op = change.path("op").asText();
        String refused = vector.path("refused").asText();
        // Synthetic layouts are made in the middle of a lookup and never changed; bucket counts are checked by the
        // admin REST. Pulsar has no class to ask for either.
        if (op.equals("synthetic") || refused.equals("legacy") || refused.equals("bucket-count")) {
            return;
        }
        ObjectNode after = null;
        try {
            after = fields(vector.path("before").isNull() ? first(change) : changed(vector, change));
        } catch (RuntimeException e) {
            if (refused.isEmpty()) {
                System.err.println("Pulsar: " + e.getMessage());
            }
        }
        found.value("after", vector.path("after"), after);
    }

    private static SegmentLayout first(JsonNode change) {
        ObjectNode initial = Json.object().put("bucket_budget", change.path("bucket_budget").asInt());
        initial.put("segments", change.path("segments").asInt());
        if (change.has("topics")) {
            TopicName topic = TopicName.get(change.path("topics").get(0).asText());
            initial.put("migrated_from", topic.getPartitionedTopicName());
            initial.put("segments", topic.isPartitioned() ? change.path("topics").size() : 0);
        }
        return SegmentLayout.fromMetadata(LayoutSection.initial(initial));
    }

    private static SegmentLayout changed(JsonNode vector, JsonNode change) {
        ObjectNode step = change.deepCopy();
        step.set("segment", change.path("segment_id"));
        return LayoutSection.apply(layout(vector.path("before")), step, vector.path("at_ms").asLong());
    }

    private static ObjectNode fields(SegmentLayout layout) {
        ObjectNode fields = Json.object().put("next_segment_id", layout.getNextSegmentId());
        ObjectNode dag = fields.putObject("layout").put("epoch", layout.getEpoch());
        ArrayNode segments = dag.putArray("segments");
        new TreeMap<>(layout.getAllSegments()).values().forEach(s -> {
            ObjectNode segment = segments.addObject().put("segment_id", s.segmentId())
                    .put("hash_start", s.hashRange().start()).put("hash_end", s.hashRange().end())
                    .put("state", s.state().name());
            put(segment, "parent_ids", s.parentIds());
            put(segment, "child_ids", s.childIds());
            segment.put("created_at_epoch", s.createdAtEpoch()).put("created_at_ms", s.createdAtMs());
            if (s.isSealed()) {
                segment.put("sealed_at_epoch", s.sealedAtEpoch()).put("sealed_at_ms", s.sealedAtMs());
            }
            if (s.isLegacy()) {
                segment.put("legacy_topic_name", s.legacyTopicName());
            }
            put(segment, "entry_bucket_splits", s.entryBucketSplits());
        });
        return fields;
    }

    /** A list that is empty is absent on the wire. */
    private static void put(ObjectNode segment, String field, List<? extends Number> values) {
        if (!values.isEmpty()) {
            segment.set(field, Json.numbers(values));
        }
    }

    static List<Long> longs(JsonNode array) {
        return VectorFiles.items(array).stream().map(JsonNode::asLong).toList();
    }
}
