package stc.v5;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import stc.v5.Refusal.Failed;
import stc.v5.Refusal.Signalled;

/** Calls of the SDK, with the way in which a failure came. */
final class Calls {
    private Calls() {
    }

    /** A call that gives a future, and what the future gives. */
    static <T> T future(Callable<CompletableFuture<T>> call) throws Refusal, InterruptedException {
        return outcome(started(call));
    }

    /** A call that gives a future: the future, or one that failed as the call itself did. */
    static <T> CompletableFuture<T> started(Callable<CompletableFuture<T>> call) throws Refusal {
        try {
            return call.call();
        } catch (Refusal e) {
            throw e;
        } catch (Exception e) {
            return CompletableFuture.failedFuture(new Failed(e, Signalled.SYNCHRONOUSLY));
        }
    }

    /** What came of a started call. May be asked for more than once. */
    static <T> T outcome(CompletableFuture<T> future) throws Refusal, InterruptedException {
        try {
            return future.get();
        } catch (ExecutionException e) {
            Throwable failure = Categories.unwrapped(e);
            throw failure instanceof Failed failed ? failed : new Failed(failure, Signalled.BY_FUTURE);
        }
    }

    /** A call that waits. */
    static <T> T blocking(Callable<T> call) throws Refusal {
        try {
            return call.call();
        } catch (Refusal e) {
            throw e;
        } catch (Exception e) {
            throw new Failed(e, Signalled.BY_BLOCKING_CALL);
        }
    }

    /** A call that waits and gives nothing. */
    static void run(Action call) throws Refusal {
        blocking(() -> {
            call.run();
            return null;
        });
    }

    /** A call of the SDK that gives nothing. */
    interface Action {
        void run() throws Exception;
    }
}
