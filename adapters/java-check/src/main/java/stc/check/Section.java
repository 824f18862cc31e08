package stc.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** One array of the vectors file: the questions it asks, and Pulsar's answer to a question. */
interface Section {
    /** The name of the array in the file. */
    String name();

    /** The questions, in file order; the same for the same seed. */
    List<ObjectNode> questions(long seed);

    /** Reads the question's fields of an entry and returns the whole entry as Pulsar's classes answer it. */
    ObjectNode answer(JsonNode entry);
}
