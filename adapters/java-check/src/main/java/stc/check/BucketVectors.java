package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.pulsar.broker.service.Consumer;
import org.apache.pulsar.broker.service.EntryBucketConsumerSelector;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.common.api.proto.KeySharedMeta;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;

/** Entry buckets: boundary lists, and the broker's spread of buckets over consumers. */
final class BucketVectors {
    private BucketVectors() {
    }

    static List<Integer> splits(JsonNode fields) {
        return VectorFiles.items(fields.path("entry_bucket_splits")).stream().map(JsonNode::asInt).toList();
    }

    private static EntryBucketConsumerSelector selector(List<Integer> splits) {
        List<Range> ranges = new ArrayList<>();
        for (HashRange range : Internals.bucketRanges(splits)) {
            ranges.add(Range.of(range.start(), range.end()));
        }
        return new EntryBucketConsumerSelector(ranges);
    }

    static void routing(JsonNode vector, VectorFiles.Found found) {
        EntryBucketConsumerSelector selector = selector(splits(vector));
        vector.path("buckets").properties().forEach(bucket -> {
            int raw = ScalableTopicHashing.murmur(bucket.getKey().getBytes(StandardCharsets.UTF_8));
            found.value(bucket.getKey(), bucket.getValue(),
                    selector.bucketIndexOfHash(ScalableTopicHashing.entryBucketHash(raw)));
        });
    }

    static void boundaries(JsonNode vector, VectorFiles.Found found) {
        switch (vector.path("kind").asText()) {
            case "equal" -> found.value("entry_bucket_splits", vector.path("entry_bucket_splits"),
                    Json.numbers(Internals.equalWidth(vector.path("count").asInt())));
            case "splits" -> {
                // What a list means is asked; whether it is one, the broker does not check here.
                if (!vector.has("refused")) {
                    ArrayNode ranges = Json.object().putArray("ranges");
                    Internals.bucketRanges(splits(vector)).forEach(range ->
                            ranges.add(Json.numbers(List.of(range.start(), range.end()))));
                    found.value("ranges", vector.path("ranges"), ranges);
                    EntryBucketConsumerSelector selector = selector(splits(vector));
                    List<Integer> canonical = new ArrayList<>();
                    for (int i = 0; i < ranges.size(); i++) {
                        canonical.add(selector.canonicalHashOfBucket(i));
                    }
                    boolean distinct = Set.copyOf(canonical).size() == canonical.size();
                    found.value("canonical", vector.path("canonical"), distinct ? Json.numbers(canonical) : null);
                }
            }
            default -> {
                ArrayNode splits = declared(vector);
                if (vector.has("refused_by_pulsar")) {
                    found.value("refused_by_pulsar", vector.path("refused_by_pulsar"), splits == null);
                } else {
                    found.value("entry_bucket_splits", vector.path("entry_bucket_splits"), splits);
                }
            }
        }
    }

    private static ArrayNode declared(JsonNode vector) {
        KeySharedMeta meta = new KeySharedMeta();
        vector.path("ranges").forEach(range ->
                meta.addHashRange().setStart(range.get(0).asInt()).setEnd(range.get(1).asInt()));
        try {
            return Json.numbers(Internals.validateBucketBoundaries(meta).stream().skip(1).map(Range::getStart).toList());
        } catch (RuntimeException refused) {
            return null;
        }
    }

    static void owners(JsonNode vector, VectorFiles.Found found) {
        int buckets = vector.path("buckets").asInt();
        List<JsonNode> before = VectorFiles.items(vector.path("consumers"));
        List<JsonNode> after = new ArrayList<>(before);
        if (vector.path("change").has("join")) {
            after.add(vector.path("change").path("join"));
        } else {
            after.remove(vector.path("change").path("leave"));
        }
        List<JsonNode> owners = owners(buckets, before);
        List<JsonNode> next = owners(buckets, after);
        compare("before", vector.path("before"), owners, found);
        compare("after", vector.path("after"), next, found);
        ArrayNode moved = Json.object().putArray("moved");
        for (int i = 0; i < buckets; i++) {
            if (owners.get(i) != next.get(i) && (owners.get(i) == null || !owners.get(i).equals(next.get(i)))) {
                ObjectNode move = moved.addObject().put("bucket", i);
                move.set("from", owners.get(i));
                move.set("to", next.get(i));
            }
        }
        found.value("moved", vector.path("moved"), moved);
    }

    /** Bucket by bucket: whose slice has it, and whom the selector gives it. */
    private static void compare(String what, JsonNode slices, List<JsonNode> owners, VectorFiles.Found found) {
        for (JsonNode slice : slices) {
            for (int i = slice.path("from").asInt(); i < slice.path("to").asInt(); i++) {
                found.value(what + ", bucket " + i, slice.path("consumer"), owners.get(i));
            }
        }
    }

    /** The owner of each bucket; null when nobody is connected. */
    private static List<JsonNode> owners(int buckets, List<JsonNode> consumers) {
        EntryBucketConsumerSelector selector = selector(Internals.equalWidth(buckets));
        List<Consumer> connected = new ArrayList<>();
        for (JsonNode consumer : consumers) {
            Consumer c = Internals.consumer(consumer.path("name").asText(), consumer.path("consumer_id").asLong(),
                    connected.size() + 1);
            connected.add(c);
            selector.addConsumer(c).join();
        }
        List<JsonNode> owners = new ArrayList<>();
        for (int i = 0; i < buckets; i++) {
            Consumer owner = selector.select(selector.canonicalHashOfBucket(i));
            JsonNode found = null;
            for (int j = 0; j < connected.size(); j++) {
                // By identity: Pulsar's consumers are equal when their connection and their id are.
                found = connected.get(j) == owner ? consumers.get(j) : found;
            }
            owners.add(found);
        }
        return owners;
    }
}
