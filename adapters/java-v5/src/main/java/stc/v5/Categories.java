package stc.v5;

import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.v5.PulsarClientException;

/** The SDK's exceptions by the names of the error model. */
final class Categories {
    private static final Map<Class<?>, String> NAMES = Map.ofEntries(
            Map.entry(PulsarClientException.NotFoundException.class, "NotFound"),
            Map.entry(PulsarClientException.AuthenticationException.class, "Authentication"),
            Map.entry(PulsarClientException.GettingAuthenticationDataException.class, "Authentication"),
            Map.entry(PulsarClientException.UnsupportedAuthenticationException.class, "Authentication"),
            Map.entry(PulsarClientException.AuthorizationException.class, "Authorization"),
            Map.entry(PulsarClientException.TimeoutException.class, "Timeout"),
            Map.entry(PulsarClientException.AlreadyClosedException.class, "AlreadyClosed"),
            Map.entry(PulsarClientException.ProducerBusyException.class, "ProducerBusy"),
            Map.entry(PulsarClientException.ConsumerBusyException.class, "ConsumerBusy"),
            Map.entry(PulsarClientException.IncompatibleSchemaException.class, "IncompatibleSchema"),
            Map.entry(PulsarClientException.TopicTerminatedException.class, "TopicTerminated"),
            // The error model has one category for both.
            Map.entry(PulsarClientException.ConnectException.class, "NotConnected"),
            Map.entry(PulsarClientException.NotConnectedException.class, "NotConnected"),
            Map.entry(PulsarClientException.ProducerQueueIsFullException.class, "ProducerQueueFull"),
            Map.entry(PulsarClientException.MemoryBufferIsFullException.class, "MemoryBufferFull"),
            Map.entry(PulsarClientException.TransactionConflictException.class, "TransactionConflict"),
            Map.entry(PulsarClientException.CryptoException.class, "Crypto"),
            Map.entry(PulsarClientException.InvalidConfigurationException.class, "InvalidConfiguration"),
            Map.entry(PulsarClientException.InvalidServiceURLException.class, "InvalidServiceURL"));

    private Categories() {
    }

    /** The category; {@code Other} for what the SDK's users cannot tell from any other failure. */
    static String of(Throwable failure) {
        for (Class<?> type = failure.getClass(); type != null; type = type.getSuperclass()) {
            String name = NAMES.get(type);
            if (name != null) {
                return name;
            }
        }
        return "Other";
    }

    /** What failed, with the class where that is all that tells it apart. */
    static String message(Throwable failure) {
        String text = failure.getMessage() == null ? "" : failure.getMessage();
        return of(failure).equals("Other") ? failure.getClass().getName() + ": " + text : text;
    }

    /** The exception that a future was completed with. */
    static Throwable unwrapped(Throwable failure) {
        boolean wrapped = failure instanceof CompletionException || failure instanceof ExecutionException;
        return wrapped && failure.getCause() != null ? unwrapped(failure.getCause()) : failure;
    }
}
