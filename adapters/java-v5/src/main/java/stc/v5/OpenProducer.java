package stc.v5;

import org.apache.pulsar.client.api.v5.Producer;

/** A producer, and the kind of values that it sends. */
record OpenProducer<T>(Producer<T> producer, Kind<T> kind) {
}
