package stc.v5;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** JSON-RPC 2.0, one message a line. Each request has a thread of its own and is answered when it is done. */
final class Server {
    private static final int METHOD_NOT_FOUND = -32601;
    private static final int INTERNAL = -32603;

    private final OutputStream output;
    private final Session session = new Session();

    Server(OutputStream output) {
        this.output = output;
    }

    /** Serves until the input ends. */
    void serve(InputStream input) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(input, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = Json.MAPPER.readTree(line);
            Thread.ofVirtual().name(request.path("method").asText()).start(() -> answer(request));
        }
    }

    private void answer(JsonNode request) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode().put("jsonrpc", "2.0");
        answer.set("id", request.path("id"));
        try {
            String method = request.path("method").asText();
            answer.set("result", session.call(method, Params.of(request.path("params"))));
        } catch (Session.NoMethod e) {
            answer.set("error", error(METHOD_NOT_FOUND, e.getMessage(), null));
        } catch (Refusal e) {
            answer.set("error", error(e.code(), e.getMessage(), e.data()));
        } catch (Exception | LinkageError e) {
            // Nothing that the SDK said: a fault of this program, or an object that a scenario never made.
            e.printStackTrace();
            answer.set("error", error(INTERNAL, e.toString(), null));
        }
        write(answer);
    }

    private static ObjectNode error(int code, String message, ObjectNode data) {
        ObjectNode error = JsonNodeFactory.instance.objectNode().put("code", code).put("message", message);
        if (data != null) {
            error.set("data", data);
        }
        return error;
    }

    private void write(ObjectNode answer) {
        try {
            byte[] line = (Json.MAPPER.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8);
            synchronized (output) {
                output.write(line);
                output.flush();
            }
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        } catch (IOException e) {
            // Nobody listens any more.
            Runtime.getRuntime().halt(0);
        }
    }
}
