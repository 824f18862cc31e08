package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentTopicName;

/** Topic names as an application or a peer may write them, and the parts that Pulsar reads in them. */
final class NameSection implements Section {
    private static final List<String> INPUTS = List.of(
            "topic://public/default/orders", "topic://t/n/o", "topic://public/default/a-b_c.d=e:f",
            "topic://public/default/orders-partition-3", "topic://public/default/with/slash",
            "topic://public/default/orders/", "topic://public/default/%2F", "topic://public/default/with space",
            "topic://public/default/ключ", "topic://public/default/🔑", "topic://public/default/topic://x",
            "topic://pub lic/default/orders", "topic://public/def ault/orders", "topic://пуб/default/orders",
            "topic://public/default/", "topic://public/default", "topic://public", "topic://", "topic:/public/default/o",
            "topic:///default/orders", "topic://public//orders", "topic://public/cluster/default/orders",
            "TOPIC://public/default/orders", "Topic://public/default/orders", " topic://public/default/orders",
            "topic://public/default/ orders ",
            "persistent://public/default/orders", "persistent://public/default/orders-partition-0",
            "persistent://public/default/orders-partition-12", "persistent://public/default/orders-partition-",
            "persistent://public/default/orders-partition-x", "persistent://public/default/orders-partition--1",
            "persistent://public/default/orders-partition-01", "persistent://public/default/-partition-1",
            "persistent://public/default/a-partition-1-partition-2",
            "persistent://public/default/orders-partition-2147483648", "persistent://public/cluster/ns/orders",
            "persistent://public/default", "persistent://", "persistent:/public/default/orders",
            "non-persistent://public/default/orders", "non_persistent://public/default/orders",
            "orders", "public/default/orders", "default/orders", "a/b/c/d", "/orders", "orders/", "", " ", "a:b", "://x",
            "http://public/default/orders", "orders-partition-3", "a://b", "public/default/with:colon",
            "segment://public/default/orders/0000-ffff-0", "segment://public/default/orders/8000-ffff-2",
            "segment://public/default/orders/0000-7fff-18446744073709551615",
            "segment://public/default/orders/0000-7fff-9223372036854775807",
            "segment://public/default/orders/5555-aaa9-1", "segment://public/default/orders/7fff-7fff-10",
            "segment://public/default/orders/ffff-0000-1", "segment://public/default/orders/0000-10000-1",
            "segment://public/default/orders/0-ffff-1", "segment://public/default/orders/00000-0ffff-1",
            "segment://public/default/orders/0000-FFFF-1", "segment://public/default/orders/0000-fffg-1",
            "segment://public/default/orders/0000-ffff", "segment://public/default/orders/0000-ffff-",
            "segment://public/default/orders/0000-ffff--1", "segment://public/default/orders/0000-ffff-1-2",
            "segment://public/default/orders/0000-ffff-01", "segment://public/default/orders/0000-ffff-x",
            "segment://public/default/orders/0000-ffff-+1", "segment://public/default/orders/+000-ffff-1",
            "segment://public/default/orders/", "segment://public/default/orders", "segment://public/default",
            "segment://public/default/with/slash/0000-ffff-0", "segment://public/default/ключ/0000-ffff-0",
            "segment://public/default//0000-ffff-0", "segment://public/default/orders-partition-1/0000-ffff-0",
            "segment://public/default/a-b-c/4000-7fff-3");

    @Override
    public String name() {
        return "names";
    }

    @Override
    public List<ObjectNode> questions(long seed) {
        List<ObjectNode> questions = new ArrayList<>();
        for (String input : INPUTS) {
            questions.add(Json.object().put("input", input));
        }
        return questions;
    }

    @Override
    public ObjectNode answer(JsonNode entry) {
        String input = entry.path("input").asText();
        ObjectNode answer = Json.object();
        answer.put("input", input);
        TopicName name;
        try {
            name = TopicName.get(input);
        } catch (RuntimeException e) {
            answer.put("accepted", false);
            // The wording is Pulsar's and is here for the reader: it is no part of what an implementation must match.
            answer.put("reason", String.valueOf(e.getMessage()));
            return answer;
        }
        answer.put("accepted", true);
        answer.put("canonical", name.toString());
        answer.put("domain", name.getDomain().value());
        answer.put("tenant", name.getTenant());
        answer.put("namespace", name.getNamespacePortion());
        answer.put("local", name.getLocalName());
        answer.put("partition", name.getPartitionIndex());
        answer.put("partitioned_topic", name.getPartitionedTopicName());
        if (name.isSegment()) {
            HashRange range = SegmentTopicName.getHashRange(name);
            ObjectNode segment = answer.putObject("segment");
            segment.put("parent", SegmentTopicName.getParentTopicName(name).toString());
            segment.put("start", range.start());
            segment.put("end", range.end());
            segment.put("id", SegmentTopicName.getSegmentId(name));
            segment.put("descriptor", name.getSegmentDescriptor());
        }
        return answer;
    }
}
