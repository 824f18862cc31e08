package stc.load;

import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** One keyed message there and back. */
final class Smoke implements Scenario {
    @Override
    public void run(PulsarClient client, Admin admin, Options options, Summary summary) throws Exception {
        admin.create(1);
        try (QueueConsumer<String> consumer = client.newQueueConsumer(Schema.string()).topic(admin.topic())
                        .subscriptionName("smoke")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST).subscribe();
                Producer<String> producer = client.newProducer(Schema.string()).topic(admin.topic()).create()) {
            producer.newMessage().key("key-0").value("hello").property("p", "1").send();
            Message<String> message = consumer.receive(options.patience());
            summary.check(message != null, "nothing was received");
            if (message != null) {
                summary.check(message.value().equals("hello"), "received the value " + message.value());
                summary.check(message.key().filter("key-0"::equals).isPresent(), "received the key " + message.key());
                summary.check("1".equals(message.properties().get("p")), "received " + message.properties());
                summary.check(message.redeliveryCount() == 0, "redelivery count " + message.redeliveryCount());
                consumer.acknowledge(message.id());
            }
        }
        summary.json().set("layout", admin.layout().json());
    }
}
