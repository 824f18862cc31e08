package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.broker.service.scalable.ConsumerAssignment;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.common.naming.TopicName;

/** The controller's assignments. */
final class AssignmentVectors {
    private AssignmentVectors() {
    }

    static void assignments(JsonNode vector, VectorFiles.Found found) {
        JsonNode layout = vector.path("layout");
        SegmentLayout segments = new SegmentLayout(layout.path("epoch").asLong(), Long.MAX_VALUE,
                LayoutVectors.segments(layout));
        List<String> consumers = VectorFiles.items(vector.path("consumers")).stream().map(JsonNode::asText).toList();
        Map<String, ConsumerAssignment> assignments = Internals.assign(TopicName.get(vector.path("topic").asText()),
                segments, vector.path("consumer_type").asText().equals("CHECKPOINT"),
                LayoutVectors.longs(vector.path("drained")), consumers);
        ObjectNode answer = Json.object();
        new TreeMap<>(assignments).forEach((consumer, assignment) -> {
            ArrayNode list = answer.putArray(consumer);
            assignment.assignedSegments().forEach(s -> {
                ArrayNode buckets = list.addObject().put("segment_id", s.segmentId())
                        .put("hash_start", s.hashRange().start()).put("hash_end", s.hashRange().end())
                        .put("segment_topic", s.underlyingTopicName()).putArray("bucket_ranges");
                s.bucketRanges().forEach(range ->
                        buckets.addObject().put("start", range.start()).put("end", range.end()));
            });
        });
        found.value("assignments", vector.path("assignments"), answer);
    }
}
