//! Behaviours that a test can break on purpose: the suite is tested by clients that do one thing wrong (cargo feature
//! `deviants`). Without the feature nobody can set one, and [`Deviance::is`] is the constant `false`.
//!
//! Each deviation is one check at the place of the behaviour. [`Deviant::all`] says what each does and which
//! requirements it breaks (ids of `features/requirements.yaml`).

// Public with the feature only; without it the type is there so that the checks read the same.
#![cfg_attr(not(feature = "deviants"), allow(unreachable_pub, dead_code))]

use super::error::{Category, Error};

/// What a deviant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviantInfo {
    /// The deviant.
    pub deviant: Deviant,
    /// Its name in kebab-case.
    pub name: &'static str,
    /// The requirements that it breaks.
    pub requirements: &'static [&'static str],
    /// What it does instead.
    pub what: &'static str,
}

macro_rules! deviants {
    ($($variant:ident $name:literal [$($requirement:literal),*] $what:literal;)*) => {
        /// One behaviour that is broken on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Deviant {
            $(#[doc = $what] $variant,)*
        }

        const ALL: &[DeviantInfo] = &[
            $(DeviantInfo {
                deviant: Deviant::$variant,
                name: $name,
                requirements: &[$($requirement),*],
                what: $what,
            },)*
        ];
    };
}

