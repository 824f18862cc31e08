package stc.load;

import org.apache.pulsar.client.api.v5.PulsarClient;

/** Something to do with the client, whose checks end up in the summary. */
interface Scenario {
    void run(PulsarClient client, Admin admin, Options options, Summary summary) throws Exception;
}
