package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The golden vectors ({@code vectors/v1}) against Pulsar's classes, as far as there is a class for them. */
final class VectorFiles {
    /** Checks one case of a file. */
    interface Check {
        void run(JsonNode vector, Found found);
    }

    /** Takes what a file says and what Pulsar says. */
    interface Found {
        void value(String what, JsonNode file, Object pulsar);
    }

    private final Map<String, Check> checks = new LinkedHashMap<>();

    VectorFiles() {
        checks.put("hashing", KeyVectors::hashing);
        checks.put("legacy-routing", KeyVectors::legacyRouting);
        checks.put("segment-routing", KeyVectors::segmentRouting);
        checks.put("bucket-routing", BucketVectors::routing);
        checks.put("bucket-boundaries", BucketVectors::boundaries);
        checks.put("topic-names", NameVectors::topics);
        checks.put("segment-names", NameVectors::segments);
        checks.put("layout-changes", LayoutVectors::changes);
        checks.put("assignments", AssignmentVectors::assignments);
        checks.put("bucket-owners", BucketVectors::owners);
        checks.put("namespace-hash", KeyVectors::namespaceHash);
        checks.put("frames", FrameVectors::frames);
    }

    /** Prints a count for each file; returns how many values are wrong. */
    int check(Path directory) throws IOException {
        ObjectNode summary = Json.object();
        int wrong = 0;
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            String name = check.getKey();
            JsonNode cases = Json.parse(Files.readString(directory.resolve(name + ".json"))).path("cases");
            int[] compared = {0};
            int[] bad = {0};
            for (int i = 0; i < cases.size(); i++) {
                String where = name + ": case " + (i + 1);
                check.getValue().run(cases.get(i), (what, file, pulsar) -> {
                    compared[0]++;
                    if (!same(file, pulsar)) {
                        System.err.println(where + ", " + what + ": the file says " + file + ", Pulsar " + pulsar);
                        bad[0]++;
                    }
                });
            }
            if (compared[0] == 0) {
                System.err.println(name + ": nothing to compare");
                bad[0]++;
            }
            summary.put(name, compared[0]);
            wrong += bad[0];
        }
        System.out.println(Json.line(summary.put("wrong", wrong)));
        return wrong;
    }

    private static boolean same(JsonNode file, Object pulsar) {
        boolean absent = file.isMissingNode() || file.isNull();
        return absent || pulsar == null ? absent && pulsar == null : file.equals(Json.value(pulsar));
    }

    /** A field's elements as a list. */
    static List<JsonNode> items(JsonNode array) {
        return array.isMissingNode() ? List.of() : List.copyOf(array.valueStream().toList());
    }
}
