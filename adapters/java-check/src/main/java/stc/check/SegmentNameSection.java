package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentTopicName;

/** The name of a segment's own topic, built from the parent topic, the range and the id. */
final class SegmentNameSection implements Section {
    @Override
    public String name() {
        return "segment_names";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        List<ObjectNode> questions = new ArrayList<>();
        questions.add(question("topic://public/default/orders", 0, 65535, 0));
        questions.add(question("topic://public/default/orders", 0, 32767, 1));
        questions.add(question("topic://public/default/orders", 32768, 65535, 2));
        questions.add(question("topic://public/default/orders", 21845, 43689, 1));
        questions.add(question("topic://public/default/orders", 10, 10, 4294967296L));
        questions.add(question("topic://t/n/a-b-c", 16384, 32767, Long.MAX_VALUE));
        questions.add(question("topic://t/n/orders-partition-3", 0, 65535, 7));
        questions.add(question("topic://t/n/ключ 🔑", 255, 4095, 12));
        questions.add(question("topic://t/n/with/slash", 0, 65535, 0));
        questions.add(question("persistent://t/n/orders", 0, 65535, 0));
        questions.add(question("segment://t/n/orders/0000-ffff-0", 0, 65535, 0));
        return questions;
    }

    private static ObjectNode question(String parent, int start, int end, long id) {
        return Json.object().put("parent", parent).put("start", start).put("end", end).put("id", id);
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        int start = entry.path("start").asInt();
        int end = entry.path("end").asInt();
        long id = entry.path("id").asLong();
        ObjectNode answer = question(entry.path("parent").asText(), start, end, id);
        try {
            TopicName parent = TopicName.get(entry.path("parent").asText());
            answer.put("name", SegmentTopicName.fromParent(parent, HashRange.of(start, end), id).toString());
        } catch (RuntimeException e) {
            answer.putNull("name");
            answer.put("reason", String.valueOf(e.getMessage()));
        }
        return answer;
    }
}
