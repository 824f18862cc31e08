package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code generate FILE} writes the wire crate's test data, {@code check FILE} verifies each entry of such a file against
 * Pulsar's classes, {@code vectors DIRECTORY} the golden vectors.
 * Exit codes: 0 good, 1 an entry differs, 2 usage, 3 the file cannot be read or written.
 */
public final class Main {
    private static final String PULSAR_VERSION = "5.0.1";
    private static final long SEED = 5_0_1;
    private static final List<Section> SECTIONS = List.of(new HashSection(), new NameSection(),
            new SegmentNameSection(), new RangeSection(), new BucketSection(), new LayoutSection());

    private Main() {
    }

    public static void main(String[] args) {
        if (args.length != 2 || !List.of("generate", "check", "vectors").contains(args[0])) {
            System.err.println("usage: generate FILE | check FILE | vectors DIRECTORY");
            System.exit(2);
        }
        Path file = Path.of(args[1]);
        try {
            System.exit(switch (args[0]) {
                case "generate" -> generate(file);
                case "check" -> check(file);
                default -> new VectorFiles().check(file) == 0 ? 0 : 1;
            });
        } catch (IOException e) {
            System.err.println("cannot use " + file + ": " + e);
            System.exit(3);
        }
    }

    private static int generate(Path file) throws IOException {
        // One entry a line: a change of one vector is a change of one line.
        StringBuilder out = new StringBuilder("{\n");
        out.append("\"source\": ").append(Json.line(source(SEED)));
        for (Section section : SECTIONS) {
            List<String> lines = new ArrayList<>();
            for (ObjectNode question : section.questions(SEED)) {
                lines.add(Json.line(section.answer(question)));
            }
            out.append(",\n\"").append(section.name()).append("\": [\n").append(String.join(",\n", lines)).append("\n]");
        }
        Files.writeString(file, out.append("\n}\n"));
        return check(file);
    }

    private static ObjectNode source(long seed) {
        return Json.object().put("pulsar", PULSAR_VERSION).put("generator", "adapters/java-check").put("seed", seed);
    }

    private static int check(Path file) throws IOException {
        JsonNode vectors = Json.parse(Files.readString(file));
        ObjectNode summary = Json.object();
        int wrong = 0;
        for (Section section : SECTIONS) {
            JsonNode entries = vectors.path(section.name());
            if (entries.isEmpty()) {
                System.err.println(section.name() + ": no entries");
                wrong++;
            }
            for (JsonNode entry : entries) {
                // Printed and parsed again, so that both sides hold the same kinds of numbers.
                JsonNode answer = Json.parse(Json.line(section.answer(entry)));
                if (!answer.equals(entry)) {
                    System.err.println(section.name() + ": the file says  " + Json.line(entry));
                    System.err.println(section.name() + ": Pulsar answers " + Json.line(answer));
                    wrong++;
                }
            }
            summary.put(section.name(), entries.size());
        }
        System.out.println(Json.line(summary.put("wrong", wrong)));
        return wrong == 0 ? 0 : 1;
    }
}
