//! The recordings of ordered consumers on the real 5.0.1, replayed as scripts: registrations, assignments, refusals and
//! the times of the controller.

use stc_proto::pulsar::command_ack::AckType;

use crate::{expect, ordered::*, support::*};

const BUSY: &str = "ERROR ConsumerBusy Exclusive consumer is already connected";
const OTHER_TYPE: &str = "ERROR ConsumerBusy Subscription is of different type. Active subscription type of \
                          'Exclusive' is different than the connecting consumer's type 'Key_Shared'.";

/// c_stream: three consumers on two segments, a split with messages unread, and a clean leave.
#[tokio::test(start_paused = true)]
async fn c_stream() {
    let cluster = standalone(2);
    // The first connection holds the producer's watch and sc1, the second one sc2 and the third consumer.
    let mut one = Client::to(&cluster, 0).await;
    let mut two = Client::to(&cluster, 0).await;
    assert!(one.watch(1, TOPIC).await.dag.unwrap().controller_broker_url.is_none());
    let first = one.store("0000-7fff-0", &["key-3", "key-3"]).await;
    let second = one.store("8000-ffff-1", &["key-0", "key-1"]).await;

    one.register(0, "subC", "sc1", STREAM).await;
    one.sees(&["LAYOUT 0 led", "ASSIGNED 0: 0 1", "LAYOUT 0 led"]).await;
    one.own(1, "0000-7fff-0", "subC").await;
    one.own(2, "8000-ffff-1", "subC").await;
    one.sees(&[
        "SUCCESS",
        "MESSAGE 1 0 key-3",
        "MESSAGE 1 1 key-3",
        "SUCCESS",
        "MESSAGE 2 0 key-0",
        "MESSAGE 2 1 key-1",
    ])
    .await;
    one.ack(1, AckType::Cumulative, &first[1..]).await;
    one.ack(2, AckType::Cumulative, &second[1..]).await;

    two.register(0, "subC", "sc2", STREAM).await;
    two.sees(&["ASSIGNED 0: 1"]).await;
    one.sees(&["UPDATE 0 0: 0", "LAYOUT 0 led"]).await;
    two.own(1, "8000-ffff-1", "subC").await;
    two.sees(&[BUSY]).await;
    one.detach(2).await;
    one.sees(&["SUCCESS"]).await;
    two.own(2, "8000-ffff-1", "subC").await;
    two.sees(&["SUCCESS"]).await;

    // More consumers than segments: the first two share segment 0.
    two.register(3, "subC", "v5-stream-Z0iVANYL", STREAM).await;
    two.sees(&["UPDATE 0 0: 0!2", "ASSIGNED 0: 1"]).await;
    one.sees(&["UPDATE 0 0: 0!2", "LAYOUT 0 led"]).await;
    two.share(4, "0000-7fff-0", "subC", "sc2-seg-0", 2).await;
    two.own(5, "8000-ffff-1", "subC").await;
    two.sees(&[OTHER_TYPE, BUSY]).await;
    two.detach(2).await;
    one.detach(1).await;
    one.share(3, "0000-7fff-0", "subC", "sc1-seg-0", 2).await;
    one.sees(&["SUCCESS", "SUCCESS"]).await;
    two.own(6, "8000-ffff-1", "subC").await;
    two.share(7, "0000-7fff-0", "subC", "sc2-seg-0", 2).await;
    two.sees(&["SUCCESS", "SUCCESS", "SUCCESS"]).await;

    // The third one leaves: both go back to one segment each.
    two.leave(3).await;
    two.detach(6).await;
    two.sees(&["UPDATE 0 0: 1", "SUCCESS", "SUCCESS"]).await;
    one.sees(&["UPDATE 0 0: 0", "LAYOUT 0 led"]).await;
    two.own(8, "8000-ffff-1", "subC").await;
    one.detach(3).await;
    two.detach(7).await;
    two.sees(&["SUCCESS", "SUCCESS"]).await;
    one.own(4, "0000-7fff-0", "subC").await;
    one.sees(&["SUCCESS", "SUCCESS"]).await;

    // A split with messages unread: children wait for their parent, and the controller looks after 2 s and 4 s more.
    let unread = one.store("0000-7fff-0", &["key-3"]).await;
    split(&cluster, TOPIC, 0);
    one.sees(&["LAYOUT 1 led", "UPDATE 0 1: 0"]).await;
    two.sees(&["UPDATE 0 1: 1"]).await;
    let [seen, none] = pass([&mut one, &mut two], 5_900).await;
    assert!(seen.is_empty() && none.is_empty(), "{seen:?} {none:?}");
    one.ack(4, AckType::Cumulative, &unread).await;
    one.sees(&["END 4"]).await;
    let [seen, other] = pass([&mut one, &mut two], 100).await;
    assert_eq!((seen, other), (vec!["UPDATE 0 1: 2 1".into()], vec!["UPDATE 0 1: 3".into()]));
    two.own(9, "4000-7fff-3", "subC").await;
    one.own(5, "0000-3fff-2", "subC").await;
    one.own(6, "8000-ffff-1", "subC").await;
    two.sees(&["SUCCESS"]).await;
    one.sees(&["SUCCESS", BUSY]).await;

    two.leave(0).await;
    two.sees(&["SUCCESS"]).await;
    one.sees(&["UPDATE 0 1: 2 3 1", "LAYOUT 1 led"]).await;
    one.leave(0).await;
    one.sees(&["SUCCESS", "LAYOUT 1 led"]).await;
}

