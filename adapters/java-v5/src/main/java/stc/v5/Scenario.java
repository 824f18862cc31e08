package stc.v5;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Transaction;

/** What one scenario made, by the numbers that the suite knows it by. */
final class Scenario {
    /** How long a client may take to close in the end, before it is torn down. */
    private static final long TO_CLOSE_SECONDS = 5;

    private final AtomicLong last = new AtomicLong();
    final Handles<OpenClient> clients = new Handles<>("client");
    final Handles<OpenProducer<?>> producers = new Handles<>("producer");
    final Handles<OpenConsumer<?>> consumers = new Handles<>("consumer");
    final Handles<Transaction> transactions = new Handles<>("transaction");
    final Handles<CompletableFuture<MessageId>> tickets = new Handles<>("ticket");

    /** Objects of one kind. */
    final class Handles<T> {
        private final ConcurrentHashMap<Long, T> objects = new ConcurrentHashMap<>();
        private final String what;

        Handles(String what) {
            this.what = what;
        }

        long add(T object) {
            long handle = last.incrementAndGet();
            objects.put(handle, object);
            return handle;
        }

        /** The object that the field of this kind's name stands for. */
        T get(Params params) throws Refusal.Invalid {
            long handle = params.number(what);
            T object = objects.get(handle);
            if (object == null) {
                throw new Refusal.Invalid("there is no " + what + " " + handle);
            }
            return object;
        }
    }

    /**
     * Closes whatever is still open. That clients are closed is not waited for: their threads end two seconds after their
     * connections, and the next scenario uses others. One that cannot be closed is torn down.
     */
    void close() throws InterruptedException {
        await(consumers.objects.values(), OpenConsumer::closeAsync);
        List<OpenClient> open = List.copyOf(clients.objects.values());
        Thread.startVirtualThread(() -> {
            try {
                if (await(open, one -> one.client().closeAsync())) {
                    return;
                }
            } catch (InterruptedException e) {
                // Nobody interrupts it; if somebody does, it is over.
            }
            open.forEach(one -> one.client().shutdown());
        });
    }

    /** Closes objects; whether all of them were done in time. */
    private static <T> boolean await(Collection<T> open, Function<T, CompletableFuture<Void>> close)
            throws InterruptedException {
        List<CompletableFuture<Void>> closing = open.stream().map(object -> {
            try {
                return close.apply(object);
            } catch (RuntimeException e) {
                // The scenario closed it itself, or its client.
                return CompletableFuture.<Void>failedFuture(e);
            }
        }).toList();
        try {
            CompletableFuture.allOf(closing.toArray(CompletableFuture[]::new)).get(TO_CLOSE_SECONDS, TimeUnit.SECONDS);
            return true;
        } catch (ExecutionException e) {
            return true;
        } catch (TimeoutException e) {
            return false;
        }
    }
}
