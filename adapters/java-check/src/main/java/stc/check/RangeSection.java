package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.pulsar.common.scalable.HashRange;

/** Inclusive hash ranges: their size, hexadecimal form, and where they are cut when they split. */
final class RangeSection implements Section {
    private static final int[][] FIXED = {
        {0, 65535}, {0, 32767}, {32768, 65535}, {0, 0}, {65535, 65535}, {65534, 65535}, {0, 1}, {0, 2}, {1, 2}, {1, 3},
        {21845, 43689}, {43690, 65535}, {0, 21844}, {5, 4}, {-1, 5}, {0, 65536}};

    @Override
    public String name() {
        return "ranges";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        List<ObjectNode> questions = new ArrayList<>();
        for (int[] range : FIXED) {
            questions.add(Json.object().put("start", range[0]).put("end", range[1]));
        }
        Random random = new Random(seed);
        for (int i = 0; i < 16; i++) {
            int a = random.nextInt(65536);
            int b = random.nextInt(65536);
            questions.add(Json.object().put("start", Math.min(a, b)).put("end", Math.max(a, b)));
        }
        return questions;
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        int start = entry.path("start").asInt();
        int end = entry.path("end").asInt();
        ObjectNode answer = Json.object().put("start", start).put("end", end);
        HashRange range;
        try {
            range = HashRange.of(start, end);
        } catch (RuntimeException e) {
            return answer.put("accepted", false).put("reason", String.valueOf(e.getMessage()));
        }
        answer.put("accepted", true);
        answer.put("hex", range.toHexString());
        answer.put("size", range.size());
        try {
            HashRange[] halves = range.split();
            answer.set("split", Json.numbers(List.of(halves[0].start(), halves[0].end(), halves[1].start(),
                    halves[1].end())));
        } catch (RuntimeException e) {
            answer.putNull("split");
        }
        return answer;
    }
}
