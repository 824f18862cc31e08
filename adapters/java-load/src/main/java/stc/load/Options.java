package stc.load;

import java.net.URI;
import java.time.Duration;

/**
 * The command line.
 *
 * @param serviceUrl where clients connect, {@code pulsar://host:port}
 * @param adminUrl where the admin REST is, {@code http://host:port}
 * @param scenario what to do
 * @param messages how many messages go out before, between and after the layout operations
 * @param keys how many different keys the messages have
 * @param rate messages a second, at most
 * @param batching whether the producer batches
 * @param readBack whether a checkpoint consumer reads the whole topic at the end, to compare the order of each key
 * @param seed decides which segments are split and merged, and names the topic
 * @param patience how long one wait may take
 */
record Options(String serviceUrl, URI adminUrl, String scenario, int messages, int keys, int rate, boolean batching,
        boolean readBack, long seed, Duration patience) {
    static final String USAGE = """
            usage: stc.load.Main --service-url pulsar://HOST:PORT --admin-url http://HOST:PORT [options]
              --scenario NAME   split-merge (default) or smoke: one message there and back
              --smoke           the same as --scenario smoke
              --messages N      messages before, between and after the layout operations (default 200)
              --keys N          different keys (default 16)
              --rate N          messages a second, at most (default 1000)
              --batching BOOL   whether the producer batches (default true)
              --read-back BOOL  read the topic again at the end and compare the order of each key (default false)
              --seed N          decides which segments are split and merged (default 1)
              --timeout SECONDS how long one wait may take (default 60)
            Prints one line of JSON. Exit code: 0 all checks hold, 1 one does not, 2 usage, 3 the run broke.""";

    /** The command line cannot be used; the message says why. */
    static final class UsageException extends Exception {
        private static final long serialVersionUID = 1;

        UsageException(String message) {
            super(message);
        }
    }

    static Options parse(String[] args) throws UsageException {
        String serviceUrl = null;
        String adminUrl = null;
        String scenario = "split-merge";
        int messages = 200;
        int keys = 16;
        int rate = 1000;
        boolean batching = true;
        boolean readBack = false;
        long seed = 1;
        long timeout = 60;
        for (int i = 0; i < args.length; i++) {
            String option = args[i];
            if (option.equals("--smoke")) {
                scenario = "smoke";
                continue;
            }
            if (++i == args.length) {
                throw new UsageException(option + " needs a value, or is no option");
            }
            String value = args[i];
            switch (option) {
                case "--service-url" -> serviceUrl = value;
                case "--admin-url" -> adminUrl = value;
                case "--scenario" -> scenario = value;
                case "--messages" -> messages = (int) number(option, value, 1, 1_000_000);
                case "--keys" -> keys = (int) number(option, value, 1, 100_000);
                case "--rate" -> rate = (int) number(option, value, 1, 1_000_000);
                case "--batching" -> batching = flag(option, value);
                case "--read-back" -> readBack = flag(option, value);
                case "--seed" -> seed = number(option, value, Long.MIN_VALUE, Long.MAX_VALUE);
                case "--timeout" -> timeout = number(option, value, 1, 3600);
                default -> throw new UsageException("unknown option " + option);
            }
        }
        if (serviceUrl == null || adminUrl == null) {
            throw new UsageException("--service-url and --admin-url are needed");
        }
        try {
            return new Options(serviceUrl, URI.create(adminUrl), scenario, messages, keys, rate, batching,
                    readBack, seed, Duration.ofSeconds(timeout));
        } catch (IllegalArgumentException e) {
            throw new UsageException("--admin-url is no URL: " + adminUrl);
        }
    }

    private static long number(String option, String value, long min, long max) throws UsageException {
        try {
            long number = Long.parseLong(value);
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException e) {
            // said below
        }
        throw new UsageException(option + " takes a number from " + min + " to " + max + ", not " + value);
    }

    private static boolean flag(String option, String value) throws UsageException {
        return switch (value) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new UsageException(option + " takes true or false, not " + value);
        };
    }
}
