package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;
import org.apache.pulsar.common.scalable.SegmentInfo;
import org.apache.pulsar.common.util.Murmur3_32Hash;

/** Key hashing: the raw hash, its two halves, the masked hash and the all-legacy choice among N segments. */
final class HashSection implements Section {
    private static final int[] MODULI = {1, 2, 3, 4, 7, 10, 64, 1000};
    private static final List<String> FIXED = List.of(
            "", " ", "a", "ab", "abc", "abcd", "abcde", "key", "key-10", "key-100", "key_0", "KEY-0", "0", "-1",
            "order/42", "user@example.org", "a\u0000b", "\u0000", "\t\n\r", "line\nbreak", "\"quoted\"", "back\\slash",
            "\u007f", "\u0080", "\u00ff", "\u0100", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\ufeffbom",
            "é", "e\u0301", "naïve", "straße", "ß", "Ωμέγα", "ключ", "Київ", "մուտք", "מפתח", "مفتاح", "کلید", "कुंजी", "চাবি",
            "விசை", "กุญแจ", "გასაღები", "ቁልፍ", "钥匙", "鍵", "キー", "かぎ", "ｷｰ", "열쇠", "ជាកូនសោ", "ຄີ", "སྒོ",
            "\u200b", "a\u200db", "\u202eabc", "🔑", "👩‍👩‍👧‍👦", "🇺🇦", "👍🏽", "𝒦ey", "𐍈", "𠜎", "\ud800\udc00", "\udbff\udfff",
            "🔑🔑", "a🔑", "ab🔑", "abc🔑", "🔑abc", "x🔑y🔑z");
    /** Code points that a seeded key is drawn from: one, two, three and four bytes long in UTF-8. */
    private static final int[][] BLOCKS = {
        {0x20, 0x7e}, {0xa1, 0xff}, {0x391, 0x3c9}, {0x410, 0x44f}, {0x5d0, 0x5ea}, {0x905, 0x939}, {0x3041, 0x3096},
        {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0x1f600, 0x1f64f}, {0x20000, 0x2a6d6}};

    @Override
    public String name() {
        return "hashing";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        Set<String> keys = new LinkedHashSet<>();
        for (int i = 0; i < 10; i++) {
            keys.add("key-" + i);
        }
        keys.addAll(FIXED);
        for (int length : new int[] {15, 16, 17, 255, 256, 257, 1023, 1024, 4097}) {
            keys.add("k".repeat(length));
        }
        keys.add("длинный-".repeat(100));
        keys.add("🔑".repeat(257));
        Random random = new Random(seed);
        while (keys.size() < 300) {
            keys.add(randomKey(random));
        }
        List<ObjectNode> questions = new ArrayList<>();
        for (String key : keys) {
            questions.add(Json.object().put("key", key));
        }
        return questions;
    }

    private static String randomKey(Random random) {
        boolean mixed = random.nextBoolean();
        int[] block = BLOCKS[random.nextInt(BLOCKS.length)];
        int length = 1 + random.nextInt(24);
        StringBuilder key = new StringBuilder();
        for (int i = 0; i < length; i++) {
            int[] from = mixed ? BLOCKS[random.nextInt(BLOCKS.length)] : block;
            key.appendCodePoint(from[0] + random.nextInt(from[1] - from[0] + 1));
        }
        return key.toString();
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        String key = entry.path("key").asText();
        byte[] utf8 = key.getBytes(StandardCharsets.UTF_8);
        int raw = ScalableTopicHashing.murmur(utf8);
        if (raw != Murmur3_32Hash.makeRawHash(utf8)) {
            throw new AssertionError("Pulsar's two raw hashes differ for " + key);
        }
        int masked = Murmur3_32Hash.getInstance().makeHash(utf8);
        ObjectNode answer = Json.object();
        answer.put("key", key);
        answer.put("utf8", HexFormat.of().formatHex(utf8));
        answer.put("raw", Integer.toUnsignedLong(raw));
        answer.put("segment_hash", ScalableTopicHashing.segmentHash(raw));
        answer.put("entry_bucket_hash", ScalableTopicHashing.entryBucketHash(raw));
        answer.put("masked", masked);
        ObjectNode choice = answer.putObject("legacy_choice");
        for (int n : MODULI) {
            choice.put(Integer.toString(n), Internals.route(key, legacySegments(n)));
        }
        return answer;
    }

    static List<SegmentInfo> legacySegments(int count) {
        List<SegmentInfo> segments = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            HashRange range = HashRange.of(i * 65536 / count, (i + 1) * 65536 / count - 1);
            segments.add(SegmentInfo.activeLegacy(i, range, "persistent://public/default/t-partition-" + i, 0, 0));
        }
        return segments;
    }
}
