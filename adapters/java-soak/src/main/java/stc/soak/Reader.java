package stc.soak;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientException;

/** Keeps receiving with one consumer on a thread of its own, and acknowledges as its habit says. */
final class Reader {
    /** What a reader does with what it received. */
    enum Habit {
        /** Acknowledges each message at once. */
        EACH,
        /** Acknowledges when it has a handful, or when nothing more comes. */
        LATE,
        /** Acknowledges nothing. */
        NONE,
        /** Gives every fifth message back when it comes for the first time; acknowledges the others at once. */
        NACK
    }

    private static final Duration IDLE = Duration.ofMillis(50);
    private static final int HANDFUL = 25;
    private static final int NACK_EVERY = 5;

    private final String name;
    private final PulsarClient client;
    private final Reading reading;
    private final Habit habit;
    private final Events events;
    private final List<MessageId> unacknowledged = new ArrayList<>();
    private final List<String> values = new ArrayList<>();
    private final Thread thread;
    private volatile boolean stopped;
    private int received;

    Reader(String name, PulsarClient client, Reading reading, Habit habit, Events events) {
        this.name = name;
        this.client = client;
        this.reading = reading;
        this.habit = habit;
        this.events = events;
        thread = Thread.ofPlatform().name(name).daemon().start(this::run);
    }

    private void run() {
        while (!stopped) {
            try {
                Message<String> message = reading.receive(IDLE);
                if (message != null) {
                    take(message);
                } else if (habit == Habit.LATE) {
                    acknowledge();
                }
            } catch (PulsarClientException | RuntimeException e) {
                if (!stopped) {
                    events.failed(name + " receives", e);
                }
                return;
            }
        }
    }

    private void take(Message<String> message) {
        events.write("received", json -> json.put("consumer", name).put("key", message.key().orElse(null))
                .put("value", message.value()).put("redelivered", message.redeliveryCount()));
        received++;
        if (habit == Habit.NACK && received % NACK_EVERY == 0 && message.redeliveryCount() == 0) {
            events.write("given_back", json -> json.put("consumer", name).put("value", message.value()));
            reading.giveBack(message.id());
            return;
        }
        unacknowledged.add(message.id());
        values.add(message.value());
        if (habit == Habit.EACH || habit == Habit.NACK || habit == Habit.LATE && values.size() >= HANDFUL) {
            acknowledge();
        }
    }

    private void acknowledge() {
        if (unacknowledged.isEmpty()) {
            return;
        }
        events.write("acknowledged", json -> {
            json.put("consumer", name);
            values.forEach(json.withArray("values")::add);
        });
        reading.acknowledge(List.copyOf(unacknowledged));
        unacknowledged.clear();
        values.clear();
    }

    /** Stops between two messages and leaves what is not acknowledged as it is. */
    private void stop() throws InterruptedException {
        stopped = true;
        thread.join();
    }

    /** Leaves as an application that ends well does. */
    void close() throws PulsarClientException, InterruptedException {
        stop();
        reading.close();
        events.write("closed", json -> json.put("consumer", name));
        // Takes two seconds, in which the client only waits for its own threads.
        client.close();
    }

    /** Leaves as a process that is killed does: its connections break, and it takes no leave. */
    void crash() throws InterruptedException {
        stopped = true;
        client.shutdown();
        thread.join();
        events.write("closed", json -> json.put("consumer", name));
    }

    /** Takes the position after the last message that was received, and leaves. */
    void checkpoint() throws PulsarClientException, InterruptedException {
        stop();
        String position = reading.position();
        events.write("position", json -> json.put("consumer", name).put("position", position));
        close();
    }
}