deviants! {
    // ---- C1: resolving and following the layout
    ApplyStaleEpoch "apply-stale-epoch" ["IMPL-1.4", "WIRE-2.2", "WIRE-11.1"]
        "Applies every pushed layout, older ones too.";
    IgnoreLayoutUpdates "ignore-layout-updates" ["IMPL-1.3", "IMPL-1.5", "IMPL-4.5", "WIRE-4.6"]
        "Keeps the first layout for ever.";
    NoRewatch "no-rewatch" ["WIRE-4.10", "WIRE-11.6"]
        "Does not open the layout watch again after a lost connection.";
    ResumeBeforeLayout "resume-before-layout" ["WIRE-4.11"]
        "Attaches segment producers again after a lost connection before the new watch has brought a layout.";
    IgnoreResolvedName "ignore-resolved-name" ["WIRE-4.5", "DATA-1.2"]
        "Goes on with the name that the application gave instead of the one the broker resolved.";
    OneSessionId "one-session-id" ["WIRE-4.2"]
        "Uses one session id for all layout watches.";
    NoWatchClose "no-watch-close" ["WIRE-4.3", "API-3.3.4"]
        "Leaves the layout watch open on close.";
    IgnoreWatchError "ignore-watch-error" ["WIRE-4.9", "ERR-4.1"]
        "Goes on as if an error in the first update had not been there, and waits.";
    DecimalDescriptor "decimal-descriptor" ["WIRE-3.1"]
        "Writes segment descriptors in decimal.";
    IgnoreSegmentBroker "ignore-segment-broker" ["WIRE-5.8", "IMPL-1.6"]
        "Attaches every segment at the broker of the service URL.";
    IgnoreMovedSegment "ignore-moved-segment" ["IMPL-1.6"]
        "Stays attached where it is when a push names another broker for a segment.";
    ClosesWatch "closes-watch" ["IMPL-1.1", "IMPL-1.2", "IMPL-1.5", "IMPL-4.5"]
        "Closes the layout watch once it has brought the first layout.";
    LayoutChangeShows "layout-change-shows" ["IMPL-1.7", "IMPL-4.1", "IMPL-4.5"]
        "Fails the first send after a layout change.";
    AttachBeforeResolve "attach-before-resolve" ["API-7.4"]
        "Opens a producer on a guessed segment before the topic is resolved.";
    CreateNotReady "create-not-ready" ["API-3.1.10"]
        "Completes the create with a producer whose first send fails.";
    RefusesCanonicalName "refuses-canonical-name" ["DATA-1.1"]
        "Refuses topic:// names for checkpoint consumers.";
    StayWithDeadBroker "stay-with-dead-broker" ["API-2.8"]
        "Attaches a segment again only at the broker where it was before.";
    ReportSegmentTopic "report-segment-topic" ["DATA-1.3", "DATA-3.10"]
        "Reports the segment's name as the topic of a message.";

    // ---- C2: routing
    RouteLowHalf "route-low-half" ["IMPL-2.1"]
        "Routes keys on the low half of the hash.";
    RouteMaskedHash "route-masked-hash" ["IMPL-2.1"]
        "Masks the sign bit off the hash before routing on its high half.";
    RouteExclusiveEnd "route-exclusive-end" ["IMPL-2.1", "WIRE-2.5"]
        "Takes the last hash of a range for the next segment's.";
    KeylessFirstSegment "keyless-first-segment" ["IMPL-2.6"]
        "Sends every message without a key to the first active segment.";
    EmptyKeyIsKeyless "empty-key-is-keyless" ["IMPL-2.1", "DATA-3.4"]
        "Treats the empty key as no key.";
    LegacyUnmasked "legacy-unmasked" ["IMPL-2.7"]
        "Routes over legacy segments by the unmasked hash.";
    LegacyOnRing "legacy-on-ring" ["IMPL-2.7"]
        "Routes over legacy segments by their ranges.";
    RouteGapToFirst "route-gap-to-first" ["IMPL-2.2"]
        "Sends a message whose hash no active segment covers to the first one.";
    ProducerPerSend "producer-per-send" ["IMPL-2.8"]
        "Opens a new segment producer for every entry.";
    EagerProducers "eager-producers" ["IMPL-2.9", "WIRE-5.6"]
        "Opens all segment producers at create, under shared access too.";
    SealedProducer "sealed-producer" ["WIRE-2.3"]
        "Opens producers on sealed segments as well.";
    PlainProducerName "plain-producer-name" ["WIRE-5.7"]
        "Names every segment producer as the application named the producer.";

    // ---- C3: order
    ReorderOnSplit "reorder-on-split" ["API-3.2.12", "IMPL-3.2", "KS-5.3"]
        "Moves the pending messages of a sealed segment to the successors in reverse.";
    AsyncSendsOvertake "async-sends-overtake" ["API-3.2.14", "IMPL-3.3"]
        "Lets a later send in first while a segment producer is being opened.";
    SwapPairs "swap-pairs" ["API-3.2.11", "IMPL-3.1"]
        "Swaps neighbours that wait in one segment's queue.";

    // ---- C4: segment gone
    NoSegmentGoneRetry "no-segment-gone-retry" ["IMPL-4.1", "IMPL-4.7", "IMPL-4.8"]
        "Fails the pending sends of a segment that is gone.";
    SurfaceTerminated "surface-terminated" ["IMPL-4.1", "IMPL-4.8"]
        "Fails a send that the broker answered with TopicTerminatedError.";
    RetryWithoutWaiting "retry-without-waiting" ["IMPL-4.4"]
        "Uses up all attempts on the gone segment at once.";
    RetryForEver "retry-for-ever" ["IMPL-4.6"]
        "Never gives a send up whose segment stays gone.";
    KeepStaleProducer "keep-stale-producer" ["IMPL-4.3", "WIRE-5.9"]
        "Keeps the segment producer of a sealed segment open.";
    DropOnSplit "drop-on-split" ["IMPL-4.5", "API-3.2.1"]
        "Reports the pending sends of a sealed segment as published and forgets them.";

    // ---- C8: queue consumer
    SubscribeActiveOnly "subscribe-active-only" ["IMPL-5.3", "WIRE-6.1.3"]
        "Subscribes to active segments only.";
    NoNewSegments "no-new-segments" ["IMPL-5.7", "WIRE-6.1.7"]
        "Does not subscribe to segments that a later layout adds.";
    KeepGoneSegments "keep-gone-segments" ["IMPL-5.8", "WIRE-6.1.8"]
        "Keeps subscriptions of segments that left the layout.";
    AckCumulative "ack-cumulative" ["API-4.2.4", "WIRE-6.1.5"]
        "Acknowledges cumulatively.";
    AckWrongSegment "ack-wrong-segment" ["IMPL-5.5", "WIRE-6.1.6"]
        "Sends acknowledgements to the consumer of the first segment.";
    AckWholeBatch "ack-whole-batch" ["API-4.2.4"]
        "Acknowledges a whole batch with its first message.";
    AckNothing "ack-nothing" ["API-4.2.6", "IMPL-5.5"]
        "Drops acknowledgements.";
    NackIgnored "nack-ignored" ["API-4.2.5", "IMPL-5.6"]
        "Drops negative acknowledgements.";
    NackAsAck "nack-as-ack" ["API-4.2.5", "IMPL-5.6"]
        "Acknowledges what the application acknowledged negatively.";
    NackWrongSegment "nack-wrong-segment" ["IMPL-5.6"]
        "Asks the consumer of the first segment for redelivery.";
    NackEverything "nack-everything" ["API-4.2.5"]
        "Has everything unacknowledged delivered again after one negative acknowledgement.";
    ExclusiveSubscription "exclusive-subscription" ["IMPL-5.2", "WIRE-6.1.2", "API-4.2.1"]
        "Subscribes Exclusive.";
    SubscribeFailover "failover-subscription" ["IMPL-5.2", "API-4.2.1"]
        "Subscribes Failover.";
    NoCheckpointConsumer "no-checkpoint-consumer" ["API-4.1"]
        "Has no checkpoint consumer.";
    BrokenAfterReceive "broken-after-receive" ["ERR-1.6"]
        "Closes a queue consumer that gave a message which cannot be decoded.";
    ReceiveManyIgnoresMax "receive-many-ignores-max" ["API-4.5"]
        "Receives one message more than it was asked for.";
    QueueDeclaresKeys "queue-declares-keys" ["API-4.2.3"]
        "Subscribes with key ranges.";
    QueueRegisters "queue-registers" ["WIRE-6.1.1"]
        "Registers with the topic's controller.";
    ReceiveDoesNotWait "receive-does-not-wait" ["API-4.3"]
        "Fails a receive without a limit when no message is there.";
    NoPermits "no-permits" ["IMPL-5.1", "API-4.3"]
        "Grants permits once and never again.";
    ReceiveTimeoutIsError "receive-timeout-is-error" ["API-4.4"]
        "Fails a receive whose time is over.";

    // ---- C7: stream consumer
    LookupBeforeRegister "lookup-before-register" ["IMPL-8.2"]
        "Looks the topic up the classic way before it registers.";
    OneConsumerId "one-consumer-id" ["WIRE-6.2.5"]
        "Registers all its consumers under one consumer id.";
    AnyAnswerWillDo "any-answer-will-do" ["WIRE-6.2.6"]
        "Takes the first answer for that of the registration that was sent first, whatever its request id.";
    OddSegmentsUnread "odd-segments-unread" ["IMPL-5.12"]
        "Keeps the messages of segments with odd ids back from the receive queue.";
    SubscriptionByPosition "subscription-by-position" ["API-4.1.3"]
        "Keeps a subscription of its own for each initial position.";
    StayWithOldController "stay-with-old-controller" ["IMPL-8.1", "IMPL-8.13"]
        "Registers where the controller was first, whatever later layouts say.";
    NoReregistration "no-reregistration" ["IMPL-8.13", "IMPL-8.15"]
        "Does not register again after a lost or refused registration.";
    NoLookupOnLoss "no-lookup-on-loss" ["IMPL-8.13", "WIRE-6.2.18"]
        "Registers again without looking the topic up anew.";
    ApplyStaleAssignment "stale-assignment-applied" ["IMPL-8.9", "WIRE-6.2.16"]
        "Applies assignments of older layouts.";
    IgnoreEqualAssignment "equal-assignment-ignored" ["IMPL-8.9"]
        "Applies an assignment only when its layout is newer.";
    RegistersAtServiceUrl "registers-at-service-url" ["IMPL-8.1", "IMPL-8.2", "WIRE-6.2.3"]
        "Registers at the service URL, whatever broker the layout names.";
    NewNameOnReconnect "new-name-on-reconnect" ["IMPL-8.13", "WIRE-6.2.18"]
        "Registers under a new name after a lost connection.";
    IgnoreAssignmentUpdates "ignore-assignment-updates" ["IMPL-8.7", "API-4.1.10", "API-4.3.12"]
        "Keeps the first assignment for ever.";
    KeepDroppedSegments "keep-dropped-segments" ["IMPL-8.5", "IMPL-8.7", "WIRE-6.2.10"]
        "Stays attached to segments that left the assignment.";
    SkipAssignedSegment "skip-assigned-segment" ["IMPL-8.5", "IMPL-5.9", "WIRE-6.2.7"]
        "Leaves the last of several assigned segments alone.";
    AttachUnassigned "attach-unassigned" ["API-4.1.11", "IMPL-8.5", "WIRE-6.2.7"]
        "Attaches to every segment of the layout, assigned or not.";
    Resubscribes "resubscribes-unchanged" ["IMPL-8.10", "KS-4.16"]
        "Subscribes anew to every segment on each assignment.";
    NoUnsubscribeOnClose "no-unsubscribe-on-close" ["IMPL-8.16", "WIRE-6.2.21"]
        "Closes without telling the controller.";
    FailCloseOnUnsubscribe "fail-close-on-unsubscribe" ["IMPL-8.17"]
        "Fails the close when the controller refuses to let go.";
    AcksOnClose "acks-on-close" ["IMPL-6.8"]
        "Acknowledges everything delivered when it closes.";
    AckOnlyOwnSegment "ack-only-own-segment" ["IMPL-6.1", "API-4.1.6"]
        "Acknowledges the segment of the message only.";
    PositionVectorAtReceive "position-vector-at-receive" ["IMPL-6.2", "IMPL-6.3"]
        "Acknowledges up to what is delivered by the time of the acknowledgement.";
    AckBeforePosition "ack-before-position" ["IMPL-6.3", "API-4.1.6"]
        "Acknowledges up to the message, without the message itself.";
    IgnoreAcks "ignore-stream-acks" ["IMPL-6.1", "API-4.1.8"]
        "Drops cumulative acknowledgements.";
    ResumeAtLatest "resume-at-latest" ["API-4.1.9", "API-4.1.3"]
        "Starts a new subscription at the next message, whatever is configured.";
    ConsumerBusySurfaces "consumer-busy-surfaces" ["API-4.1.10", "IMPL-8.5"]
        "Fails a subscribe at once whose segment another consumer still drains.";
    NeverRegisters "never-registers" ["IMPL-8.4", "API-4.1.10"]
        "Reads every segment of the layout without registering.";
    NonDurableStream "non-durable-stream" ["API-4.1.8"]
        "Subscribes without a durable position.";
    InventsStreamTopic "invents-stream-topic" ["API-4.1.1"]
        "Makes a topic name up for a stream consumer that is given none.";
    InventsSubscription "invents-subscription" ["API-4.1.2"]
        "Makes a subscription name up when none is given.";
    DropStreamOptions "drop-stream-options" ["API-4.1.4"]
        "Leaves the subscription's properties, read-compacted and the replicated state out of SUBSCRIBE.";
    ReorderStream "reorder-stream" ["API-4.1.5"]
        "Swaps the last two messages of each batch.";

    // ---- KS-4, KS-9: shared segments
    NoDrainBeforeFlip "no-drain-before-flip" ["KS-4.13", "WIRE-6.2.15", "KS-9.2"]
        "Closes a segment's consumer at once when the mode changes.";
    DropIgnoresDrain "drop-ignores-drain" ["IMPL-8.12", "WIRE-6.2.15"]
        "Closes a segment's consumer at once when the segment leaves the assignment.";
    DeliverWhileDraining "deliver-while-draining" ["IMPL-8.11", "KS-4.12"]
        "Goes on delivering from a segment that is being drained.";
    AcksToDrain "acks-to-drain" ["KS-4.15", "IMPL-6.8"]
        "Acknowledges for the application to get a drain done.";
    NeverFlips "never-flips" ["IMPL-8.8", "KS-4.1"]
        "Keeps a segment's mode when the assignment changes it.";
    AlwaysExclusive "always-exclusive" ["KS-4.3", "KS-4.1", "WIRE-6.2.12"]
        "Subscribes Exclusive to shared segments.";
    AlwaysShared "always-shared" ["KS-4.2", "WIRE-6.2.11"]
        "Subscribes Key_Shared to segments that it owns alone.";
    AutoSplitKeyShared "auto-split-key-shared" ["KS-4.3"]
        "Subscribes to shared segments with the key ranges left to the broker.";
    WrongKeySharedRanges "wrong-key-shared-ranges" ["KS-4.3"]
        "Declares only the first of the boundaries that the assignment gives.";
    NoEntryBucketFlag "no-entry-bucket-flag" ["KS-4.3", "KS-7.4"]
        "Leaves out entryBucketDispatch.";
    CumulativeOnShared "cumulative-on-shared" ["KS-4.9", "IMPL-6.5"]
        "Acknowledges cumulatively on shared segments.";
    IndividualOnExclusive "individual-on-exclusive" ["KS-4.11"]
        "Acknowledges one by one where it owns the segment alone.";
    AckOnlyLastOnShared "ack-only-last-on-shared" ["IMPL-6.5", "KS-4.10"]
        "Acknowledges only the message itself on shared segments.";

    // ---- C9: checkpoint consumer
    CheckpointNotAtomic "checkpoint-not-atomic" ["API-4.3.7", "IMPL-7.1", "DATA-5.2"]
        "Captures what was delivered to the client instead of what the application received.";
    RestoreSkipsOne "restore-skips-one" ["API-4.3.9", "IMPL-7.3"]
        "Leaves out one message behind the restored position.";
    RestoreRepeatsOne "restore-repeats-one" ["API-4.3.9"]
        "Delivers the message at the restored position again.";
    RestoreIgnoresPosition "restore-ignores-position" ["API-4.3.6", "IMPL-7.3"]
        "Starts at the oldest message, whatever position is given.";
    RestoreForgetsSegment "restore-forgets-segment" ["API-4.3.9", "API-4.3.7"]
        "Writes checkpoints without the last of several segments.";
    ChildBeforeParent "child-before-parent" ["API-4.3.10", "WIRE-6.3.2"]
        "Reads segments without waiting for their parents.";
    CheckpointAcks "checkpoint-acks" ["IMPL-7.6"]
        "Acknowledges what the application received when a checkpoint is taken.";
    CheckpointDurable "checkpoint-durable" ["API-4.3.4", "API-4.3.13"]
        "Reads through durable subscriptions.";
    CheckpointAsksBroker "checkpoint-asks-broker" ["IMPL-7.4"]
        "Asks the broker for the last messages when a checkpoint is taken.";
    CheckpointRegisters "checkpoint-registers" ["WIRE-6.3.1"]
        "Registers with the controller without a group.";
    GroupReadsAll "group-reads-all" ["API-4.3.11", "IMPL-5.14"]
        "Reads every segment in a group too.";
    GroupAsStream "group-as-stream" ["WIRE-6.2.9", "API-4.3.13"]
        "Registers a checkpoint group as a stream subscription.";
    CheckpointActiveOnly "checkpoint-active-only" ["IMPL-5.13", "WIRE-6.3.2", "API-4.3.10"]
        "Reads the active segments only.";
    GroupGainsAtLatest "group-gains-at-latest" ["API-4.3.14"]
        "Starts at the next message in what a rebalance brings.";
    CheckpointStartsEarliest "checkpoint-starts-earliest" ["API-4.3.2"]
        "Starts at the oldest message when no position is given.";
    LatestCheckpointIsEarliest "latest-checkpoint-is-earliest" ["DATA-5.5"]
        "Takes the latest checkpoint for the earliest.";
    ReadersStartOver "readers-start-over" ["IMPL-5.15"]
        "Starts readers at the oldest message again after a lost connection.";
    RestoreAsksBroker "restore-asks-broker" ["IMPL-7.5"]
        "Asks for the last message of each segment that it starts to read.";
    CheckpointInventsTopic "checkpoint-invents-topic" ["API-4.3.1"]
        "Makes a topic name up for a checkpoint consumer that is given none.";
    DropCheckpointNames "drop-checkpoint-names" ["API-4.3.3"]
        "Makes the name of a checkpoint consumer up, whatever name it is given.";

    // ---- C10: identifiers and checkpoints as values
    TornCheckpointBytes "torn-checkpoint-bytes" ["API-4.3.8"]
        "Leaves the last byte of a checkpoint out.";
    IdBytesRefused "id-bytes-refused" ["DATA-4.4"]
        "Restores no message identifier from its bytes.";
    IdForgetsBatch "id-forgets-batch" ["DATA-4.3"]
        "Gives all messages of one batch the same identifier.";
    AllIdsEqual "all-ids-equal" ["DATA-4.2"]
        "Takes all identifiers for equal.";
    LatestIdIsEarliest "latest-id-is-earliest" ["DATA-4.6"]
        "Has one identifier for both ends of a topic.";

    // ---- C12, C13: absent topics, errors
    RetriesNotFound "retries-not-found" ["ERR-3.4"]
        "Looks an absent topic up again and again.";
    RetriesAuthorization "retries-authorization" ["ERR-3.5"]
        "Looks a topic up again that it has no permission for.";
    RetriesSchema "retries-schema" ["ERR-3.6"]
        "Subscribes again when its schema is incompatible.";
    ConfigurationAsGeneric "configuration-as-generic" ["ERR-2.15", "ERR-1.1"]
        "Reports what is wrong with the configuration in the category of everything else.";
    ServiceUrlAsGeneric "service-url-as-generic" ["ERR-2.16", "ERR-1.1"]
        "Reports a malformed service URL in the category of everything else.";
    NotConnectedAsGeneric "not-connected-as-generic" ["ERR-2.10", "ERR-1.1"]
        "Reports that no broker is reached in the category of everything else.";
    NotFoundAsGeneric "not-found-as-generic" ["ERR-2.18", "ERR-2.19", "API-3.1.12", "API-7.3"]
        "Reports an absent topic as an unknown failure.";
    NeverCreates "never-creates" ["API-7.2"]
        "Asks the broker not to create an absent topic.";
    InventsTopic "invents-topic" ["API-7.3", "API-7.4"]
        "Goes on with a made-up layout when the topic is absent.";
    FailsBesideAnother "fails-beside-another" ["API-2.1"]
        "Fails what needs a connection that another operation is just making.";
    ConnectionForEach "connection-for-each" ["IMPL-9.5"]
        "Makes a connection of its own for each operation that needs one.";
    DiesWithConnection "dies-with-connection" ["API-2.6", "API-2.7"]
        "Closes a producer whose connection is lost.";
    CloseDoesNothing "close-does-nothing" ["API-2.3", "API-2.5"]
        "Completes a close of the client at once and closes nothing.";
    AsyncFailureLost "async-failure-lost" ["ERR-1.2"]
        "Completes the future of an asynchronous send that failed as if it had succeeded.";
    ThrowsAtCall "throws-at-call" ["ERR-1.3"]
        "Throws failures of asynchronous sends from the call.";
    SurfaceReconnect "surface-reconnect" ["ERR-1.7", "API-2.7"]
        "Fails pending sends when the connection is lost.";
    NeverDoubts "never-doubts-layout" ["API-2.6"]
        "Goes on by its layout although the segments in it are not there any more.";
    StaysAtFirstBroker "stays-at-first-broker" ["API-2.8"]
        "Looks for a segment only where the first layout that named its broker had it.";
    GivesUpAttaching "gives-up-attaching" ["API-2.7"]
        "Does not attach a segment any more whose connection was lost while it was being attached.";
    BrokenAfterError "broken-after-error" ["API-2.10", "API-2.11", "ERR-1.5"]
        "Refuses every send after one that failed.";

    // ---- C15: feature gating
    RefuseUnknownFields "refuse-unknown-fields" ["STAB-4.1.1"]
        "Gives up a connection whose commands have fields that it does not know.";
    IgnoreFeatureFlags "ignore-feature-flags" ["COMPAT-3.2", "COMPAT-4.2", "STAB-4.4.1"]
        "Sends scalable-topic commands to brokers that do not advertise them.";
    HangWithoutSupport "hang-without-support" ["COMPAT-3.3"]
        "Waits for ever when the broker does not advertise scalable topics.";

    // ---- KS-3, KS-9: entry buckets
    BatchMixesBuckets "batch-mixes-buckets" ["KS-3.1"]
        "Batches messages of different buckets together.";
    EvenBuckets "even-buckets" ["KS-2.3", "KS-2.6"]
        "Takes the buckets for equally wide, whatever their boundaries.";
    BucketFromHighHalf "bucket-from-high-half" ["KS-2.1", "IMPL-2.4"]
        "Takes the bucket hash from the half that routes segments.";
    NoStamp "no-stamp" ["KS-3.2", "KS-3.4"]
        "Does not stamp entries.";
    NoStampOnSingle "no-stamp-on-single" ["KS-3.3", "KS-3.4"]
        "Stamps batches only.";
    NoStampOnDelayed "no-stamp-on-delayed" ["KS-3.4"]
        "Does not stamp delayed messages.";
    StampWholeRing "stamp-whole-ring" ["KS-3.5"]
        "Stamps every entry with the whole ring.";
    StampNominal "stamp-nominal" ["KS-3.5"]
        "Stamps the boundaries of the bucket instead of the hashes present.";
    BoundaryBelow "boundary-below" ["KS-2.3", "KS-2.6", "KS-3.1"]
        "Counts the hash at which a bucket starts to the bucket before.";
    StaleBuckets "stale-buckets" ["KS-5.2"]
        "Batches for a successor by the boundaries of the segment before it.";
    FullBatchSpills "full-batch-spills" ["KS-3.1"]
        "Puts messages of a bucket whose batch is full into the batch of another bucket.";
    KeylessWholeRing "keyless-whole-ring" ["KS-3.5"]
        "Stamps entries without keys with the whole ring.";
    KeylessCountsAsZero "keyless-counts-as-zero" ["KS-3.2", "KS-3.5"]
        "Takes the bucket hash of a message without a key for 0 where it shares an entry.";
    BatchWithoutObservation "batch-without-observation" ["KS-9.6", "COMPAT-3.6", "KS-3.7"]
        "Batches on scalable topics before any sign that the broker knows buckets.";
    NeedsBuckets "needs-buckets" ["COMPAT-3.7"]
        "Does not send where it should batch and no layout carries buckets.";

    // ---- dead letters
    DeadLettersIgnored "dead-letters-ignored" ["API-4.2.8", "ERR-5.3", "CONF-3.8"]
        "Delivers a message again and again, whatever the dead-letter policy says.";
    DeadLettersUnasked "dead-letters-unasked" ["API-4.2.5"]
        "Takes messages that came three times away from a consumer without a dead-letter policy.";
    DeadLetterEarly "dead-letter-early" ["API-4.2.8", "ERR-5.3", "CONF-3.8"]
        "Sends a message to the dead-letter topic one delivery too early.";
    DeadLetterDropped "dead-letter-dropped" ["API-4.2.8", "ERR-5.3", "CONF-3.8"]
        "Acknowledges a message that came too often, and sends it nowhere.";
    DeadLetterAckedFirst "dead-letter-acked-first" ["ERR-5.3", "CONF-3.8"]
        "Acknowledges a message before the dead-letter topic has it.";
    DeadLetterKept "dead-letter-kept" ["API-4.2.8", "CONF-3.8"]
        "Does not acknowledge a message that the dead-letter topic has.";
    DeadLetterGivenUp "dead-letter-given-up" ["ERR-5.3", "CONF-3.8"]
        "Does not try again when the dead-letter topic could not be written.";
    DeadLetterRaises "dead-letter-raises" ["ERR-5.3"]
        "Fails the receives of a consumer that has a message which came too often.";
    DeadLetterDeliveredToo "dead-letter-delivered-too" ["ERR-5.3", "CONF-3.8"]
        "Gives a message that came too often to the application as well.";
    DeadLetterWholeEntry "dead-letter-whole-entry" ["API-4.2.5"]
        "Sends all messages of a batch to the dead-letter topic with one of them.";
    DeadLetterOwnCount "dead-letter-own-count" ["ERR-5.3", "CONF-3.8"]
        "Counts redeliveries by itself instead of taking the broker's count.";
    DeadLettersOfActiveOnly "dead-letters-of-active-only" ["ERR-5.3", "CONF-3.8"]
        "Applies the dead-letter policy on active segments only.";
    DeadLetterBare "dead-letter-bare" ["ERR-5.3", "CONF-3.8"]
        "Sends the payload to the dead-letter topic, without key, properties and event time.";
    DeadLetterElsewhere "dead-letter-elsewhere" ["API-4.2.8", "ERR-5.3", "CONF-3.8"]
        "Sends dead letters to the default topic, whatever topic the policy names.";
    DeadLetterBackToTopic "dead-letter-back-to-topic" ["API-4.2.8", "ERR-5.3", "CONF-3.8"]
        "Sends dead letters to the topic itself when the policy names none.";
    DeadLetterWrongOrigin "dead-letter-wrong-origin" ["API-4.2.8"]
        "Names the segment as the topic that a dead letter is from.";

    // ---- transactions
    SendsOutsideTransaction "sends-outside-transaction" ["API-3.2.8", "API-6.1", "API-6.5"]
        "Publishes a transaction's messages as plain ones.";
    AcksOutsideTransaction "acks-outside-transaction" ["API-4.1.12", "API-4.2.7", "API-6.6"]
        "Makes a transaction's acknowledgements as plain ones.";
    AcksAtOnce "acks-at-once" ["API-6.2", "API-6.8"]
        "Makes a transaction's acknowledgements a second time, as plain ones.";
    CommitAborts "commit-aborts" ["API-6.7", "API-6.1"]
        "Aborts on commit.";
    AbortCommits "abort-commits" ["API-6.8", "API-6.2"]
        "Commits on abort.";
    CommitWaitsForNothing "commit-waits-for-nothing" ["API-6.1", "API-6.7"]
        "Commits while messages and acknowledgements of the transaction are on their way.";
    CommitsDespiteFailure "commits-despite-failure" ["API-6.1", "ERR-2.13"]
        "Commits although an operation of the transaction failed.";
    NoTransactionTimeout "no-transaction-timeout" ["API-6.3", "API-6.4"]
        "Opens transactions that never time out.";
    StateStaysOpen "state-stays-open" ["API-6.9"]
        "Reports every transaction as open.";
    EndsInAnyState "ends-in-any-state" ["API-6.10"]
        "Asks the coordinator to end a transaction that has ended, and reports success.";
    SkipsParts "skips-parts" ["WIRE-8.2.1"]
        "Does not tell the coordinator what a transaction writes to.";
    FirstPartOnly "first-part-only" ["WIRE-8.2.2", "API-6.7"]
        "Tells the coordinator the first segment only that a transaction writes to.";
    OwnEndCommands "own-end-commands" ["WIRE-8.1"]
        "Sends the commands with which brokers end what one of them has of a transaction.";
    LooksUpDespiteWatch "looks-up-despite-watch" ["WIRE-8.1.1"]
        "Looks coordinators up one by one although the broker offers the watch.";
    WatchesUnadvertised "watches-unadvertised" ["COMPAT-3.4", "COMPAT-3.5"]
        "Opens the coordinator watch although the broker does not advertise it.";
    KeepsFirstLeaders "keeps-first-leaders" ["WIRE-8.1.3", "WIRE-8.1.4"]
        "Keeps the leaders of the first snapshot.";
    MergesLeaders "merges-leaders" ["WIRE-8.1.3"]
        "Keeps the leader of a coordinator that is absent from the latest snapshot.";
    FailsDuringElection "fails-during-election" ["WIRE-8.1.6"]
        "Fails what is asked of a coordinator without a leader.";
    IgnoresCoordinatorError "ignores-coordinator-error" ["WIRE-11.5", "ERR-4.3"]
        "Tries again when the coordinator watch is refused.";
    CoordinatorsNotRewatched "coordinators-not-rewatched" ["WIRE-11.9"]
        "Does not open the coordinator watch again after a lost connection.";
    ConflictAsGeneric "conflict-as-generic" ["ERR-2.13"]
        "Reports conflicts of transactions in the category of everything else.";
    RetriesConflicts "retries-conflicts" ["ERR-3.14"]
        "Tries again what the coordinator refused for the state of the transaction.";
    DrainCountsOpenTransactions "drain-counts-open-transactions" ["IMPL-8.12", "KS-4.13"]
        "Counts an acknowledgement for a drain although its transaction is open.";

    // ---- namespaces
    FirstFilterOnly "first-filter-only" ["API-4.4.2", "WIRE-7.2"]
        "Asks for the first of several property filters.";
    InventsFilter "invents-filter" ["API-4.4.3", "WIRE-7.2"]
        "Makes a property filter up where none is set.";
    FirstTopicOnly "first-topic-only" ["API-4.4.3", "WIRE-7.9", "WIRE-7.10", "CONF-3.4"]
        "Consumes the first topic of a namespace only.";
    IgnoreAddedTopics "ignore-added-topics" ["API-4.4.4", "WIRE-7.12"]
        "Does not attach to topics that come.";
    IgnoreRemovedTopics "ignore-removed-topics" ["API-4.4.5"]
        "Stays attached to topics that leave.";
    IgnoreNamespaceError "ignore-namespace-error" ["API-4.4.7"]
        "Takes a namespace watch that is refused for one of an empty namespace.";
    AckOnlyOwnTopic "ack-only-own-topic" ["API-4.4.6", "IMPL-6.7", "WIRE-7.11"]
        "Acknowledges in the topic of the message only.";
    TopicsAtAcknowledgement "topics-at-acknowledgement" ["IMPL-6.6"]
        "Acknowledges in every topic what is delivered by the time of the acknowledgement.";
    AcksOnRemoval "acks-on-removal" ["IMPL-6.9", "IMPL-6.10"]
        "Acknowledges what a topic delivered when the topic leaves.";
    ForgetsReturningTopic "forgets-returning-topic" ["IMPL-6.10"]
        "Does not attach to a topic that was there before.";
    AckFailsWithoutTopic "ack-fails-without-topic" ["IMPL-6.11"]
        "Fails an acknowledgement that covers messages of a topic that left.";
    ListsNamespace "lists-namespace" ["WIRE-7.1"]
        "Asks for the list of classic topics instead of watching the namespace.";
    SnapshotAddsOnly "snapshot-adds-only" ["WIRE-7.5"]
        "Keeps topics that a later snapshot does not name.";
    DiffAddsFirst "diff-adds-first" ["WIRE-7.6"]
        "Applies what a diff adds before what it removes.";
    NoCurrentHash "no-current-hash" ["WIRE-7.7"]
        "Opens the namespace watch again without the hash of its set.";
    EmptySetHash "empty-set-hash" ["WIRE-7.7"]
        "Opens the namespace watch again with the hash of no topics.";
    AwaitsSnapshot "awaits-snapshot" ["WIRE-7.7", "WIRE-11.8"]
        "Lets all topics go when the namespace watch is lost, until a snapshot names them.";
    NamespaceNotRewatched "namespace-not-rewatched" ["WIRE-11.8"]
        "Does not open the namespace watch again after a lost connection.";
    TopicBeatsNamespace "topic-beats-namespace" ["API-4.1.1"]
        "Takes the topic when a topic and a namespace are given.";

    // ---- migration
    ProducesToParent "produces-to-parent" ["WIRE-3.2", "COMPAT-1.4"]
        "Attaches producers on legacy segments to the partitioned topic instead of its partition.";
    QueueFirstPartition "queue-first-partition" ["COMPAT-1.5"]
        "Subscribes queue consumers to the first legacy segment only.";
    ReadFirstPartition "read-first-partition" ["COMPAT-1.6"]
        "Reads the first legacy segment only.";
    ShortNameIsScalable "short-name-is-scalable" ["COMPAT-1.3"]
        "Takes a short name for a scalable topic in public/default.";
    RewatchesCanonicalName "rewatches-canonical-name" ["COMPAT-1.4"]
        "Looks a classic topic up again by its canonical name, which makes a scalable topic of that name.";
    CutOverFails "cut-over-fails" ["IMPL-4.2"]
        "Fails the pending sends of a legacy segment that is sealed.";
    IgnoresMigration "ignores-migration" ["IMPL-4.2"]
        "Takes the first layout of a migrated topic for an old one, since its epoch is that of the synthetic one.";
    PartitionsForEver "partitions-for-ever" ["IMPL-2.1"]
        "Goes on to route keys as over partitions when the topic was migrated.";

    // ---- client API
    ExclusiveAtFirstSend "exclusive-at-first-send" ["API-3.1.13"]
        "Creates producers under an exclusive access mode at once; that access is not to be had shows on sending.";
    ExclusiveFirstSegmentOnly "exclusive-first-segment-only" ["IMPL-2.10"]
        "Attaches to the first active segment only when a producer with exclusive access is created.";
    RetriesBusy "retries-busy" ["ERR-3.9"]
        "Tries again when another producer holds exclusive access.";
    SharedIsExclusive "shared-is-exclusive" ["API-3.1.14"]
        "Asks for exclusive access where others may publish too.";
    IgnoreAccessMode "ignore-access-mode" ["API-3.1.3", "API-3.1.15"]
        "Creates every producer as a shared one.";
    FenceNobody "fence-nobody" ["API-3.1.16"]
        "Asks for exclusive access where it should fence others off.";
    WaitForNobody "wait-for-nobody" ["API-3.1.17"]
        "Asks for exclusive access where it should wait for it.";
    IgnoreInitialSequenceId "ignore-initial-sequence-id" ["API-3.1.8"]
        "Begins at sequence id 0 whatever was configured.";
    DropProducerProperties "drop-producer-properties" ["API-3.1.9"]
        "Tells the broker no properties of the producer.";
    NoSchemaTold "no-schema-told" ["WIRE-10.3"]
        "Tells the brokers nothing of the schema.";
    RefusesPairs "refuses-pairs" ["DATA-6.3"]
        "Has no schema of pairs.";
    SchemaOnSomeSegments "schema-on-some-segments" ["DATA-6.2"]
        "Attaches segments with odd ids without the schema.";
    NoFreshCredentials "no-fresh-credentials" ["WIRE-10.2", "COMPAT-5.1"]
        "Does not answer when a broker asks for fresh credentials.";
    StaleCredentials "stale-credentials" ["WIRE-10.2", "COMPAT-5.1"]
        "Shows on every connection the credentials of the first one.";
    AuthenticationAsGeneric "authentication-as-generic" ["ERR-2.2"]
        "Reports refused credentials in the category of everything else.";
    AuthorizationAsGeneric "authorization-as-generic" ["ERR-2.3", "ERR-4.4", "ERR-1.1"]
        "Reports missing permissions in the category of everything else.";
    BusyAsGeneric "busy-as-generic" ["ERR-2.6", "ERR-2.7", "ERR-1.1"]
        "Reports access that others hold in the category of everything else.";
    SchemaAsGeneric "schema-as-generic" ["ERR-2.8", "DATA-6.5", "ERR-1.1"]
        "Reports incompatible schemas in the category of everything else.";
    MemoryAsGeneric "memory-as-generic" ["ERR-2.12"]
        "Reports a full memory in the category of everything else.";
    SendsWithoutMemory "sends-without-memory" ["ERR-3.13"]
        "Publishes a message all the same whose send failed for want of memory.";
    IgnoreTlsAddresses "ignore-tls-addresses" ["WIRE-10.2", "COMPAT-5.1"]
        "Connects to the addresses without TLS although the service URL asks for TLS.";
    QueueNeverWaits "queue-never-waits" ["ERR-2.11"]
        "Fails sends above the limit of the queue where they should wait.";
    IgnoreQueueLimit "ignore-queue-limit" ["API-3.1.5", "ERR-2.11"]
        "Takes sends above the limit of the queue.";
    SequenceNotMonotonic "sequence-not-monotonic" ["API-3.2.15"]
        "Numbers all messages 0.";
    RenumberResends "renumber-resends" ["API-3.2.15"]
        "Gives messages other sequence ids when they are sent again.";
    IgnoreSequenceId "ignore-sequence-id" ["API-3.2.5"]
        "Ignores the sequence id of a message.";
    WrongLastSequenceId "wrong-last-sequence-id" ["API-3.2.17"]
        "Exposes the last sequence id that was used, published or not.";
    DropProperties "drop-properties" ["API-3.2.3", "DATA-3.5"]
        "Publishes no properties.";
    DropEventTime "drop-event-time" ["API-3.2.4"]
        "Publishes no event time.";
    DropReplicateTo "drop-replicate-to" ["API-3.2.9"]
        "Publishes no replication clusters.";
    DropDelay "drop-delay" ["API-3.2.6", "API-3.2.7"]
        "Publishes delayed messages at once.";
    DropKey "drop-key" ["API-3.2.2"]
        "Routes by the key and does not publish it.";
    MangleValue "mangle-value" ["API-3.2.1"]
        "Publishes the value with its last byte changed.";
    // ---- encryption
    NotEncrypted "not-encrypted" ["API-3.1.7", "CONF-3.9"]
        "Publishes in the clear although keys are configured.";
    EncryptsBatches "encrypts-batches" ["KS-8.2"]
        "Encrypts whole batches.";
    NoStampOnEncrypted "no-stamp-on-encrypted" ["KS-8.3"]
        "Leaves the stamp off encrypted entries.";
    FirstRecipientOnly "first-recipient-only" ["API-3.1.7", "CONF-3.9"]
        "Encrypts for the first of several keys only.";
    ClearWhereKeyIsMissing "clear-where-key-is-missing" ["CONF-3.9", "ERR-2.14", "ERR-3.15"]
        "Publishes in the clear what it cannot encrypt although it is to fail.";
    FailsWhereClearIsAllowed "fails-where-clear-is-allowed" ["CONF-3.9"]
        "Fails what it cannot encrypt although it may publish in the clear.";
    CryptoAsGeneric "crypto-as-generic" ["ERR-2.14"]
        "Reports failures of encryption without their category.";
    SilentAboutSealed "silent-about-sealed" ["ERR-2.14", "ERR-3.15"]
        "Waits for redeliveries of what it cannot decrypt, and tells the application nothing.";
    DiscardsSealed "discards-sealed" ["CONF-3.9"]
        "Acknowledges what it fails to decrypt.";
    FailsForDiscard "fails-for-discard" ["CONF-3.9"]
        "Fails the receive where it is to discard what it cannot decrypt.";
    FailsForConsume "fails-for-consume" ["CONF-3.9"]
        "Fails the receive where it is to deliver what it cannot decrypt.";
    FirstWrappedKeyOnly "first-wrapped-key-only" ["CONF-3.9"]
        "Tries only the first of the keys that a message is encrypted with.";
    // ---- chunking, compression, batching
    NoCompression "no-compression" ["API-3.1.6"]
        "Publishes uncompressed whatever is configured.";
    CompressionUntold "compression-untold" ["CONF-3.10", "API-3.1.6"]
        "Compresses entries and does not say so.";
    BatchCountIgnored "batch-count-ignored" ["API-3.1.6"]
        "Ignores how many messages a batch may have.";
    BatchBytesIgnored "batch-bytes-ignored" ["API-3.1.6"]
        "Ignores how many bytes a batch may have.";
    BatchDelayIgnored "batch-delay-ignored" ["API-3.1.6"]
        "Closes batches at once whatever delay is configured.";
    NoChunks "no-chunks" ["API-3.1.6"]
        "Publishes large messages in one entry whatever is configured.";
    ChunksDelivered "chunks-delivered" ["CONF-3.10"]
        "Delivers every chunk as a message.";
    ChunksMixed "chunks-mixed" ["CONF-3.10"]
        "Joins chunks in the order of their arrival whichever message they are of.";
    ChunkTwice "chunk-twice" ["CONF-3.10"]
        "Takes a chunk that is stored twice for the next one.";
    ChunkGapJoined "chunk-gap-joined" ["CONF-3.10"]
        "Delivers a large message without the chunks that are missing.";
    AcksLastChunkOnly "acks-last-chunk-only" ["CONF-3.10"]
        "Acknowledges only the last chunk of a large message.";
    KeepsIncomplete "keeps-incomplete" ["CONF-3.10"]
        "Waits for missing chunks without an end.";
    WrongMessageId "wrong-message-id" ["API-3.2.10"]
        "Returns an identifier one entry too high from send.";
    IgnoreSendTimeout "ignore-send-timeout" ["API-3.1.4", "ERR-2.4"]
        "Waits for receipts without an end.";
    ResendAfterTimeout "resend-after-timeout" ["ERR-3.11"]
        "Sends a message again whose send has timed out.";
    CloseNotIdempotent "close-not-idempotent" ["API-3.3.5", "IMPL-10.5"]
        "Fails the second close.";
    CloseDropsPending "close-drops-pending" ["API-3.3.3", "IMPL-10.6"]
        "Fails pending sends on close.";
    CloseLeavesProducers "close-leaves-producers" ["API-3.3.4", "IMPL-10.4"]
        "Does not close the segment producers on the wire.";
    FlushReturnsEarly "flush-returns-early" ["API-3.3.1"]
        "Completes a flush at once.";
    SendAfterClose "send-after-close" ["API-2.5", "ERR-2.5"]
        "Accepts sends on a closed producer.";
    NoPong "no-pong" ["API-2.7"]
        "Does not answer PING.";
    ValueCut "value-cut" ["DATA-3.1", "DATA-6.1"]
        "Decodes the payload without its first byte.";
    NoPayload "no-payload" ["DATA-3.2"]
        "Gives no payload beside the value.";
    ReceivedIdOff "received-id-off" ["DATA-3.3"]
        "Gives a received message the identifier of its neighbour.";
    NoPublishTime "no-publish-time" ["DATA-3.6"]
        "Gives no publish time.";
    NoReplicatedFrom "no-replicated-from" ["DATA-3.13"]
        "Does not tell from which cluster a message was replicated.";
    RedeliveryCountZero "redelivery-count-zero" ["DATA-3.11", "ERR-5.2"]
        "Reports no redeliveries.";
    SizeOfCompressed "size-of-compressed" ["DATA-3.12"]
        "Reports the size of the payload as it was on the wire.";
    BatchSequenceId "batch-sequence-id" ["DATA-3.8"]
        "Reports the sequence id of the entry for every message in it.";
}

