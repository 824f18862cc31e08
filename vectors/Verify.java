import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * Checks every value of the golden vectors with code of its own. Needs nothing but a JDK 21 or later:
 *
 * <pre>java Verify.java [DIRECTORY]</pre>
 *
 * DIRECTORY holds the JSON files; without it, it is {@code v1} beside this file, or {@code vectors/v1}. Prints the
 * number of cases of each file. Exit code: 0 every value is right, 1 one is wrong, 2 usage, 3 a file cannot be read.
 */
public final class Verify {
    private static final int RING = 65536;
    private static final int MAX_BUCKETS = 1024;

    /** Checks one case: every value that the file says goes to {@code found} beside the one computed here. */
    private interface Check {
        void run(Map<String, Object> kase, Found found);
    }

    private interface Found {
        void value(String what, Object file, Object computed);
    }

    public static void main(String[] args) {
        if (args.length > 1) {
            System.err.println("usage: java Verify.java [DIRECTORY]");
            System.exit(2);
        }
        Path directory = args.length == 1 ? Path.of(args[0]) : beside();
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("hashing", Verify::hashing);
        checks.put("legacy-routing", Verify::legacyRouting);
        checks.put("segment-routing", Verify::segmentRouting);
        checks.put("bucket-routing", Verify::bucketRouting);
        checks.put("bucket-boundaries", Verify::bucketBoundaries);
        checks.put("topic-names", Verify::topicNames);
        checks.put("segment-names", Verify::segmentNames);
        checks.put("layout-changes", Verify::layoutChanges);
        checks.put("assignments", Verify::assignments);
        checks.put("bucket-owners", Verify::bucketOwners);
        checks.put("bucket-batches", Verify::bucketBatches);
        checks.put("namespace-hash", Verify::namespaceHash);
        checks.put("frames", Verify::frames);
        checks.put("entries", Verify::entries);
        int cases = 0;
        int wrong = 0;
        try {
            for (Map.Entry<String, Check> check : checks.entrySet()) {
                String name = check.getKey();
                String text = Files.readString(directory.resolve(name + ".json"), StandardCharsets.UTF_8);
                List<Object> found = list(map(Json.parse(text)).get("cases"));
                int bad = found.isEmpty() ? 1 : 0;
                for (int i = 0; i < found.size(); i++) {
                    bad += checkCase(name + ": case " + (i + 1), map(found.get(i)), check.getValue());
                }
                System.out.println(name + ": " + found.size() + " cases, " + bad + " wrong");
                cases += found.size();
                wrong += bad;
            }
            try (Stream<Path> files = Files.list(directory)) {
                for (Path file : files.sorted().toList()) {
                    String name = file.getFileName().toString();
                    if (!checks.containsKey(name.replaceFirst("\\.json$", ""))) {
                        System.err.println(name + ": this verifier does not know the file");
                        wrong++;
                    }
                }
            }
        } catch (IOException | RuntimeException e) {
            System.err.println("cannot read the vectors: " + e);
            System.exit(3);
        }
        System.out.println(cases + " cases, " + wrong + " wrong");
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static Path beside() {
        // A source file that is launched directly names itself here.
        String source = System.getProperty("jdk.launcher.sourcefile");
        Path here = source == null ? Path.of("") : Path.of(source).toAbsolutePath().getParent();
        return Files.isDirectory(here.resolve("v1")) ? here.resolve("v1") : Path.of("vectors", "v1");
    }

    private static int checkCase(String where, Map<String, Object> kase, Check check) {
        int[] bad = {0};
        try {
            check.run(kase, (what, file, computed) -> {
                if (!Objects.equals(plain(file), plain(computed))) {
                    System.err.println(where + ", " + what + ": the file says " + file + ", computed " + computed);
                    bad[0]++;
                }
            });
        } catch (RuntimeException e) {
            System.err.println(where + ": cannot be checked: " + e);
            bad[0]++;
        }
        return bad[0];
    }

    /** One kind of number, so that values compare whatever they were computed as. */
    private static Object plain(Object value) {
        return switch (value) {
            case null -> null;
            case Integer number -> number.longValue();
            case List<?> items -> items.stream().map(Verify::plain).collect(Collectors.toCollection(ArrayList::new));
            case Map<?, ?> fields -> {
                Map<Object, Object> result = new HashMap<>();
                fields.forEach((key, item) -> result.put(key, plain(item)));
                yield result;
            }
            default -> value;
        };
    }

    // ---- Hashes ----------------------------------------------------------------------------------------------------

    /** Murmur3, 32 bits, seed 0. */
    static int murmur3(byte[] data) {
        int h = 0;
        int whole = data.length / 4 * 4;
        for (int i = 0; i < whole; i += 4) {
            int k = (data[i] & 0xff) | (data[i + 1] & 0xff) << 8 | (data[i + 2] & 0xff) << 16 | data[i + 3] << 24;
            h = Integer.rotateLeft(h ^ scramble(k), 13) * 5 + 0xe6546b64;
        }
        int tail = 0;
        for (int i = data.length - 1; i >= whole; i--) {
            tail = tail << 8 | (data[i] & 0xff);
        }
        h ^= scramble(tail) ^ data.length;
        h = (h ^ h >>> 16) * 0x85ebca6b;
        h = (h ^ h >>> 13) * 0xc2b2ae35;
        return h ^ h >>> 16;
    }

    private static int scramble(int k) {
        return Integer.rotateLeft(k * 0xcc9e2d51, 15) * 0x1b873593;
    }

    private static int hash(String key) {
        return murmur3(key.getBytes(StandardCharsets.UTF_8));
    }

    private static int segmentHash(String key) {
        return hash(key) >>> 16;
    }

    private static int bucketHash(String key) {
        return hash(key) & 0xffff;
    }

    private static void hashing(Map<String, Object> kase, Found found) {
        String key = text(kase, "key");
        found.value("utf8", kase.get("utf8"), HexFormat.of().formatHex(key.getBytes(StandardCharsets.UTF_8)));
        found.value("raw", kase.get("raw"), Integer.toUnsignedLong(hash(key)));
        found.value("segment_hash", kase.get("segment_hash"), segmentHash(key));
        found.value("bucket_hash", kase.get("bucket_hash"), bucketHash(key));
    }

    private static void legacyRouting(Map<String, Object> kase, Found found) {
        int raw = hash(text(kase, "key"));
        int masked = raw & 0x7fffffff;
        found.value("raw", kase.get("raw"), Integer.toUnsignedLong(raw));
        found.value("masked", kase.get("masked"), masked);
        map(kase.get("choices")).forEach((n, choice) -> found.value(n, choice, masked % Integer.parseInt(n)));
    }

    private static void namespaceHash(Map<String, Object> kase, Found found) {
        String joined = list(kase.get("topics")).stream().map(String.class::cast).sorted()
                .collect(Collectors.joining(","));
        CRC32C crc = new CRC32C();
        crc.update(joined.getBytes(StandardCharsets.UTF_8));
        int value = (int) crc.getValue();
        found.value("crc32c", kase.get("crc32c"), Integer.toUnsignedLong(value));
        found.value("current_hash", kase.get("current_hash"),
                HexFormat.of().toHexDigits(Integer.reverseBytes(value)));
    }

    // ---- Entry buckets ---------------------------------------------------------------------------------------------

    private static List<Integer> equalSplits(int count) {
        return IntStream.range(1, Math.max(count, 1)).map(i -> i * RING / count).boxed().toList();
    }

    private static List<List<Integer>> bucketRanges(List<Integer> splits) {
        List<List<Integer>> ranges = new ArrayList<>();
        int start = 0;
        for (int next : splits) {
            ranges.add(List.of(start, next - 1));
            start = next;
        }
        ranges.add(List.of(start, RING - 1));
        return ranges;
    }

    private static int bucketOf(List<Integer> splits, int hash) {
        return (int) splits.stream().filter(start -> start <= hash).count();
    }

    private static void bucketRouting(Map<String, Object> kase, Found found) {
        List<Integer> splits = numbers(kase.get("entry_bucket_splits"));
        map(kase.get("buckets")).forEach((key, bucket) -> found.value(key, bucket, bucketOf(splits, bucketHash(key))));
    }

    private static void bucketBoundaries(Map<String, Object> kase, Found found) {
        List<Integer> splits = numbers(kase.get("entry_bucket_splits"));
        switch (text(kase, "kind")) {
            case "equal" -> found.value("entry_bucket_splits", splits, equalSplits(number(kase, "count")));
            case "splits" -> {
                String refused = splitsRefused(splits);
                found.value("refused", kase.get("refused"), refused);
                List<List<Integer>> ranges = refused == null ? bucketRanges(splits) : null;
                found.value("ranges", kase.get("ranges"), ranges);
                // Bucket 1 cannot start where the hash that stands for bucket 0 is.
                found.value("canonical", kase.get("canonical"), ranges == null || splits.contains(1) ? null
                        : ranges.stream().map(range -> Math.max(range.get(0), 1)).toList());
            }
            case "declared" -> {
                List<List<Integer>> ranges = list(kase.get("ranges")).stream().map(Verify::numbers).toList();
                String refused = declaredRefused(ranges);
                found.value("refused", kase.get("refused"), refused);
                found.value("entry_bucket_splits", kase.get("entry_bucket_splits"),
                        refused == null ? ranges.stream().skip(1).map(range -> range.get(0)).toList() : null);
                found.value("refused_by_pulsar", kase.getOrDefault("refused_by_pulsar", false),
                        refused == null && ranges.get(0).get(1) == 0);
            }
            default -> throw new IllegalArgumentException("unknown kind");
        }
    }

    private static String splitsRefused(List<Integer> splits) {
        if (splits.stream().anyMatch(start -> start < 0 || start >= RING)) {
            return "out-of-ring";
        }
        int last = 0;
        for (int start : splits) {
            if (start <= last) {
                return "not-ascending";
            }
            last = start;
        }
        return null;
    }

    private static String declaredRefused(List<List<Integer>> ranges) {
        if (ranges.isEmpty()) {
            return "empty";
        }
        if (ranges.stream().flatMap(List::stream).anyMatch(value -> value < 0 || value >= RING)) {
            return "out-of-ring";
        }
        boolean touching = true;
        int last = -1;
        for (List<Integer> range : ranges) {
            if (range.get(0) > range.get(1) || range.get(0) <= last) {
                return "not-ascending";
            }
            touching &= range.get(0) == last + 1;
            last = range.get(1);
        }
        return touching && last == RING - 1 ? null : "not-tiling";
    }

    private static void bucketBatches(Map<String, Object> kase, Found found) {
        List<Integer> splits = numbers(kase.get("entry_bucket_splits"));
        List<Object> keys = list(kase.get("keys"));
        List<Object> unbatched = new ArrayList<>();
        List<Integer> keyless = new ArrayList<>();
        TreeMap<Integer, Map<String, Object>> batches = new TreeMap<>();
        for (int i = 0; i < keys.size(); i++) {
            if (keys.get(i) == null) {
                unbatched.add(null);
                keyless.add(i);
                continue;
            }
            int hash = bucketHash((String) keys.get(i));
            unbatched.add(hash);
            int bucket = bucketOf(splits, hash);
            Map<String, Object> batch = batches.computeIfAbsent(bucket, b -> new HashMap<>(Map.of("bucket", b,
                    "messages", new ArrayList<>(), "entry_hash_min", hash, "entry_hash_max", hash)));
            list(batch.get("messages")).add(i);
            batch.merge("entry_hash_min", hash, (a, b) -> Math.min((Integer) a, (Integer) b));
            batch.merge("entry_hash_max", hash, (a, b) -> Math.max((Integer) a, (Integer) b));
        }
        found.value("unbatched", kase.get("unbatched"), unbatched);
        found.value("keyless", kase.get("keyless"), keyless);
        found.value("batches", kase.get("batches"), new ArrayList<>(batches.values()));
    }

    // ---- Layouts ---------------------------------------------------------------------------------------------------

    private static void segmentRouting(Map<String, Object> kase, Found found) {
        List<Map<String, Object>> active = segments(map(kase.get("layout"))).stream().filter(Verify::isActive)
                .sorted(Comparator.comparing(s -> id(s))).toList();
        boolean legacy = active.stream().allMatch(s -> s.containsKey("legacy_topic_name"));
        map(kase.get("routes")).forEach((key, expected) -> {
            int hash = segmentHash(key);
            List<Map<String, Object>> owners = legacy
                    ? List.of(active.get((hash(key) & 0x7fffffff) % active.size()))
                    : active.stream().filter(s -> number(s, "hash_start") <= hash && hash <= number(s, "hash_end"))
                            .toList();
            found.value(key, expected, owners.size() == 1 ? id(owners.get(0)) : null);
        });
    }

    private static void layoutChanges(Map<String, Object> kase, Found found) {
        Map<String, Object> change = map(kase.get("change"));
        long at = (Long) kase.get("at_ms");
        String refused = null;
        Map<String, Object> after = null;
        try {
            after = kase.get("before") == null ? firstLayout(change, at) : change(map(kase.get("before")), change, at);
        } catch (Refused e) {
            refused = e.getMessage();
        }
        found.value("refused", kase.get("refused"), refused);
        found.value("after", kase.get("after"), after);
    }

    private static final class Refused extends RuntimeException {
        Refused(String reason) {
            super(reason, null, false, false);
        }
    }

    private static Map<String, Object> firstLayout(Map<String, Object> change, long at) {
        String op = text(change, "op");
        List<Object> topics = change.containsKey("topics") ? list(change.get("topics")) : List.of();
        int count = op.equals("create") ? number(change, "segments") : topics.size();
        int buckets = op.equals("synthetic") ? 1 : number(change, "bucket_budget") / count;
        List<Map<String, Object>> segments = new ArrayList<>();
        List<Long> sealed = op.equals("migrate") ? ids(0, count) : List.of();
        for (long i : sealed) {
            Map<String, Object> segment = segment(i, 0, RING - 1, 0, at, 1);
            segment.put("legacy_topic_name", topics.get((int) i));
            seal(segment, 0, at, ids(count, count));
            segments.add(segment);
        }
        int width = RING / count;
        for (int i = 0; i < count; i++) {
            int end = i + 1 == count ? RING - 1 : (i + 1) * width - 1;
            Map<String, Object> segment = segment(sealed.size() + i, i * width, end, 0, at, buckets);
            if (op.equals("synthetic")) {
                segment.put("legacy_topic_name", topics.get(i));
            }
            links(segment, "parent_ids", sealed);
            segments.add(segment);
        }
        return numbered(segments.size(), 0, segments);
    }

    private static Map<String, Object> change(Map<String, Object> before, Map<String, Object> change, long at) {
        Map<String, Object> layout = map(before.get("layout"));
        long epoch = (Long) layout.get("epoch") + 1;
        long next = (Long) before.get("next_segment_id");
        TreeMap<Long, Map<String, Object>> segments = new TreeMap<>();
        segments(layout).forEach(s -> segments.put(id(s), new HashMap<>(s)));
        long id = (Long) change.get("segment_id");
        Map<String, Object> first = segments.get(id);
        String op = text(change, "op");
        if (op.equals("prune")) {
            refuseIf(first == null, "unknown-segment");
            refuseIf(isActive(first), "active");
            segments.remove(id);
            for (Map<String, Object> segment : segments.values()) {
                for (String links : List.of("parent_ids", "child_ids")) {
                    links(segment, links, longs(segment.get(links)).stream().filter(i -> i != id).toList());
                }
            }
            return numbered(next, epoch, List.copyOf(segments.values()));
        }
        List<Long> parents = op.equals("merge") ? List.of(id, (Long) change.get("with")) : List.of(id);
        for (long parent : parents) {
            Map<String, Object> segment = segments.get(parent);
            refuseIf(segment == null, "unknown-segment");
            refuseIf(!isActive(segment), "not-active");
            refuseIf(segment.containsKey("legacy_topic_name"), "legacy");
        }
        int start = number(first, "hash_start");
        int end = number(first, "hash_end");
        int buckets = bucketCount(first);
        List<Map<String, Object>> successors = new ArrayList<>();
        switch (op) {
            case "split" -> {
                refuseIf(start == end, "too-narrow");
                int middle = start + (end - start) / 2;
                successors.add(segment(next, start, middle, epoch, at, buckets / 2));
                successors.add(segment(next + 1, middle + 1, end, epoch, at, buckets / 2));
            }
            case "merge" -> {
                Map<String, Object> other = segments.get(parents.get(1));
                boolean below = start <= number(other, "hash_start");
                Map<String, Object> low = below ? first : other;
                Map<String, Object> high = below ? other : first;
                refuseIf(number(low, "hash_end") + 1 != number(high, "hash_start"), "not-adjacent");
                successors.add(segment(next, number(low, "hash_start"), number(high, "hash_end"), epoch, at,
                        buckets + bucketCount(other)));
            }
            case "rebucket" -> {
                long count = (Long) change.get("buckets");
                refuseIf(count < 1 || count > MAX_BUCKETS, "bucket-count");
                refuseIf(equalSplits((int) count).equals(numbers(first.get("entry_bucket_splits"))), "same-buckets");
                successors.add(segment(next, start, end, epoch, at, (int) count));
            }
            default -> throw new IllegalArgumentException("unknown operation " + op);
        }
        List<Long> children = successors.stream().map(Verify::id).toList();
        parents.forEach(parent -> seal(segments.get(parent), epoch, at, children));
        for (Map<String, Object> successor : successors) {
            links(successor, "parent_ids", parents);
            segments.put(id(successor), successor);
        }
        return numbered(next + successors.size(), epoch, List.copyOf(segments.values()));
    }

    private static void refuseIf(boolean refused, String reason) {
        if (refused) {
            throw new Refused(reason);
        }
    }

    private static Map<String, Object> segment(long id, int start, int end, long epoch, long at, int buckets) {
        Map<String, Object> segment = new HashMap<>(Map.of("segment_id", id, "hash_start", start, "hash_end", end,
                "state", "ACTIVE", "created_at_epoch", epoch, "created_at_ms", at));
        links(segment, "entry_bucket_splits", equalSplits(Math.clamp(buckets, 1, MAX_BUCKETS)));
        return segment;
    }

    private static void seal(Map<String, Object> segment, long epoch, long at, List<Long> children) {
        segment.putAll(Map.of("state", "SEALED", "sealed_at_epoch", epoch, "sealed_at_ms", at));
        links(segment, "child_ids", children);
    }

    /** A list that is empty is absent. */
    private static void links(Map<String, Object> segment, String field, List<?> values) {
        segment.remove(field);
        if (!values.isEmpty()) {
            segment.put(field, values);
        }
    }

    private static Map<String, Object> numbered(long next, long epoch, List<Map<String, Object>> segments) {
        return Map.of("next_segment_id", next, "layout", Map.of("epoch", epoch, "segments", segments));
    }

    private static List<Long> ids(long first, long count) {
        return Stream.iterate(first, i -> i + 1).limit(count).toList();
    }

    private static List<Map<String, Object>> segments(Map<String, Object> layout) {
        return list(layout.get("segments")).stream().map(Verify::map).toList();
    }

    private static boolean isActive(Map<String, Object> segment) {
        return segment.get("state").equals("ACTIVE");
    }

    private static Long id(Map<String, Object> segment) {
        return (Long) segment.get("segment_id");
    }

    private static int bucketCount(Map<String, Object> segment) {
        return numbers(segment.get("entry_bucket_splits")).size() + 1;
    }

    // ---- Names -----------------------------------------------------------------------------------------------------

    private record Name(String domain, String tenant, String namespace, String local) {
    }

    private static Name parseTopic(String text, Set<String> domains) {
        refuseIf(text.isBlank(), "empty");
        String domain = "persistent";
        String[] parts;
        int mark = text.indexOf("://");
        if (mark >= 0) {
            domain = text.substring(0, mark);
            parts = text.substring(mark + 3).split("/", 3);
        } else {
            parts = text.split("/", -1);
            parts = parts.length == 1 ? new String[] {"public", "default", text} : parts;
        }
        refuseIf(!domains.contains(domain), "domain");
        refuseIf(parts.length != 3, "parts");
        refuseIf(!parts[0].matches("[-=:._A-Za-z0-9]+"), "tenant");
        refuseIf(!parts[1].matches("[-=:._A-Za-z0-9]+"), "namespace");
        refuseIf(parts[2].isBlank() || domain.endsWith("persistent") && parts[2].contains("/"), "local");
        return new Name(domain, parts[0], parts[1], parts[2]);
    }

    private static void topicNames(Map<String, Object> kase, Found found) {
        Map<String, Object> computed = null;
        String refused = null;
        try {
            Name n = parseTopic(text(kase, "input"), Set.of("topic", "persistent", "non-persistent"));
            computed = Map.of("canonical", n.domain + "://" + n.tenant + "/" + n.namespace + "/" + n.local,
                    "domain", n.domain, "tenant", n.tenant, "namespace", n.namespace, "local", n.local);
        } catch (Refused e) {
            refused = e.getMessage();
        }
        found.value("name", kase.get("name"), computed);
        found.value("refused", kase.get("refused"), refused);
    }

    private static Map<String, Object> parseSegment(String text) {
        Name name = parseTopic(text, Set.of("segment"));
        int slash = name.local.lastIndexOf('/');
        refuseIf(slash < 0 || name.local.substring(0, slash).isBlank(), "descriptor");
        String[] parts = name.local.substring(slash + 1).split("-", 3);
        refuseIf(parts.length != 3, "descriptor");
        refuseIf(!parts[0].matches("\\+?[0-9a-fA-F]+") || !parts[1].matches("\\+?[0-9a-fA-F]+"), "hash");
        long start = Long.parseLong(parts[0], 16);
        long end = Long.parseLong(parts[1], 16);
        refuseIf(start >= RING || end >= RING, "hash");
        refuseIf(end < start, "range");
        refuseIf(!parts[2].matches("\\+?[0-9]+"), "id");
        long id;
        try {
            id = Long.parseLong(parts[2]);
        } catch (NumberFormatException e) {
            throw new Refused("id");
        }
        String topic = "topic://" + name.tenant + "/" + name.namespace + "/" + name.local.substring(0, slash);
        return Map.of("topic", topic, "hash_start", start, "hash_end", end, "segment_id", id);
    }

    private static String segmentName(Object topic, Object start, Object end, Object id) {
        return "segment" + ((String) topic).substring("topic".length())
                + String.format("/%04x-%04x-%d", start, end, id);
    }

    private static void segmentNames(Map<String, Object> kase, Found found) {
        if (text(kase, "kind").equals("build")) {
            Map<String, Object> s = map(kase.get("segment"));
            found.value("name", kase.get("name"),
                    segmentName(s.get("topic"), s.get("hash_start"), s.get("hash_end"), s.get("segment_id")));
            return;
        }
        if (!text(kase, "kind").equals("parse")) {
            throw new IllegalArgumentException("unknown kind");
        }
        Map<String, Object> s = null;
        String refused = null;
        boolean lenient = false;
        try {
            s = parseSegment(text(kase, "input"));
            lenient = !segmentName(s.get("topic"), s.get("hash_start"), s.get("hash_end"), s.get("segment_id"))
                    .equals(kase.get("input"));
        } catch (Refused e) {
            refused = e.getMessage();
        }
        found.value("segment", kase.get("segment"), s);
        found.value("lenient", kase.getOrDefault("lenient", false), lenient);
        found.value("refused", kase.get("refused"), refused);
    }

    // ---- Assignments and bucket owners -----------------------------------------------------------------------------

    private static List<Map<String, Object>> assignable(Map<String, Object> kase) {
        Map<Long, Map<String, Object>> all = new HashMap<>();
        segments(map(kase.get("layout"))).forEach(s -> all.put(id(s), s));
        Set<Long> drained = new HashSet<>(longs(kase.get("drained")));
        boolean group = kase.get("consumer_type").equals("CHECKPOINT");
        return all.values().stream()
                .filter(s -> group || (isActive(s) || !drained.contains(id(s)))
                        && drained.containsAll(ancestors(s, all, new HashSet<>())))
                .sorted(Comparator.comparingInt((Map<String, Object> s) -> number(s, "hash_start"))
                        .thenComparingInt(s -> number(s, "hash_end")).thenComparingLong(Verify::id))
                .toList();
    }

    private static Set<Long> ancestors(Map<String, Object> s, Map<Long, Map<String, Object>> all, Set<Long> found) {
        for (long parent : longs(s.get("parent_ids"))) {
            if (all.containsKey(parent) && found.add(parent)) {
                ancestors(all.get(parent), all, found);
            }
        }
        return found;
    }

    private static void assignments(Map<String, Object> kase, Found found) {
        List<Map<String, Object>> segments = assignable(kase);
        List<String> consumers = list(kase.get("consumers")).stream().map(String.class::cast).sorted().toList();
        Map<String, List<Object>> result = new HashMap<>();
        consumers.forEach(consumer -> result.put(consumer, new ArrayList<>()));
        if (consumers.size() <= segments.size() || kase.get("consumer_type").equals("CHECKPOINT")) {
            for (int i = 0; i < segments.size(); i++) {
                result.get(consumers.get(i % consumers.size())).add(assigned(kase, segments.get(i), false));
            }
        } else {
            int[] owners = owners(segments, consumers.size());
            int next = 0;
            for (int i = 0; i < owners.length; i++) {
                for (int j = 0; j < owners[i]; j++) {
                    result.get(consumers.get(next++)).add(assigned(kase, segments.get(i), owners[i] > 1));
                }
            }
        }
        found.value("assignable", kase.get("assignable"), segments.stream().map(Verify::id).toList());
        found.value("assignments", kase.get("assignments"), result);
    }

    private static int[] owners(List<Map<String, Object>> segments, int consumers) {
        int[] owners = new int[segments.size()];
        Arrays.fill(owners, 1);
        int surplus = consumers - segments.size();
        for (boolean took = true; surplus > 0 && took;) {
            took = false;
            for (int i = 0; i < owners.length && surplus > 0; i++) {
                if (owners[i] < bucketCount(segments.get(i))) {
                    owners[i]++;
                    surplus--;
                    took = true;
                }
            }
        }
        return owners;
    }

    private static Map<String, Object> assigned(Map<String, Object> kase, Map<String, Object> s, boolean shared) {
        Object name = s.get("legacy_topic_name");
        if (name == null) {
            name = segmentName(kase.get("topic"), s.get("hash_start"), s.get("hash_end"), id(s));
        }
        List<List<Integer>> ranges = shared ? bucketRanges(numbers(s.get("entry_bucket_splits"))) : List.of();
        return Map.of("segment_id", id(s), "hash_start", s.get("hash_start"), "hash_end", s.get("hash_end"),
                "segment_topic", name, "bucket_ranges",
                ranges.stream().map(range -> Map.of("start", range.get(0), "end", range.get(1))).toList());
    }

    private static void bucketOwners(Map<String, Object> kase, Found found) {
        int buckets = number(kase, "buckets");
        List<Object> members = new ArrayList<>(list(kase.get("consumers")));
        List<Map<String, Object>> before = slices(buckets, members);
        Map<String, Object> change = map(kase.get("change"));
        if (change.containsKey("join")) {
            members.add(change.get("join"));
        } else {
            members.remove(change.get("leave"));
        }
        List<Map<String, Object>> after = slices(buckets, members);
        List<Map<String, Object>> moved = new ArrayList<>();
        for (int i = 0; i < buckets; i++) {
            Map<String, Object> move = new HashMap<>();
            move.put("bucket", i);
            move.put("from", owner(before, i));
            move.put("to", owner(after, i));
            if (!Objects.equals(move.get("from"), move.get("to"))) {
                moved.add(move);
            }
        }
        found.value("before", kase.get("before"), before);
        found.value("after", kase.get("after"), after);
        found.value("moved", kase.get("moved"), moved);
    }

    private static List<Map<String, Object>> slices(int buckets, List<Object> consumers) {
        List<Map<String, Object>> sorted = consumers.stream().map(Verify::map)
                .sorted(Comparator.comparing((Map<String, Object> c) -> text(c, "name"))
                        .thenComparing(c -> (Long) c.get("consumer_id")))
                .toList();
        int k = sorted.size();
        return IntStream.range(0, k).<Map<String, Object>>mapToObj(j -> Map.of("consumer", sorted.get(j),
                "from", j * buckets / k, "to", (j + 1) * buckets / k)).toList();
    }

    private static Object owner(List<Map<String, Object>> slices, int bucket) {
        return slices.stream().filter(s -> number(s, "from") <= bucket && bucket < number(s, "to"))
                .map(s -> s.get("consumer")).findFirst().orElse(null);
    }

    // ---- Frames ----------------------------------------------------------------------------------------------------

    /** A message's fields: {@code number name kind}, a star before a repeated one. */
    private static final Map<String, String> MESSAGES = Map.ofEntries(
            Map.entry("70", "SCALABLE_TOPIC_LOOKUP: 1 session_id u, 2 topic t, 3 create_if_missing b"),
            Map.entry("71", "SCALABLE_TOPIC_UPDATE: 1 session_id u, 2 dag DAG, 3 error ERROR, 4 message t,"
                    + " 5 resolved_topic_name t"),
            Map.entry("72", "SCALABLE_TOPIC_CLOSE: 1 session_id u"),
            Map.entry("73", "SCALABLE_TOPIC_SUBSCRIBE: 1 request_id u, 2 topic t, 3 subscription t, 4 consumer_name t,"
                    + " 5 consumer_id u, 6 consumer_type TYPE"),
            Map.entry("74", "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE: 1 request_id u, 2 error ERROR, 3 message t,"
                    + " 4 assignment ASSIGNMENT"),
            Map.entry("75", "SCALABLE_TOPIC_ASSIGNMENT_UPDATE: 1 consumer_id u, 2 assignment ASSIGNMENT"),
            Map.entry("76", "WATCH_SCALABLE_TOPICS: 1 watch_id u, 2 namespace t, 3 *property_filters KEYVALUE,"
                    + " 4 current_hash t"),
            Map.entry("77", "WATCH_SCALABLE_TOPICS_UPDATE: 1 watch_id u, 2 snapshot TOPICS, 3 diff DIFF, 4 error ERROR,"
                    + " 5 message t"),
            Map.entry("78", "WATCH_SCALABLE_TOPICS_CLOSE: 1 watch_id u"),
            Map.entry("79", "WATCH_TC_ASSIGNMENTS: 1 watch_id u"),
            Map.entry("80", "WATCH_TC_ASSIGNMENTS_UPDATE: 1 watch_id u, 2 snapshot TCS, 3 error ERROR, 4 message t"),
            Map.entry("81", "WATCH_TC_ASSIGNMENTS_CLOSE: 1 watch_id u"),
            Map.entry("82", "SCALABLE_TOPIC_UNSUBSCRIBE: 1 request_id u, 2 consumer_id u"),
            Map.entry("DAG", "1 epoch u, 2 *segments SEGMENT, 3 *segment_brokers ADDRESS, 4 controller_broker_url t,"
                    + " 5 controller_broker_url_tls t"),
            Map.entry("SEGMENT", "1 segment_id u, 2 hash_start u, 3 hash_end u, 4 state STATE, 5 *parent_ids u,"
                    + " 6 *child_ids u, 7 created_at_epoch u, 8 sealed_at_epoch u, 9 created_at_ms u, 10 sealed_at_ms u,"
                    + " 11 legacy_topic_name t, 12 *entry_bucket_splits u"),
            Map.entry("ADDRESS", "1 segment_id u, 2 broker_url t, 3 broker_url_tls t"),
            Map.entry("ASSIGNMENT", "1 layout_epoch u, 2 *segments ASSIGNED"),
            Map.entry("ASSIGNED", "1 segment_id u, 2 hash_start u, 3 hash_end u, 4 segment_topic t,"
                    + " 5 *bucket_ranges RANGE"),
            Map.entry("RANGE", "1 start u, 2 end u"),
            Map.entry("KEYVALUE", "1 key t, 2 value t"),
            Map.entry("METADATA", "1 producer_name t, 2 sequence_id u, 3 publish_time u, 4 *properties KEYVALUE,"
                    + " 6 partition_key t, 8 compression COMPRESSION, 9 uncompressed_size u, 11 num_messages_in_batch u,"
                    + " 12 event_time u, 13 *encryption_keys WRAPPED, 15 encryption_param x, 19 deliver_at_time u,"
                    + " 24 highest_sequence_id u, 26 uuid t, 27 num_chunks_from_msg u, 28 total_chunk_msg_size u,"
                    + " 29 chunk_id u, 33 entry_hash_min u, 34 entry_hash_max u"),
            Map.entry("WRAPPED", "1 key t, 2 value x, 3 *metadata KEYVALUE"),
            Map.entry("MEMBER", "1 *properties KEYVALUE, 2 partition_key t, 3 payload_size u, 5 event_time u,"
                    + " 8 sequence_id u"),
            Map.entry("TOPICS", "1 *topics t"),
            Map.entry("DIFF", "1 *added t, 2 *removed t"),
            Map.entry("TCS", "1 parallelism u, 2 *assignments TC"),
            Map.entry("TC", "1 tc_id u, 2 broker_service_url t, 3 broker_service_url_tls t"));

    private static final Map<String, List<String>> ENUMS = Map.of("STATE", List.of("ACTIVE", "SEALED"),
            "TYPE", List.of("STREAM", "CHECKPOINT"),
            "COMPRESSION", List.of("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"),
            "ERROR", List.of("UnknownError", "MetadataError", "PersistenceError", "AuthenticationError",
                    "AuthorizationError", "ConsumerBusy", "ServiceNotReady", "ProducerBlockedQuotaExceededError",
                    "ProducerBlockedQuotaExceededException", "ChecksumError", "UnsupportedVersionError",
                    "TopicNotFound", "SubscriptionNotFound", "ConsumerNotFound", "TooManyRequests",
                    "TopicTerminatedError", "ProducerBusy", "InvalidTopicName", "IncompatibleSchema",
                    "ConsumerAssignError", "TransactionCoordinatorNotFound", "InvalidTxnStatus", "NotAllowedError",
                    "TransactionConflict", "TransactionNotFound", "ProducerFenced"));

    private record Field(String name, String kind, boolean repeated) {
    }

    private static Map<Integer, Field> table(String message) {
        String text = MESSAGES.get(message);
        Map<Integer, Field> table = new TreeMap<>();
        for (String field : text.substring(text.indexOf(':') + 1).trim().split(", ")) {
            String[] words = field.trim().split(" ");
            boolean repeated = words[1].startsWith("*");
            table.put(Integer.valueOf(words[0]), new Field(words[1].replace("*", ""), words[2], repeated));
        }
        return table;
    }

    /** Reads protobuf: a position in some bytes. */
    private static final class Reader {
        private final byte[] bytes;
        private int at;

        Reader(byte[] bytes) {
            this.bytes = bytes;
        }

        boolean done() {
            return at == bytes.length;
        }

        long varint() {
            long value = 0;
            for (int shift = 0;; shift += 7) {
                byte b = bytes[at++];
                value |= (b & 0x7fL) << shift;
                if (b >= 0) {
                    return value;
                }
            }
        }

        byte[] part() {
            int size = (int) varint();
            int from = at;
            at += size;
            return Arrays.copyOfRange(bytes, from, at);
        }
    }

    private static Map<String, Object> decode(byte[] bytes, String message) {
        Map<Integer, Field> table = table(message);
        Map<String, Object> result = new HashMap<>();
        Reader reader = new Reader(bytes);
        while (!reader.done()) {
            long key = reader.varint();
            Object raw = switch ((int) key & 7) {
                case 0 -> reader.varint();
                case 2 -> reader.part();
                default -> throw new IllegalArgumentException("wire type " + (key & 7));
            };
            Field field = table.get((int) (key >>> 3));
            if (field == null) {
                continue;
            }
            Object value = switch (field.kind) {
                case "u" -> raw;
                case "b" -> (Long) raw != 0;
                case "t" -> new String((byte[]) raw, StandardCharsets.UTF_8);
                case "x" -> HexFormat.of().formatHex((byte[]) raw);
                default -> ENUMS.containsKey(field.kind) ? ENUMS.get(field.kind).get(((Long) raw).intValue())
                        : decode((byte[]) raw, field.kind);
            };
            if (field.repeated) {
                list(result.computeIfAbsent(field.name, name -> new ArrayList<>())).add(value);
            } else {
                result.put(field.name, value);
            }
        }
        return result;
    }

    /** Writes protobuf, fields in ascending order. */
    private static byte[] encode(Map<String, Object> fields, String message) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        table(message).forEach((number, field) -> {
            Object found = fields.get(field.name);
            List<Object> values = found == null ? List.of() : field.repeated ? list(found) : List.of(found);
            for (Object value : values) {
                if (field.kind.equals("u") || field.kind.equals("b") || ENUMS.containsKey(field.kind)) {
                    varint(out, (long) number << 3);
                    varint(out, field.kind.equals("u") ? (Long) value
                            : field.kind.equals("b") ? ((Boolean) value ? 1 : 0)
                            : ENUMS.get(field.kind).indexOf(value));
                } else {
                    part(out, number, field.kind.equals("t") ? ((String) value).getBytes(StandardCharsets.UTF_8)
                            : field.kind.equals("x") ? HexFormat.of().parseHex((String) value)
                            : encode(map(value), field.kind));
                }
            }
        });
        return out.toByteArray();
    }

