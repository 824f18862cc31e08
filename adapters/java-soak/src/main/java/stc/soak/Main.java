package stc.soak;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.pulsar.client.api.v5.PulsarClient;

/**
 * A producer and consumers of Pulsar's V5 Java client on one topic, directed by lines on standard input. What happens
 * is told on standard output ({@link Events}); whether it is right, the caller judges. Ends with its input.
 *
 * <pre>
 * start | stop | last                           the flow of messages; `last` sends one more with each key
 * stream NAME SUBSCRIPTION HABIT                 opens a consumer that reads from the beginning
 * queue NAME SUBSCRIPTION HABIT
 * checkpoint NAME [POSITION]
 * group NAME GROUP
 * close NAME | crash NAME | position NAME        ends a consumer; `position` tells its checkpoint first
 * </pre>
 *
 * Each consumer has a client of its own, and with it connections of its own. Lines are worked on side by side: who
 * wants an order waits for what the last line brings about.
 */
public final class Main {
    private final String serviceUrl;
    private final String topic;
    private final Events events = new Events();
    private final Map<String, Reader> readers = new ConcurrentHashMap<>();
    private final PulsarClient producing;
    private final Flow flow;

    private Main(String serviceUrl, String topic) throws Exception {
        this.serviceUrl = serviceUrl;
        this.topic = topic;
        producing = client();
        flow = new Flow(producing, topic, events);
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: stc.soak.Main SERVICE_URL TOPIC");
            System.exit(2);
        }
        Main main = new Main(args[0], args[1]);
        main.events.write("ready", json -> { });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String command = line;
            Thread.ofPlatform().name(command).daemon().start(() -> main.obey(command));
        }
        System.exit(0);
    }

    private PulsarClient client() throws Exception {
        return PulsarClient.builder().serviceUrl(serviceUrl).build();
    }

    private void obey(String line) {
        String[] words = line.split(" ");
        try {
            switch (words[0]) {
                case "start" -> flow.start();
                case "stop" -> {
                    flow.stop();
                    events.write("stopped", json -> { });
                }
                case "last" -> {
                    flow.last();
                    events.write("stopped", json -> { });
                }
                case "stream", "queue", "checkpoint", "group" -> open(words);
                case "close" -> readers.remove(words[1]).close();
                case "crash" -> readers.remove(words[1]).crash();
                case "position" -> readers.remove(words[1]).checkpoint();
                default -> throw new IOException("no such command");
            }
        } catch (Exception e) {
            events.failed(line, e);
        }
    }

    private void open(String[] words) throws Exception {
        String name = words[1];
        PulsarClient client = client();
        Reading reading = switch (words[0]) {
            case "stream" -> Reading.stream(client, topic, words[2], name);
            case "queue" -> Reading.queue(client, topic, words[2], name);
            case "group" -> Reading.checkpoint(client, topic, words[2], name, null);
            default -> Reading.checkpoint(client, topic, null, name, words.length > 2 ? words[2] : null);
        };
        Reader.Habit habit = words.length > 3 ? Reader.Habit.valueOf(words[3].toUpperCase(Locale.ROOT))
                : Reader.Habit.NONE;
        events.write("opened", json -> json.put("consumer", name));
        readers.put(name, new Reader(name, client, reading, habit, events));
    }
}
