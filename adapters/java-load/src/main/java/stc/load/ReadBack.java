package stc.load;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.CheckpointConsumer;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * Reads the whole topic from its beginning with an ordered consumer: each key must come in the order in which it was
 * sent. Where the broker has a journal, the caller compares with that instead.
 */
final class ReadBack {
    private ReadBack() {
    }

    static void check(PulsarClient client, Admin admin, Map<String, List<String>> sent, Options options,
            Summary summary) throws Exception {
        int expected = sent.values().stream().mapToInt(List::size).sum();
        Map<String, List<String>> read = new LinkedHashMap<>();
        try (CheckpointConsumer<String> consumer = client.newCheckpointConsumer(Schema.string()).topic(admin.topic())
                .startPosition(Checkpoint.earliest()).create()) {
            for (int i = 0; i < expected; i++) {
                Message<String> message = consumer.receive(options.patience());
                if (message == null) {
                    summary.check(false, "read back " + i + " messages, not " + expected);
                    break;
                }
                read.computeIfAbsent(message.key().orElse(""), key -> new ArrayList<>()).add(message.value());
            }
        }
        summary.json().put("read_back", read.values().stream().mapToInt(List::size).sum());
        List<String> reordered = sent.keySet().stream().filter(key -> !sent.get(key).equals(read.get(key))).toList();
        summary.checkNone(reordered, "keys are stored in another order than they were sent in");
    }
}
