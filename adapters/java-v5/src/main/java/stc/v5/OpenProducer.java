package stc.v5;

import org.apache.pulsar.client.api.v5.Producer;

/** A producer, and the schema of the values that it sends. */
record OpenProducer<T>(Producer<T> producer, Writing<T> schema) {
}
