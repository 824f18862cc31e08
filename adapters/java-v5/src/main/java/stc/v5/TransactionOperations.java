package stc.v5;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Transaction;

/** Transactions, and acknowledgements within them. */
final class TransactionOperations {
    private TransactionOperations() {
    }

    static void add(Map<String, Session.Operation> operations) {
        operations.put("newTransaction", TransactionOperations::open);
        operations.put("transactionState", TransactionOperations::state);
        operations.put("commit", (scenario, params) -> {
            Transaction transaction = scenario.transactions.get(params);
            Calls.future(() -> transaction.async().commit());
            return Json.NULL;
        });
        operations.put("abort", (scenario, params) -> {
            Transaction transaction = scenario.transactions.get(params);
            Calls.future(() -> transaction.async().abort());
            return Json.NULL;
        });
        operations.put("acknowledgeInTransaction", acknowledging(OpenConsumer::acknowledge));
        operations.put("acknowledgeCumulativeInTransaction", acknowledging(OpenConsumer::acknowledgeCumulative));
    }

    /** The SDK has one timeout for all transactions of a client. */
    private static JsonNode open(Scenario scenario, Params params) throws Refusal, InterruptedException {
        OpenClient open = scenario.clients.get(params);
        Optional<Duration> timeout = params.millis("timeoutMs");
        if (!timeout.equals(open.transactionTimeout())) {
            throw new Refusal.Unsupported("a timeout of a transaction, other than that of its client");
        }
        return Json.number(scenario.transactions.add(Calls.future(() -> open.client().newTransactionAsync())));
    }

    private static JsonNode state(Scenario scenario, Params params) throws Refusal {
        Transaction transaction = scenario.transactions.get(params);
        return JsonNodeFactory.instance.textNode(switch (Calls.blocking(transaction::state)) {
            case OPEN -> "open";
            case COMMITTING -> "committing";
            case ABORTING -> "aborting";
            case COMMITTED -> "committed";
            case ABORTED -> "aborted";
            case ERROR -> "error";
            case TIMED_OUT -> "timedOut";
        });
    }

    /** An acknowledgement of one of the kinds. */
    private interface Acknowledgement {
        void send(OpenConsumer<?> consumer, MessageId id, Transaction transaction) throws Refusal;
    }

    private static Session.Operation acknowledging(Acknowledgement acknowledgement) {
        return (scenario, params) -> {
            OpenConsumer<?> consumer = scenario.consumers.get(params);
            MessageId id = consumer.received.id(params.number("handle"));
            acknowledgement.send(consumer, id, scenario.transactions.get(params));
            return Json.NULL;
        };
    }
}
