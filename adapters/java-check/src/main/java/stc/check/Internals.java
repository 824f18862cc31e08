package stc.check;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.pulsar.broker.resources.ScalableTopicResources;
import org.apache.pulsar.broker.service.Consumer;
import org.apache.pulsar.broker.service.TransportCnx;
import org.apache.pulsar.broker.service.scalable.ConsumerAssignment;
import org.apache.pulsar.broker.service.scalable.ConsumerSession;
import org.apache.pulsar.broker.service.scalable.SegmentLayout;
import org.apache.pulsar.broker.service.scalable.SubscriptionCoordinator;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.common.api.proto.KeySharedMeta;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.HashRange;
import org.apache.pulsar.common.scalable.SegmentInfo;

/** What is not public in Pulsar's classes: the client's router, the broker's bucket arithmetic, the controller's rule. */
final class Internals {
    private static final String ROUTER = "org.apache.pulsar.client.impl.v5.SegmentRouter";
    private static final String DISPATCHER =
            "org.apache.pulsar.broker.service.persistent.PersistentEntryBucketDispatcherMultipleConsumers";
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

    /** The ranges that a SUBSCRIBE declares; throws when they are no boundary list. */
    @SuppressWarnings("unchecked")
    static List<Range> validateBucketBoundaries(KeySharedMeta meta) {
        try {
            Method m = Class.forName(DISPATCHER).getDeclaredMethod("validateBucketBoundaries", KeySharedMeta.class);
            m.setAccessible(true);
            return (List<Range>) m.invoke(null, meta);
        } catch (InvocationTargetException e) {
            throw new IllegalArgumentException(e.getCause());
        } catch (ReflectiveOperationException e) {
            throw rethrow(e);
        }
    }

    /** A broker's consumer that has nothing but its name, its id and a connection from a port of its own. */
    static Consumer consumer(String name, long id, int port) {
        InetSocketAddress address = InetSocketAddress.createUnresolved("localhost", port);
        Object connection = Proxy.newProxyInstance(TransportCnx.class.getClassLoader(),
                new Class<?>[] {TransportCnx.class}, (proxy, method, args) -> switch (method.getName()) {
                    case "clientAddress" -> address;
                    case "toString" -> address.toString();
                    default -> throw new AssertionError("nothing else is asked of a connection here: " + method);
                });
        try {
            Constructor<Consumer> make = Consumer.class.getDeclaredConstructor(String.class, int.class);
            make.setAccessible(true);
            Consumer consumer = make.newInstance(name, 0);
            set(consumer, "consumerName", name);
            set(consumer, "consumerId", id);
            set(consumer, "cnx", connection);
            return consumer;
        } catch (ReflectiveOperationException e) {
            throw rethrow(e);
        }
    }

    private static void set(Consumer consumer, String name, Object value) throws ReflectiveOperationException {
        Field field = Consumer.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(consumer, value);
    }

    /** What the controller assigns to each consumer. Only stream subscriptions wait for parents to be drained. */
    @SuppressWarnings("unchecked")
    static Map<String, ConsumerAssignment> assign(TopicName topic, SegmentLayout layout, boolean checkpointGroup,
            List<Long> drained, List<String> consumers) {
        try {
            Class<?> checker = Class.forName("org.apache.pulsar.broker.service.scalable.SegmentDrainChecker");
            Object never = Proxy.newProxyInstance(checker.getClassLoader(), new Class<?>[] {checker},
                    (proxy, method, args) -> {
                        throw new AssertionError("nothing is asked of a broker here");
                    });
            Constructor<SubscriptionCoordinator> make = SubscriptionCoordinator.class.getDeclaredConstructor(
                    String.class, TopicName.class, SegmentLayout.class, ScalableTopicResources.class,
                    ScheduledExecutorService.class, Duration.class, checker, Duration.class, Duration.class);
            SubscriptionCoordinator coordinator = make.newInstance("sub", topic, layout, null, null,
                    Duration.ofSeconds(60), checkpointGroup ? null : never, Duration.ofSeconds(2), Duration.ofMinutes(15));
            Field drainedIds = SubscriptionCoordinator.class.getDeclaredField("drainedSegmentIds");
            drainedIds.setAccessible(true);
            ((Set<Long>) drainedIds.get(coordinator)).addAll(drained);
            if (checkpointGroup) {
                Method mark = SubscriptionCoordinator.class.getDeclaredMethod("markCheckpointGroup");
                mark.setAccessible(true);
                mark.invoke(coordinator);
            }
            Field log = SubscriptionCoordinator.class.getDeclaredField("log");
            log.setAccessible(true);
            Constructor<?> newSession = ConsumerSession.class.getDeclaredConstructors()[0];
            List<ConsumerSession> sessions = new ArrayList<>();
            for (String name : consumers) {
                sessions.add((ConsumerSession) newSession.newInstance(name, 0L, null, Duration.ofSeconds(60), null,
                        (Runnable) () -> { }, log.get(coordinator)));
            }
            Method compute = SubscriptionCoordinator.class.getDeclaredMethod("computeAssignment", SegmentLayout.class,
                    Collection.class);
            compute.setAccessible(true);
            Map<String, ConsumerAssignment> assignments = new HashMap<>();
            ((Map<ConsumerSession, ConsumerAssignment>) compute.invoke(coordinator, layout, sessions))
                    .forEach((session, assignment) -> assignments.put(session.getConsumerName(), assignment));
            return assignments;
        } catch (ReflectiveOperationException e) {
            throw rethrow(e);
        }
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