    private static void varint(ByteArrayOutputStream out, long value) {
        for (; (value & ~0x7fL) != 0; value >>>= 7) {
            out.write((int) (value & 0x7f | 0x80));
        }
        out.write((int) value);
    }

    private static void part(ByteArrayOutputStream out, int number, byte[] bytes) {
        varint(out, (long) number << 3 | 2);
        varint(out, bytes.length);
        out.writeBytes(bytes);
    }

    private static void frames(Map<String, Object> kase, Found found) {
        byte[] frame = HexFormat.of().parseHex(text(kase, "frame"));
        ByteBuffer sizes = ByteBuffer.wrap(frame);
        found.value("total size", sizes.getInt(), frame.length - 4);
        found.value("command size", sizes.getInt(), frame.length - 8);
        byte[] command = Arrays.copyOfRange(frame, 8, frame.length);
        long type = -1;
        byte[] body = null;
        Reader reader = new Reader(command);
        while (!reader.done()) {
            long key = reader.varint();
            Object value = (key & 7) == 0 ? (Object) reader.varint() : reader.part();
            type = key >>> 3 == 1 ? (Long) value : type;
            body = key >>> 3 == type ? (byte[]) value : body;
        }
        String message = Long.toString(type);
        found.value("number", kase.get("number"), type);
        found.value("command", kase.get("command"), MESSAGES.get(message).split(":")[0]);
        found.value("fields", kase.get("fields"), decode(body, message));
        ByteArrayOutputStream again = new ByteArrayOutputStream();
        varint(again, 1 << 3);
        varint(again, type);
        part(again, (int) type, encode(map(kase.get("fields")), message));
        found.value("unknown_fields", kase.getOrDefault("unknown_fields", false),
                !Arrays.equals(again.toByteArray(), command));
    }

