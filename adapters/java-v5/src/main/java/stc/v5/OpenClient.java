package stc.v5;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.v5.PulsarClient;

/**
 * A client object.
 *
 * @param client the SDK's
 * @param token what it shows to brokers that ask for credentials, when it was given one
 * @param transactionTimeout the timeout of all its transactions, when it is to make some
 */
record OpenClient(PulsarClient client, AtomicReference<String> token, Optional<Duration> transactionTimeout) {
}
