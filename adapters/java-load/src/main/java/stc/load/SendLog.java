package stc.load;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What was sent, per key in the order in which the application sent it, and what became of it. */
final class SendLog {
    private final Map<String, List<String>> byKey = new LinkedHashMap<>();
    private final List<String> failures = new ArrayList<>();
    private int sent;
    private int settled;

    synchronized void sending(String key, String value) {
        byKey.computeIfAbsent(key, k -> new ArrayList<>()).add(value);
        sent++;
        notifyAll();
    }

    synchronized void settled(String value, Throwable failure) {
        settled++;
        if (failure != null) {
            failures.add("send of " + value + " failed: " + failure);
        }
        notifyAll();
    }

    synchronized int count() {
        return sent;
    }

    /** Sends that have no result yet. */
    synchronized int inFlight() {
        return sent - settled;
    }

    /** Waits until this many messages were sent in all; false when that takes longer than {@code patience}. */
    synchronized boolean awaitSent(int count, Duration patience) throws InterruptedException {
        long end = System.nanoTime() + patience.toNanos();
        while (sent < count) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            wait(Math.max(1, left / 1_000_000));
        }
        return true;
    }

    /** Waits until every send has its result. */
    synchronized boolean awaitSettled(Duration patience) throws InterruptedException {
        long end = System.nanoTime() + patience.toNanos();
        while (settled < sent) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            wait(Math.max(1, left / 1_000_000));
        }
        return true;
    }

    synchronized Map<String, List<String>> byKey() {
        Map<String, List<String>> copy = new LinkedHashMap<>();
        byKey.forEach((key, values) -> copy.put(key, List.copyOf(values)));
        return copy;
    }

    synchronized List<String> failures() {
        return List.copyOf(failures);
    }
}