    // ---- Entries ---------------------------------------------------------------------------------------------------

    private static void entries(Map<String, Object> kase, Found found) {
        List<Object> messages = new ArrayList<>();
        Map<Object, List<Integer>> places = new HashMap<>();
        Map<Object, ByteArrayOutputStream> begun = new HashMap<>();
        List<Object> stored = list(kase.get("entries"));
        for (int place = 0; place < stored.size(); place++) {
            Map<String, Object> fields = map(stored.get(place));
            ByteBuffer entry = ByteBuffer.wrap(HexFormat.of().parseHex(text(fields, "entry")));
            found.value("magic", 0x0e01, (int) entry.getShort());
            found.value("checksum on the wire", fields.get("crc32c"), Integer.toUnsignedLong(entry.getInt()));
            CRC32C crc = new CRC32C();
            crc.update(entry.slice());
            found.value("crc32c", fields.get("crc32c"), crc.getValue());
            byte[] body = bytes(entry, entry.getInt());
            Map<String, Object> metadata = decode(body, "METADATA");
            found.value("metadata", fields.get("metadata"), metadata);
            found.value("fields ascend", HexFormat.of().formatHex(body),
                    HexFormat.of().formatHex(encode(metadata, "METADATA")));
            List<Object> members = new ArrayList<>();
            if (metadata.containsKey("num_messages_in_batch") && !metadata.containsKey("encryption_keys")) {
                for (long i = 0; i < (Long) metadata.get("num_messages_in_batch"); i++) {
                    Map<String, Object> member = decode(bytes(entry, entry.getInt()), "MEMBER");
                    members.add(member);
                    Object sequenceId = member.getOrDefault("sequence_id", (Long) metadata.get("sequence_id") + i);
                    byte[] value = bytes(entry, ((Long) member.get("payload_size")).intValue());
                    messages.add(message(member, sequenceId, value, List.of(place)));
                }
                found.value("bytes behind the last member", 0, entry.remaining());
            }
            found.value("members", fields.getOrDefault("members", List.of()), members);
            if (!members.isEmpty()) {
                continue;
            }
            byte[] payload = bytes(entry, entry.remaining());
            if (!metadata.containsKey("uuid")) {
                messages.add(message(metadata, metadata.get("sequence_id"), payload, List.of(place)));
                continue;
            }
            List<Integer> seen = places.computeIfAbsent(metadata.get("uuid"), uuid -> new ArrayList<>());
            if (seen.size() != (Long) metadata.get("chunk_id")) {
                continue;
            }
            seen.add(place);
            ByteArrayOutputStream whole =
                    begun.computeIfAbsent(metadata.get("uuid"), uuid -> new ByteArrayOutputStream());
            whole.writeBytes(payload);
            if (seen.size() == (Long) metadata.get("num_chunks_from_msg")) {
                found.value("total size", metadata.get("total_chunk_msg_size"), (long) whole.size());
                messages.add(message(metadata, metadata.get("sequence_id"), whole.toByteArray(), seen));
            }
        }
        found.value("messages", kase.get("messages"), messages);
    }