impl Deviant {
    /// All deviants, with what they break.
    pub fn all() -> &'static [DeviantInfo] {
        ALL
    }

    /// The deviant with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        ALL.iter().find(|info| info.name == name).map(|info| info.deviant)
    }
}

#[cfg(feature = "deviants")]
impl Deviance {
    /// The error as the deviation in force reports it.
    pub(crate) fn report(self, error: Error) -> Error {
        use Category as C;
        let blurred = match self.0 {
            Some(Deviant::AuthenticationAsGeneric) => &[C::Authentication][..],
            Some(Deviant::AuthorizationAsGeneric) => &[C::Authorization],
            Some(Deviant::BusyAsGeneric) => &[C::ProducerBusy, C::ConsumerBusy],
            Some(Deviant::SchemaAsGeneric) => &[C::IncompatibleSchema],
            Some(Deviant::ConfigurationAsGeneric) => &[C::InvalidConfiguration],
            Some(Deviant::ServiceUrlAsGeneric) => &[C::InvalidServiceUrl],
            Some(Deviant::NotConnectedAsGeneric) => &[C::NotConnected],
            Some(Deviant::MemoryAsGeneric) => &[C::MemoryBufferFull],
            Some(Deviant::CryptoAsGeneric) => &[C::Crypto],
            Some(Deviant::ConflictAsGeneric) => &[C::TransactionConflict],
            _ => &[],
        };
        if blurred.contains(&error.category()) { error.into_generic() } else { error }
    }
}

