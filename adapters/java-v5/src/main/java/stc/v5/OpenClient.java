package stc.v5;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.v5.PulsarClient;

/**
 * A client object.
 *
 * @param client the SDK's
 * @param token what it shows to brokers that ask for credentials, when it was given one
 */
record OpenClient(PulsarClient client, AtomicReference<String> token) {
}
