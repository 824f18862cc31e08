package stc.v5;

import org.apache.pulsar.client.api.v5.PulsarClientBuilder;
import org.apache.pulsar.client.api.v5.config.TlsPolicy;

/** What is trusted for TLS, as 5.0.0-M1 of the client wants to be told. */
final class Trust {
    private Trust() {
    }

    /** Trusts the certificates of a PEM file. */
    static void set(PulsarClientBuilder builder, String file) {
        builder.tlsPolicy(TlsPolicy.builder().trustCertsFilePath(file).build());
    }
}
