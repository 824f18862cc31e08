package stc.check;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.common.scalable.SegmentInfo;

/** The histories that the layout section asks about: hand-written ones for each rule, then seeded ones. */
final class LayoutScripts {
    private LayoutScripts() {
    }

    static List<ObjectNode> all(long seed) {
        List<ObjectNode> scripts = new ArrayList<>();
        for (int segments : new int[] {1, 2, 3, 4, 5, 7}) {
            scripts.add(new Script("initial-" + segments, segments, 4).build());
        }
        scripts.add(new Script("initial-3-budget-16", 3, 16).build());
        scripts.add(new Script("split-and-merge-back", 1, 4).split(0).merge(1, 2).build());
        scripts.add(new Script("two-splits-one-merge", 1, 4).split(0).split(1).merge(3, 4).build());
        scripts.add(new Script("merge-in-reverse-order", 2, 4).merge(1, 0).build());
        scripts.add(new Script("merge-of-unequal-ages", 1, 4).split(0).split(2).merge(1, 3).merge(5, 4).build());
        scripts.add(new Script("merge-sums-buckets", 2, 8).rebucket(0, 6).merge(2, 1).build());
        scripts.add(new Script("merge-caps-buckets", 2, 4).rebucket(0, 520).rebucket(1, 510).merge(2, 3).build());
        scripts.add(new Script("buckets-halve-to-one", 1, 4).split(0).split(1).split(3).build());
        scripts.add(new Script("odd-buckets-halve", 1, 7).split(0).split(2).build());
        scripts.add(new Script("rebucket", 1, 4).rebucket(0, 8).rebucket(1, 3).rebucket(2, 1).split(3).build());
        scripts.add(new Script("rebucket-refusals", 1, 4).rebucket(0, 4).rebucket(9, 2).split(0).rebucket(0, 2).build());
        scripts.add(new Script("split-refusals", 1, 4).split(7).split(0).split(0).build());
        scripts.add(new Script("merge-refusals", 3, 4).merge(0, 2).merge(0, 0).merge(0, 9).split(1).merge(0, 1).build());
        scripts.add(new Script("prune", 1, 4).split(0).prune(0).split(1).merge(3, 4).prune(1).prune(3).prune(4).build());
        scripts.add(new Script("prune-refusals", 1, 4).prune(0).prune(5).split(0).split(1).prune(1).prune(2).build());
        scripts.add(new Script("prune-out-of-order", 1, 4).split(0).merge(1, 2).prune(1).prune(0).prune(2).build());
        Script narrow = new Script("split-down-to-one-value", 1, 1);
        for (int depth = 0, id = 0; depth < 17; depth++, id = 2 * depth - 1) {
            narrow.split(id);
        }
        scripts.add(narrow.build());
        scripts.add(new Script("migrated-0", 0, 4).migratedFrom("persistent://public/default/orders").split(1).build());
        scripts.add(new Script("migrated-3", 3, 4).migratedFrom("persistent://public/default/orders").split(3)
                .merge(4, 5).build());
        Random random = new Random(seed);
        for (int i = 0; i < 6; i++) {
            scripts.add(seeded(random, "seeded-" + i));
        }
        return scripts;
    }

    /** A history of operations drawn at random; some of them are refused, which is part of the question. */
    private static ObjectNode seeded(Random random, String name) {
        Script script = new Script(name, 1 + random.nextInt(4), 1 + random.nextInt(12));
        SegmentLayout layout = SegmentLayout.fromMetadata(LayoutSection.initial(script.initial));
        for (int i = 0; i < 8; i++) {
            List<SegmentInfo> active = new ArrayList<>(layout.getActiveSegments().values());
            active.sort((a, b) -> a.hashRange().compareTo(b.hashRange()));
            int at = random.nextInt(active.size());
            long id = active.get(at).segmentId();
            switch (random.nextInt(5)) {
                case 0, 1 -> script.split(id);
                case 2 -> script.merge(id, active.get((at + 1) % active.size()).segmentId());
                case 3 -> script.rebucket(id, 1 + random.nextInt(9));
                default -> script.prune(random.nextInt((int) layout.getNextSegmentId()));
            }
            try {
                layout = LayoutSection.apply(layout, script.steps.get(script.steps.size() - 1), 0);
            } catch (RuntimeException refused) {
                continue;
            }
        }
        return script.build();
    }

    private static final class Script {
        private final ObjectNode script = Json.object();
        private final ObjectNode initial;
        private final ArrayNode steps;

        Script(String name, int segments, int budget) {
            script.put("name", name);
            initial = script.putObject("initial").put("segments", segments).put("bucket_budget", budget);
            steps = script.putArray("steps");
        }

        Script migratedFrom(String topic) {
            initial.put("migrated_from", topic);
            return this;
        }

        Script split(long segment) {
            steps.addObject().put("op", "split").put("segment", segment);
            return this;
        }

        Script merge(long segment, long with) {
            steps.addObject().put("op", "merge").put("segment", segment).put("with", with);
            return this;
        }

        Script rebucket(long segment, int buckets) {
            steps.addObject().put("op", "rebucket").put("segment", segment).put("buckets", buckets);
            return this;
        }

        Script prune(long segment) {
            steps.addObject().put("op", "prune").put("segment", segment);
            return this;
        }

        ObjectNode build() {
            return script;
        }
    }
}
