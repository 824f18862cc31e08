package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.pulsar.common.api.proto.BaseCommand;

/** Frames: Pulsar's class reads the command and writes it again. */
final class FrameVectors {
    private FrameVectors() {
    }

    static void frames(JsonNode vector, VectorFiles.Found found) {
        byte[] frame = HexFormat.of().parseHex(vector.path("frame").asText());
        byte[] bytes = Arrays.copyOfRange(frame, 8, frame.length);
        BaseCommand command = new BaseCommand();
        command.parseFrom(Unpooled.wrappedBuffer(bytes), bytes.length);
        found.value("number", vector.path("number"), command.getType().getValue());
        found.value("command", vector.path("command"), command.getType().name());
        byte[] again = command.toByteArray();
        if (vector.has("unknown_fields")) {
            found.value("unknown_fields", vector.path("unknown_fields"), again.length < bytes.length);
        } else {
            found.value("frame", vector.path("frame"),
                    HexFormat.of().formatHex(frame, 0, 8) + HexFormat.of().formatHex(again));
        }
    }
}