/// c2_stream_drain: a shared segment that is split, a merge, a subscription that replays every generation, pruning.
#[tokio::test(start_paused = true)]
async fn c2_stream_drain() {
    let cluster = standalone(1);
    let mut one = Client::to(&cluster, 0).await;
    let mut two = Client::to(&cluster, 0).await;
    one.watch(1, TOPIC).await;
    one.register(0, "sub", "aa", STREAM).await;
    one.sees(&["LAYOUT 0 led", "ASSIGNED 0: 0", "LAYOUT 0 led"]).await;
    one.own(1, "0000-ffff-0", "sub").await;
    two.register(0, "sub", "bb", STREAM).await;
    two.sees(&["ASSIGNED 0: 0!4"]).await;
    one.sees(&["SUCCESS", "UPDATE 0 0: 0!4", "LAYOUT 0 led"]).await;
    two.share(1, "0000-ffff-0", "sub", "bb-seg-0", 4).await;
    two.sees(&[OTHER_TYPE]).await;
    one.detach(1).await;
    one.share(2, "0000-ffff-0", "sub", "aa-seg-0", 4).await;
    one.sees(&["SUCCESS", "SUCCESS"]).await;
    two.share(2, "0000-ffff-0", "sub", "bb-seg-0", 4).await;
    two.sees(&["SUCCESS"]).await;
    // The low halves are f8bf, 15a0 and 550c: key-0 is in one of the two upper buckets, which are bb's.
    let mut third = Client::to(&cluster, 0).await;
    let ids = third.store("0000-ffff-0", &["key-0", "key-1", "key-2"]).await;
    one.sees(&["MESSAGE 2 1 key-1", "MESSAGE 2 2 key-2"]).await;
    two.sees(&["MESSAGE 2 0 key-0"]).await;

    // Delivered and not acknowledged: looks 2, 6 and 14 s after the split.
    split(&cluster, TOPIC, 0);
    one.sees(&["LAYOUT 1 led", "UPDATE 0 1: 0!4"]).await;
    two.sees(&["UPDATE 0 1: 0!4"]).await;
    pass([&mut one, &mut two], 7_400).await;
    one.ack(2, AckType::Individual, &ids[1..]).await;
    two.ack(2, AckType::Individual, &ids[..1]).await;
    two.sees(&["END 2"]).await;
    one.sees(&["END 2"]).await;
    let [seen, _] = pass([&mut one, &mut two], 6_599).await;
    assert!(seen.is_empty(), "{seen:?}");
    let [seen, other] = pass([&mut one, &mut two], 1).await;
    assert_eq!((seen, other), (vec!["UPDATE 0 1: 1".into()], vec!["UPDATE 0 1: 2".into()]));

    // Merged when both are read: the controller still has to look.
    one.own(3, "0000-7fff-1", "sub").await;
    two.own(3, "8000-ffff-2", "sub").await;
    two.detach(2).await;
    one.detach(2).await;
    one.sees(&["SUCCESS", "SUCCESS"]).await;
    two.sees(&["SUCCESS", "SUCCESS"]).await;
    let low = third.store("0000-7fff-1", &["key-3"]).await;
    let high = third.store("8000-ffff-2", &["key-0"]).await;
    one.sees(&["MESSAGE 3 0 key-3"]).await;
    two.sees(&["MESSAGE 3 0 key-0"]).await;
    one.ack(3, AckType::Cumulative, &low).await;
    two.ack(3, AckType::Cumulative, &high).await;
    // 14 s after the controller was elected; 60 s after that it prunes the first time.
    pass([&mut one, &mut two], 26_000).await;
    cluster.with(|c, now| c.merge_segments(&topic(TOPIC), 1, 2, now)).unwrap();
    one.sees(&["END 3", "LAYOUT 2 led", "UPDATE 0 2: 1"]).await;
    two.sees(&["END 3", "UPDATE 0 2: 2"]).await;
    let [seen, other] = pass([&mut one, &mut two], 2_000).await;
    assert_eq!((seen, other), (vec!["UPDATE 0 2: 3!4".into()], vec!["UPDATE 0 2: 3!4".into()]));

    // A new subscription reads one generation after the other.
    two.register(5, "sub2", "cc", STREAM).await;
    two.sees(&["ASSIGNED 2: 0"]).await;
    one.sees(&["LAYOUT 2 led"]).await;
    two.own(6, "0000-ffff-0", "sub2").await;
    let read = two.seen_now().await;
    assert_eq!(read.len(), 4, "{read:?}");
    two.ack(6, AckType::Cumulative, &ids[2..]).await;
    let [_, seen] = pass([&mut one, &mut two], 2_000).await;
    assert_eq!(seen, ["END 6", "UPDATE 5 2: 1 2"]);
    two.own(7, "0000-7fff-1", "sub2").await;
    two.own(8, "8000-ffff-2", "sub2").await;
    two.detach(6).await;
    two.sees(&["SUCCESS", "MESSAGE 7 0 key-3", "SUCCESS", "MESSAGE 8 0 key-0", "SUCCESS"]).await;

    // 60 s after the election: what every subscription has drained goes, and everyone hears of the new epoch.
    let [seen, other] = pass([&mut one, &mut two], 15_999).await;
    assert!(seen.is_empty() && other.is_empty(), "{seen:?} {other:?}");
    let [seen, other] = pass([&mut one, &mut two], 1).await;
    assert_eq!(seen, ["LAYOUT 3 led", "UPDATE 0 3: 3!4"]);
    assert_eq!(other, ["UPDATE 0 3: 3!4", "UPDATE 5 3: 1 2"]);
    // That made the controller look again soon.
    two.ack(7, AckType::Cumulative, &low).await;
    two.ack(8, AckType::Cumulative, &high).await;
    let [_, seen] = pass([&mut one, &mut two], 2_000).await;
    assert_eq!(seen, ["END 7", "END 8", "UPDATE 5 3: 3"]);
}