impl Deviance {
    /// Whether a refusal that is final is taken for one that passes.
    pub(crate) fn retries_refusal(self, error: &Error) -> bool {
        match error.category() {
            Category::NotFound => self.is(Deviant::RetriesNotFound),
            Category::Authorization => self.is(Deviant::RetriesAuthorization),
            Category::IncompatibleSchema => self.is(Deviant::RetriesSchema),
            _ => false,
        }
    }
}

#[cfg(not(feature = "deviants"))]
impl Deviance {
    /// The error as the deviation in force reports it: as it is, without the feature.
    pub(crate) fn report(self, error: Error) -> Error {
        error
    }
}

/// Which deviation is in force, if any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Deviance(#[cfg(feature = "deviants")] pub(crate) Option<Deviant>);

impl Deviance {
    /// Whether this is the deviation in force.
    #[cfg(feature = "deviants")]
    pub(crate) fn is(self, deviant: Deviant) -> bool {
        self.0 == Some(deviant)
    }

    /// Whether this is the deviation in force: never, without the feature.
    #[cfg(not(feature = "deviants"))]
    pub(crate) const fn is(self, _: Deviant) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for info in Deviant::all() {
            assert_eq!(Deviant::by_name(info.name), Some(info.deviant));
            assert!(info.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", info.name);
            assert!(!info.requirements.is_empty() && !info.what.is_empty());
        }
    }
}