    private static byte[] bytes(ByteBuffer from, int count) {
        byte[] bytes = new byte[count];
        from.get(bytes);
        return bytes;
    }

    private static Map<String, Object> message(
            Map<String, Object> fields, Object sequenceId, byte[] payload, List<Integer> entries) {
        Map<String, Object> message = new HashMap<>();
        message.put("key", fields.get("partition_key"));
        message.put("sequence_id", sequenceId);
        message.put("payload", HexFormat.of().formatHex(payload));
        message.put("entries", entries);
        return message;
    }

    // ---- JSON ------------------------------------------------------------------------------------------------------

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    private static String text(Map<String, Object> fields, String name) {
        return (String) fields.get(name);
    }

    private static int number(Map<String, Object> fields, String name) {
        return Math.toIntExact(((Number) fields.get(name)).longValue());
    }

    private static List<Long> longs(Object value) {
        return value == null ? List.of() : list(value).stream().map(item -> ((Number) item).longValue()).toList();
    }

    private static List<Integer> numbers(Object value) {
        return longs(value).stream().map(Math::toIntExact).toList();
    }

    /** Numbers become Long; those beyond 2^63-1 its unsigned reading. */
    private static final class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static Object parse(String text) {
            Json json = new Json(text);
            Object value = json.value();
            if (json.peek() != 0) {
                throw json.error();
            }
            return value;
        }