/// c3_stream_grace: a client that vanishes keeps its segment for 60 s; then the same name comes back.
#[tokio::test(start_paused = true)]
async fn c3_stream_grace() {
    let cluster = standalone(2);
    let mut one = Client::to(&cluster, 0).await;
    one.watch(1, TOPIC).await;
    one.register(0, "sub", "aa", STREAM).await;
    one.own(1, "0000-7fff-0", "sub").await;
    one.own(2, "8000-ffff-1", "sub").await;
    one.seen_now().await;
    let mut two = Client::to(&cluster, 0).await;
    two.register(0, "sub", "bb", STREAM).await;
    two.sees(&["ASSIGNED 0: 1"]).await;
    one.detach(2).await;
    one.sees(&["UPDATE 0 0: 0", "LAYOUT 0 led", "SUCCESS"]).await;
    drop(two);
    tokio::task::yield_now().await;
    let [seen] = pass([&mut one], 59_990).await;
    assert!(seen.is_empty(), "{seen:?}");
    let [seen] = pass([&mut one], 20).await;
    assert_eq!(seen, ["UPDATE 0 0: 0 1", "LAYOUT 0 led"]);
    one.own(3, "8000-ffff-1", "sub").await;
    one.sees(&["SUCCESS"]).await;

    let mut two = Client::to(&cluster, 0).await;
    two.register(0, "sub", "bb", STREAM).await;
    two.sees(&["ASSIGNED 0: 1"]).await;
    one.sees(&["UPDATE 0 0: 0", "LAYOUT 0 led"]).await;
    // The owner never closes its consumer, so the newcomer gives up.
    for id in 1..4 {
        two.own(id, "8000-ffff-1", "sub").await;
        two.sees(&[BUSY]).await;
    }
    two.leave(0).await;
    two.sees(&["SUCCESS"]).await;
    one.sees(&["UPDATE 0 0: 0 1", "LAYOUT 0 led"]).await;
}

/// e_checkpoint: 5.0.1 hands parents and children out together to a checkpoint group.
#[tokio::test(start_paused = true)]
async fn e_checkpoint() {
    let cluster = standalone(2);
    let mut one = Client::to(&cluster, 0).await;
    one.watch(1, TOPIC).await;
    split(&cluster, TOPIC, 0);
    one.sees(&["LAYOUT 0 led", "LAYOUT 1 led"]).await;
    one.register(18, "grp", "g1", CHECKPOINT).await;
    one.sees(&["ASSIGNED 1: 2 0 3 1", "LAYOUT 1 led"]).await;
    one.register(23, "grp", "g2", CHECKPOINT).await;
    one.sees(&["UPDATE 18 1: 2 3", "ASSIGNED 1: 0 1", "LAYOUT 1 led"]).await;
    let [seen] = pass([&mut one], 30_000).await;
    assert!(seen.is_empty(), "{seen:?}");
    one.leave(23).await;
    one.sees(&["UPDATE 18 1: 2 0 3 1", "SUCCESS", "LAYOUT 1 led"]).await;
    one.leave(18).await;
    one.sees(&["SUCCESS", "LAYOUT 1 led"]).await;
}

