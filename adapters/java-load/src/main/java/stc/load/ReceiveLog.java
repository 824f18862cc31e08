package stc.load;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What was received: how often each value came, and with which key. */
final class ReceiveLog {
    private final Map<String, Integer> times = new LinkedHashMap<>();
    private final Map<String, String> keys = new LinkedHashMap<>();
    private final List<String> failures = new ArrayList<>();
    private int received;

    synchronized void received(String key, String value, int redeliveryCount) {
        received++;
        times.merge(value, 1, Integer::sum);
        keys.put(value, key);
        if (redeliveryCount != 0) {
            failures.add(value + " came with redelivery count " + redeliveryCount);
        }
        notifyAll();
    }

    synchronized void failed(String failure) {
        failures.add(failure);
        notifyAll();
    }

    synchronized int count() {
        return received;
    }

    /** Waits until this many different values were received, or something failed. */
    synchronized boolean awaitDistinct(int count, Duration patience) throws InterruptedException {
        long end = System.nanoTime() + patience.toNanos();
        while (times.size() < count && failures.isEmpty()) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            wait(Math.max(1, left / 1_000_000));
        }
        return times.size() >= count;
    }

    synchronized List<String> moreThanOnce() {
        return times.entrySet().stream().filter(e -> e.getValue() > 1).map(Map.Entry::getKey).toList();
    }

    /** Values that were sent and did not come. */
    synchronized List<String> missing(Map<String, List<String>> sentByKey) {
        return sentByKey.values().stream().flatMap(List::stream).filter(value -> !times.containsKey(value)).toList();
    }

    /** Values that came and were never sent, or came with another key than they were sent with. */
    synchronized List<String> strangers(Map<String, List<String>> sentByKey) {
        Set<String> strange = new LinkedHashSet<>(times.keySet());
        sentByKey.forEach((key, values) -> values.forEach(value -> {
            if (key.equals(keys.get(value))) {
                strange.remove(value);
            }
        }));
        return List.copyOf(strange);
    }

    synchronized List<String> failures() {
        return List.copyOf(failures);
    }
}
