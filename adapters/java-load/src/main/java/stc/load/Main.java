package stc.load;

import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.pulsar.client.api.v5.PulsarClient;

/** Runs one scenario of Pulsar's V5 Java client against a broker. */
public final class Main {
    private static final Map<String, Supplier<Scenario>> SCENARIOS =
            Map.of("split-merge", SplitMerge::new, "smoke", Smoke::new);

    private Main() {
    }

    public static void main(String[] args) {
        System.exit(run(args));
    }

    private static int run(String[] args) {
        if (List.of(args).contains("--help")) {
            System.out.println(Options.USAGE);
            return 0;
        }
        Options options;
        Supplier<Scenario> scenario;
        try {
            options = Options.parse(args);
            scenario = SCENARIOS.get(options.scenario());
            if (scenario == null) {
                throw new Options.UsageException("no scenario " + options.scenario());
            }
        } catch (Options.UsageException e) {
            System.err.println(e.getMessage());
            System.err.println(Options.USAGE);
            return 2;
        }
        // Names are new in each run, so that a broker which serves several runs keeps them apart.
        String name = "java-load-" + options.scenario() + "-" + options.seed() + "-"
                + Long.toString(System.currentTimeMillis(), Character.MAX_RADIX);
        Admin admin = new Admin(options.adminUrl(), name);
        Summary summary = new Summary(options, admin.topic());
        long start = System.nanoTime();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(options.serviceUrl()).build()) {
            scenario.get().run(client, admin, options, summary);
        } catch (Exception e) {
            e.printStackTrace();
            summary.check(false, "the run broke: " + e);
            summary.print();
            return 3;
        }
        summary.json().put("ms", (System.nanoTime() - start) / 1_000_000);
        return summary.print();
    }
}