/// i_reconnect: a connection that breaks, and a client that is back at once: the response only, and the same as before.
#[tokio::test(start_paused = true)]
async fn i_reconnect() {
    let cluster = standalone(2);
    let mut one = Client::to(&cluster, 0).await;
    one.register(0, "st", "si", STREAM).await;
    one.sees(&["ASSIGNED 0: 0 1"]).await;
    cluster.control().drop_connections(Default::default());
    one.expect_closed().await;
    let mut again = Client::to(&cluster, 0).await;
    again.watch(1, TOPIC).await;
    again.register(0, "st", "si", STREAM).await;
    again.sees(&["ASSIGNED 0: 0 1"]).await;
    let [seen] = pass([&mut again], 120_000).await;
    assert!(seen.is_empty(), "the grace period is over: {seen:?}");
}

/// h_errors: the second consumer of a name gets everything that is the first one's, and is kept out at the segments.
#[tokio::test(start_paused = true)]
async fn h_errors_same_name() {
    let cluster = standalone(2);
    let mut one = Client::to(&cluster, 0).await;
    one.register(17, "s", "same", STREAM).await;
    one.own(18, "0000-7fff-0", "s").await;
    one.sees(&["ASSIGNED 0: 0 1", "SUCCESS"]).await;
    one.register(20, "s", "same", STREAM).await;
    one.own(21, "0000-7fff-0", "s").await;
    one.sees(&["ASSIGNED 0: 0 1", BUSY]).await;
    one.leave(20).await;
    one.sees(&["SUCCESS"]).await;
    // A checkpoint group of the subscription's name is another group.
    one.register(41, "s", "v5-checkpoint-iVGE9lQD", CHECKPOINT).await;
    one.sees(&["ASSIGNED 0: 0 1"]).await;
    one.leave(41).await;
    one.leave(17).await;
    one.sees(&["SUCCESS", "SUCCESS"]).await;
}

/// h_errors: only scalable topics have controllers, by their own names.
#[tokio::test(start_paused = true)]
async fn h_errors_no_controller() {
    let cluster = standalone(1);
    let mut client = Client::to(&cluster, 0).await;
    for name in ["persistent://public/default/t", &segment("0000-ffff-0"), "topic://public/default/none"] {
        let request_id = client.request();
        client
            .send(stc_proto::pulsar::CommandScalableTopicSubscribe {
                request_id,
                topic: name.into(),
                subscription: "s".into(),
                consumer_name: "c".into(),
                consumer_id: 1,
                consumer_type: STREAM as i32,
            })
            .await;
        let refusal = expect!(client, ScalableTopicSubscribeResponse);
        assert_eq!(refusal.error(), stc_proto::pulsar::ServerError::UnknownError);
        assert_eq!(refusal.message(), format!("Failed to initialize controller for {name}"));
    }
    client.leave(1).await;
    client.sees(&["SUCCESS"]).await;
}

/// The preview 5.0.0-M1 sends a newcomer its assignment twice, and one that came back too.
#[tokio::test(start_paused = true)]
async fn m1_sends_updates_to_newcomers() {
    let cluster = cluster_as("pulsar-5.0.0-M1", |c| c.brokers = 1);
    create(&cluster, TOPIC, 2);
    let mut one = Client::to(&cluster, 0).await;
    let mut two = Client::to(&cluster, 0).await;
    one.watch(1, TOPIC).await;
    one.register(0, "sub", "aa", STREAM).await;
    one.sees(&["LAYOUT 0 led", "UPDATE 0 0: 0 1", "ASSIGNED 0: 0 1", "LAYOUT 0 led"]).await;
    two.register(0, "sub", "bb", STREAM).await;
    two.sees(&["UPDATE 0 0: 1", "ASSIGNED 0: 1"]).await;
    one.sees(&["UPDATE 0 0: 0", "LAYOUT 0 led"]).await;
    // No buckets: the third one is idle.
    two.register(2, "sub", "v5-stream-rdOGNcMG", STREAM).await;
    two.sees(&["UPDATE 0 0: 1", "UPDATE 2 0:", "ASSIGNED 0:"]).await;
    drop(two);
    let mut two = Client::to(&cluster, 0).await;
    two.register(0, "sub", "bb", STREAM).await;
    two.sees(&["UPDATE 0 0: 1", "ASSIGNED 0: 1"]).await;
    two.leave(0).await;
    two.expect_closed().await;
}
