package stc.load;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** A layout as the admin REST shows it. */
record Layout(JsonNode json) {
    /** An active segment: its id and the inclusive range of the hash ring that it has. */
    record Segment(long id, int start, int end) {
    }

    long epoch() {
        return json.path("epoch").asLong();
    }

    /** The active segments in the order of their ranges, so that neighbours in the list are neighbours on the ring. */
    List<Segment> active() {
        List<Segment> active = new ArrayList<>();
        for (JsonNode segment : json.path("segments")) {
            if (segment.path("state").asText().equals("ACTIVE")) {
                JsonNode range = segment.path("hashRange");
                active.add(new Segment(segment.path("segmentId").asLong(), range.path("start").asInt(),
                        range.path("end").asInt()));
            }
        }
        active.sort(Comparator.comparingInt(Segment::start));
        return active;
    }
}