        private RuntimeException error() {
            return new IllegalArgumentException("no JSON at character " + at);
        }

        /** The next character that is no white space; 0 at the end. */
        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return at < text.length() ? text.charAt(at) : 0;
        }

        private boolean take(char c) {
            boolean found = peek() == c;
            at += found ? 1 : 0;
            return found;
        }

        private void need(char c) {
            if (!take(c)) {
                throw error();
            }
        }

        private Object value() {
            char c = peek();
            return switch (c) {
                case '{' -> object();
                case '[' -> array();
                case '"' -> string();
                case 't' -> word("true", true);
                case 'f' -> word("false", false);
                case 'n' -> word("null", null);
                default -> number();
            };
        }

        private Object word(String word, Object value) {
            if (!text.startsWith(word, at)) {
                throw error();
            }
            at += word.length();
            return value;
        }

        private Long number() {
            int from = at;
            while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String digits = text.substring(from, at);
            return digits.startsWith("-") ? Long.parseLong(digits) : Long.parseUnsignedLong(digits);
        }

        private Map<String, Object> object() {
            Map<String, Object> fields = new LinkedHashMap<>();
            need('{');
            if (take('}')) {
                return fields;
            }
            do {
                peek();
                String name = string();
                need(':');
                fields.put(name, value());
            } while (take(','));
            need('}');
            return fields;
        }

        private List<Object> array() {
            List<Object> items = new ArrayList<>();
            need('[');
            if (take(']')) {
                return items;
            }
            do {
                items.add(value());
            } while (take(','));
            need(']');
            return items;
        }

        private String string() {
            need('"');
            StringBuilder out = new StringBuilder();
            for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
                if (c != '\\') {
                    out.append(c);
                    continue;
                }
                char escape = text.charAt(at++);
                switch (escape) {
                    case 'n' -> out.append('\n');
                    case 't' -> out.append('\t');
                    case 'r' -> out.append('\r');
                    case 'b' -> out.append('\b');
                    case 'f' -> out.append('\f');
                    case 'u' -> {
                        out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                        at += 4;
                    }
                    default -> out.append(escape);
                }
            }
            return out.toString();
        }
    }
}
