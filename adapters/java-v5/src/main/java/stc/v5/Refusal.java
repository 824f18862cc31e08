package stc.v5;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Why a request has no result, as the error of its answer. */
abstract class Refusal extends Exception {
    private static final long serialVersionUID = 1L;

    Refusal(String message, Throwable cause) {
        super(message, cause);
    }

    abstract int code();

    /** What belongs to the code; {@code null} when nothing does. */
    abstract ObjectNode data();

    /** The SDK has no such thing. */
    static final class Unsupported extends Refusal {
        private static final long serialVersionUID = 1L;

        Unsupported(String what) {
            super(what, null);
        }

        @Override
        int code() {
            return -32001;
        }

        @Override
        ObjectNode data() {
            return JsonNodeFactory.instance.objectNode().put("capability", getMessage());
        }
    }

    /** A request that this program does not understand. */
    static final class Invalid extends Refusal {
        private static final long serialVersionUID = 1L;

        Invalid(String what) {
            super(what, null);
        }

        @Override
        int code() {
            return -32602;
        }

        @Override
        ObjectNode data() {
            return null;
        }
    }

    /** The SDK failed, and this is how the application sees it. */
    static final class Failed extends Refusal {
        private static final long serialVersionUID = 1L;

        private final String category;
        private final Signalled how;

        Failed(Throwable failure, Signalled how) {
            super(Categories.message(failure), failure);
            this.category = Categories.of(failure);
            this.how = how;
        }

        @Override
        int code() {
            return -32000;
        }

        @Override
        ObjectNode data() {
            return JsonNodeFactory.instance.objectNode()
                    .put("category", category)
                    .put("message", getMessage())
                    .put("how", how.word);
        }
    }

    /** How a failure reaches the application. */
    enum Signalled {
        /** Thrown by a call that gives a future. */
        SYNCHRONOUSLY("synchronously"),
        /** By the future that the call gave. */
        BY_FUTURE("byFuture"),
        /** Thrown by a call that waits, as it has to. */
        BY_BLOCKING_CALL("byBlockingCall");

        private final String word;

        Signalled(String word) {
            this.word = word;
        }
    }
}
