package stc.check;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentInfo;

/** The classes of Pulsar that are not public: the client's router and the broker's bucket arithmetic. */
final class Internals {
    private static final String ROUTER = "org.apache.pulsar.client.impl.v5.SegmentRouter";
    private static final String BUCKETS = "org.apache.pulsar.broker.service.scalable.EntryBucketSplits";

    private Internals() {
    }

    /** Where the V5 client sends a key, given the active segments. */
    static long route(String key, List<SegmentInfo> active) {
        try {
            Class<?> routerClass = Class.forName(ROUTER);
            Constructor<?> newSegment = Class.forName(ROUTER + "$ActiveSegment").getDeclaredConstructor(
                    long.class, HashRange.class, String.class, String.class, List.class, List.class);
            Constructor<?> newRouter = routerClass.getDeclaredConstructor();
            Method route = routerClass.getDeclaredMethod("route", String.class, List.class);
            newSegment.setAccessible(true);
            newRouter.setAccessible(true);
            route.setAccessible(true);
            List<Object> segments = new ArrayList<>();
            for (SegmentInfo s : active) {
                segments.add(newSegment.newInstance(s.segmentId(), s.hashRange(), "segment-" + s.segmentId(),
                        s.legacyTopicName(), s.entryBucketSplits(), Collections.emptyList()));
            }
            return (Long) route.invoke(newRouter.newInstance(), key, segments);
        } catch (ReflectiveOperationException e) {
            throw rethrow(e);
        }
    }

    /** Interior boundaries that cut the ring into {@code count} buckets of equal width. */
    @SuppressWarnings("unchecked")
    static List<Integer> equalWidth(int count) {
        return (List<Integer>) buckets("equalWidth", new Class<?>[] {int.class}, count);
    }

    /** The bucket ranges that a segment with these interior boundaries has. */
    @SuppressWarnings("unchecked")
    static List<HashRange> bucketRanges(List<Integer> splits) {
        return (List<HashRange>) buckets("ranges", new Class<?>[] {List.class}, splits);
    }

    private static Object buckets(String method, Class<?>[] types, Object... args) {
        try {
            Method m = Class.forName(BUCKETS).getDeclaredMethod(method, types);
            m.setAccessible(true);
            return m.invoke(null, args);
        } catch (ReflectiveOperationException e) {
            throw rethrow(e);
        }
    }

    /** An exception of Pulsar's is an answer and passes through; anything else means that the class has changed. */
    private static RuntimeException rethrow(ReflectiveOperationException e) {
        if (e instanceof InvocationTargetException && e.getCause() instanceof RuntimeException refusal) {
            return refusal;
        }
        throw new AssertionError("this Pulsar version has no such internal class or method", e);
    }
}
