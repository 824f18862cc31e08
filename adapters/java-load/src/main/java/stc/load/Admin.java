package stc.load;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** Pulsar's admin REST for one scalable topic of the namespace public/default. */
final class Admin {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10)).build();
    private final URI base;
    private final String topic;

    Admin(URI adminUrl, String localName) {
        base = URI.create(adminUrl.toString().replaceAll("/+$", "") + "/admin/v2/scalable/public/default/" + localName);
        topic = "topic://public/default/" + localName;
    }

    String topic() {
        return topic;
    }

    void create(int segments) throws IOException, InterruptedException {
        expect(204, "PUT", "?numInitialSegments=" + segments);
    }

    void split(long segment) throws IOException, InterruptedException {
        expect(204, "POST", "/split/" + segment);
    }

    void merge(long one, long other) throws IOException, InterruptedException {
        expect(204, "POST", "/merge/" + one + "/" + other);
    }

    void delete() throws IOException, InterruptedException {
        expect(204, "DELETE", "?force=true");
    }

    Layout layout() throws IOException, InterruptedException {
        return new Layout(MAPPER.readTree(expect(200, "GET", "")));
    }

    /** Messages that a subscription has not acknowledged, over all segments; -1 while the broker lists no such one. */
    long backlog(String subscription) throws IOException, InterruptedException {
        JsonNode stats = MAPPER.readTree(expect(200, "GET", "/stats"));
        return stats.path("subscriptions").path(subscription).path("msgBacklog").asLong(-1);
    }

    private String expect(int status, String method, String path) throws IOException, InterruptedException {
        URI uri = URI.create(base + path);
        HttpRequest request = HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(60))
                .method(method, HttpRequest.BodyPublishers.noBody()).build();
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != status) {
            throw new IOException(method + " " + uri + " answered " + response.statusCode() + ", not " + status + ": "
                    + response.body());
        }
        return response.body();
    }
}
