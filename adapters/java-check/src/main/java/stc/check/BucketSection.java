package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.common.scalable.HashRange;

/** Entry buckets: the boundaries that cut the ring into N buckets of equal width, and the ranges between them. */
final class BucketSection implements Section {
    private static final int[] COUNTS = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 100};

    @Override
    public String name() {
        return "entry_buckets";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        List<ObjectNode> questions = new ArrayList<>();
        for (int count : COUNTS) {
            questions.add(Json.object().put("count", count));
        }
        return questions;
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        int count = entry.path("count").asInt();
        ObjectNode answer = Json.object().put("count", count);
        List<Integer> splits;
        try {
            splits = Internals.equalWidth(count);
        } catch (RuntimeException e) {
            return answer.put("accepted", false).put("reason", String.valueOf(e.getMessage()));
        }
        answer.put("accepted", true);
        answer.set("splits", Json.numbers(splits));
        ArrayNode ranges = answer.putArray("ranges");
        for (HashRange range : Internals.bucketRanges(splits)) {
            ranges.add(Json.numbers(List.of(range.start(), range.end())));
        }
        return answer;
    }
}
