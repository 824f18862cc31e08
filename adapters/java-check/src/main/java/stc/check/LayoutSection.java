package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.broker.resources.ScalableTopicMetadata;
import org.apache.pulsar.broker.service.scalable.ScalableTopicController;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;
import org.apache.pulsar.common.scalable.SegmentInfo;

/**
 * Layout histories: an initial layout and a sequence of operations, each with the layout it gives (in the shape of the
 * admin REST) or the refusal. A refused operation leaves the layout as it was. At the end stands where some keys go.
 */
final class LayoutSection implements Section {
    /** The cap that the released broker puts on a merge's and a rebucket's bucket count. */
    private static final int MAX_BUCKETS = 1024;
    private static final long CREATED_AT_MS = 1_000;
    private static final long STEP_MS = 1_000;
    private static final List<String> KEYS = List.of("", "key-0", "key-1", "key-2", "key-3", "key-4", "ключ", "🔑",
            "钥匙", "order-17");

    @Override
    public String name() {
        return "layouts";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        return LayoutScripts.all(seed);
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        ObjectNode answer = Json.object();
        answer.put("name", entry.path("name").asText());
        answer.set("initial", entry.path("initial"));
        ScalableTopicMetadata base = initial(entry.path("initial"));
        SegmentLayout layout = SegmentLayout.fromMetadata(base);
        answer.set("layout", rest(layout, base));
        ArrayNode steps = answer.putArray("steps");
        long at = CREATED_AT_MS;
        for (JsonNode question : entry.path("steps")) {
            at += STEP_MS;
            ObjectNode step = (ObjectNode) question.deepCopy();
            step.remove(List.of("accepted", "after", "reason"));
            step.put("at_ms", at);
            try {
                layout = apply(layout, question, at);
                step.put("accepted", true);
                step.set("after", rest(layout, base));
            } catch (RuntimeException e) {
                step.put("accepted", false);
                step.put("reason", String.valueOf(e.getMessage()));
            }
            steps.add(step);
        }
        answer.set("routes", routes(layout));
        return answer;
    }

    static SegmentLayout apply(SegmentLayout layout, JsonNode step, long atMs) {
        long segment = step.path("segment").asLong();
        return switch (step.path("op").asText()) {
            case "split" -> layout.splitSegment(segment, atMs);
            case "merge" -> layout.mergeSegments(segment, step.path("with").asLong(), atMs, MAX_BUCKETS);
            case "rebucket" -> layout.rebucketSegment(segment, Internals.equalWidth(step.path("buckets").asInt()), atMs);
            case "prune" -> layout.pruneSegment(segment);
            default -> throw new AssertionError("unknown operation " + step);
        };
    }

    /** The layout a new (or migrated) topic starts with, its wall-clock times replaced by a fixed one. */
    static ScalableTopicMetadata initial(JsonNode initial) {
        int segments = initial.path("segments").asInt();
        int budget = initial.path("bucket_budget").asInt();
        ScalableTopicMetadata metadata = initial.has("migrated_from")
                ? ScalableTopicController.createMigratedMetadata(
                        TopicName.get(initial.path("migrated_from").asText()), segments, budget, MAX_BUCKETS)
                : ScalableTopicController.createInitialMetadata(segments, budget, MAX_BUCKETS, Map.of());
        Map<Long, SegmentInfo> fixed = new LinkedHashMap<>();
        metadata.getSegments().forEach((id, s) -> fixed.put(id, new SegmentInfo(s.segmentId(), s.hashRange(), s.state(),
                s.parentIds(), s.childIds(), s.createdAtEpoch(), s.sealedAtEpoch(), CREATED_AT_MS,
                s.sealedAtMs() < 0 ? s.sealedAtMs() : CREATED_AT_MS, s.legacyTopicName(), s.entryBucketSplits())));
        metadata.setSegments(fixed);
        return metadata;
    }

    private static ObjectNode rest(SegmentLayout layout, ScalableTopicMetadata base) {
        return Json.ofPulsar(layout.toMetadata(base));
    }

    /** Where the client sends each key; for ring routing the broker's own search must agree. */
    private static ObjectNode routes(SegmentLayout layout) {
        List<SegmentInfo> active = new ArrayList<>(layout.getActiveSegments().values());
        boolean legacy = active.stream().allMatch(SegmentInfo::isLegacy);
        ObjectNode routes = Json.object();
        for (String key : KEYS) {
            long id = Internals.route(key, active);
            int hash = ScalableTopicHashing.segmentHash(
                    ScalableTopicHashing.murmur(key.getBytes(StandardCharsets.UTF_8)));
            if (!legacy && layout.findActiveSegment(hash).segmentId() != id) {
                throw new AssertionError("Pulsar's client and broker route differently: " + key);
            }
            routes.put(key, id);
        }
        return routes;
    }
}
