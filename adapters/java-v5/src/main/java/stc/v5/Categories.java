package stc.v5;

import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.v5.PulsarClientException;

/** The SDK's exceptions by the names of the error model. */
final class Categories {
    /** By the names of the classes, as not every version of the SDK has all of them. */
    private static final Map<String, String> NAMES = Map.ofEntries(
            Map.entry("NotFoundException", "NotFound"),
            Map.entry("AuthenticationException", "Authentication"),
            Map.entry("GettingAuthenticationDataException", "Authentication"),
            Map.entry("UnsupportedAuthenticationException", "Authentication"),
            Map.entry("AuthorizationException", "Authorization"),
            Map.entry("TimeoutException", "Timeout"),
            Map.entry("AlreadyClosedException", "AlreadyClosed"),
            Map.entry("ProducerBusyException", "ProducerBusy"),
            Map.entry("ConsumerBusyException", "ConsumerBusy"),
            Map.entry("IncompatibleSchemaException", "IncompatibleSchema"),
            Map.entry("TopicTerminatedException", "TopicTerminated"),
            // The error model has one category for both.
            Map.entry("ConnectException", "NotConnected"),
            Map.entry("NotConnectedException", "NotConnected"),
            Map.entry("ProducerQueueIsFullException", "ProducerQueueFull"),
            Map.entry("MemoryBufferIsFullException", "MemoryBufferFull"),
            Map.entry("TransactionConflictException", "TransactionConflict"),
            Map.entry("CryptoException", "Crypto"),
            Map.entry("InvalidConfigurationException", "InvalidConfiguration"),
            Map.entry("InvalidServiceURLException", "InvalidServiceURL"));

    private Categories() {
    }

    /** The category; {@code Other} for what the SDK's users cannot tell from any other failure. */
    static String of(Throwable failure) {
        if (failure instanceof PulsarClientException) {
            return NAMES.getOrDefault(failure.getClass().getSimpleName(), "Other");
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
