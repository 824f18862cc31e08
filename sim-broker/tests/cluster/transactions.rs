//! Transactions as a client sees them: coordinators, commits and aborts across segments, elections, time-outs.

use std::time::Duration;

use sim_broker::{
    SimCluster,
    core::{BrokerId, TxnId, journal::Event},
};
use stc_proto::{Command, Frame, pulsar::*};

use crate::{
    expect,
    support::{Client, cluster, cluster_as, create, message, segment_of, split},
};

const TOPIC: &str = "topic://public/default/t";
const LOW: &str = "segment://public/default/t/0000-7fff-0";
const HIGH: &str = "segment://public/default/t/8000-ffff-1";

/// A client of one transaction: a connection to its coordinator's leader.
struct Coordinator {
    client: Client,
    txn: TxnId,
}

impl Coordinator {
    async fn leader(cluster: &SimCluster, id: u64) -> Client {
        let leader = cluster.control().coordinators()[id as usize].1.expect("a leader");
        Client::to(cluster, leader.0 as usize).await
    }

    /// Opens a transaction at coordinator 3.
    async fn open(cluster: &SimCluster, ttl: u64) -> Self {
        let mut client = Coordinator::leader(cluster, 3).await;
        let request_id = client.request();
        let command =
            CommandNewTxn { request_id, txn_ttl_millis: Some(ttl), tc_id: Some(3), scalable: Some(true) };
        client.send(command).await;
        let answer = expect!(client, NewTxnResponse);
        assert_eq!(answer.error, None);
        let txn = TxnId { coordinator: answer.txnid_most_bits(), number: answer.txnid_least_bits() };
        assert_eq!(txn.coordinator, 3);
        Coordinator { client, txn }
    }

    async fn add(&mut self, topics: &[&str]) -> Option<i32> {
        let request_id = self.client.request();
        let command = CommandAddPartitionToTxn {
            request_id,
            txnid_least_bits: Some(self.txn.number),
            txnid_most_bits: Some(self.txn.coordinator),
            partitions: topics.iter().map(ToString::to_string).collect(),
            scalable: Some(true),
        };
        self.client.send(command).await;
        expect!(self.client, AddPartitionToTxnResponse).error
    }

    async fn add_subscription(&mut self, topic: &str, subscription: &str) {
        let request_id = self.client.request();
        let subscription = Subscription { topic: topic.into(), subscription: subscription.into() };
        let command = CommandAddSubscriptionToTxn {
            request_id,
            txnid_least_bits: Some(self.txn.number),
            txnid_most_bits: Some(self.txn.coordinator),
            subscription: vec![subscription],
            scalable: Some(true),
        };
        self.client.send(command).await;
        assert_eq!(expect!(self.client, AddSubscriptionToTxnResponse).error, None);
    }

    async fn ask(&mut self, action: TxnAction) {
        let request_id = self.client.request();
        let command = CommandEndTxn {
            request_id,
            txnid_least_bits: Some(self.txn.number),
            txnid_most_bits: Some(self.txn.coordinator),
            txn_action: Some(action as i32),
            scalable: Some(true),
        };
        self.client.send(command).await;
    }

    async fn end(&mut self, action: TxnAction) -> Option<ServerError> {
        self.ask(action).await;
        let answer = expect!(self.client, EndTxnResponse);
        answer.error.map(|_| answer.error())
    }
}

/// A producer and a shared consumer on one segment.
struct OnSegment(Client);

impl OnSegment {
    async fn attach(cluster: &SimCluster, segment: &str) -> Self {
        let mut client = Client::to_owner(cluster, segment).await;
        client.producer(1, segment, "p").await;
        client.subscribe(1, segment, "s").await;
        OnSegment(client)
    }

    async fn publish(&mut self, txn: TxnId, sequence_id: u64, payload: &str) -> Command {
        let mut frame = message(1, sequence_id, payload);
        if let Command::Send(send) = &mut frame.command {
            send.txnid_most_bits = Some(txn.coordinator);
            send.txnid_least_bits = Some(txn.number);
        }
        self.0.send_frame(frame).await;
        let Frame { command, .. } = self.0.recv().await;
        command
    }

    async fn acknowledge(&mut self, txn: TxnId, id: MessageIdData) -> CommandAckResponse {
        let command = CommandAck {
            consumer_id: 1,
            message_id: vec![id],
            txnid_most_bits: Some(txn.coordinator),
            txnid_least_bits: Some(txn.number),
            request_id: Some(77),
            ..Default::default()
        };
        self.0.send(command).await;
        expect!(self.0, AckResponse)
    }
}

/// What happened to a transaction, as the journal has it.
fn history(cluster: &SimCluster, txn: TxnId) -> Vec<&'static str> {
    let change = |record: &sim_broker::core::journal::Record| match &record.event {
        Event::Txn { txn: of, change, .. } if *of == txn => Some(*change),
        _ => None,
    };
    cluster.control().journal().iter().filter_map(change).collect()
}

#[tokio::test(start_paused = true)]
async fn a_commit_makes_everything_visible_at_once() {
    let cluster = cluster();
    create(&cluster, TOPIC, 2);
    let mut low = OnSegment::attach(&cluster, LOW).await;
    let mut high = OnSegment::attach(&cluster, HIGH).await;
    let (id, _) = {
        low.0.publish_ok(1, 0, "before").await;
        let (payload, id) = low.0.message().await;
        (id, assert_eq!(payload, "before"))
    };
    let mut txn = Coordinator::open(&cluster, 60_000).await;
    assert_eq!(txn.add(&[LOW, HIGH]).await, None);
    txn.add_subscription(LOW, "s").await;
    assert!(matches!(low.publish(txn.txn, 1, "l").await, Command::SendReceipt(_)));
    assert!(matches!(high.publish(txn.txn, 1, "h").await, Command::SendReceipt(_)));
    assert_eq!(low.acknowledge(txn.txn, id).await.error, None);
    low.0.expect_nothing().await;
    high.0.expect_nothing().await;
    assert_eq!(txn.end(TxnAction::Commit).await, None);
    assert_eq!(low.0.message().await.0, "l");
    assert_eq!(high.0.message().await.0, "h");
    let expected = ["open", "add", "add", "add", "committing", "commit", "commit", "commit", "committed"];
    assert_eq!(history(&cluster, txn.txn), expected);
    // A repeat is answered alike, the other way is refused, and so is everything else.
    assert_eq!(txn.end(TxnAction::Commit).await, None);
    assert_eq!(txn.end(TxnAction::Abort).await, Some(ServerError::InvalidTxnStatus));
    assert_eq!(txn.add(&[LOW]).await, Some(ServerError::InvalidTxnStatus as i32));
    let Command::SendError(late) = low.publish(txn.txn, 2, "late").await else { panic!("a refusal") };
    assert_eq!(late.error(), ServerError::NotAllowedError);
    let late = low.acknowledge(txn.txn, MessageIdData::default()).await;
    assert_eq!(late.error(), ServerError::InvalidTxnStatus);
}

#[tokio::test(start_paused = true)]
async fn an_abort_and_a_timeout_drop_everything() {
    for by_timeout in [false, true] {
        let cluster = cluster();
        create(&cluster, TOPIC, 2);
        let mut low = OnSegment::attach(&cluster, LOW).await;
        let mut txn = Coordinator::open(&cluster, 3_000).await;
        txn.add(&[LOW]).await;
        low.publish(txn.txn, 0, "gone").await;
        low.0.publish_ok(1, 1, "kept").await;
        low.0.expect_nothing().await;
        if by_timeout {
            tokio::time::sleep(Duration::from_millis(3_000)).await;
        } else {
            assert_eq!(txn.end(TxnAction::Abort).await, None);
        }
        assert_eq!(low.0.message().await.0, "kept");
        low.0.expect_nothing().await;
        let last = history(&cluster, txn.txn).pop().unwrap();
        assert_eq!(last, if by_timeout { "timed-out" } else { "aborted" });
        if by_timeout {
            assert_eq!(txn.end(TxnAction::Commit).await, Some(ServerError::InvalidTxnStatus));
            assert_eq!(txn.end(TxnAction::Abort).await, Some(ServerError::InvalidTxnStatus));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_election_in_the_middle_of_a_commit_loses_nothing() {
    let cluster = cluster();
    create(&cluster, TOPIC, 2);
    let mut low = OnSegment::attach(&cluster, LOW).await;
    let mut txn = Coordinator::open(&cluster, 60_000).await;
    txn.add(&[LOW]).await;
    low.publish(txn.txn, 0, "l").await;
    let control = cluster.control();
    control.hold_ends();
    txn.ask(TxnAction::Commit).await;
    txn.client.expect_nothing().await;
    // The leader loses the coordinator and answers nobody; the next one goes on with what was decided.
    control.depose_coordinator(3).unwrap();
    control.release_ends();
    txn.client.expect_nothing().await;
    assert_eq!(txn.end(TxnAction::Commit).await, Some(ServerError::TransactionCoordinatorNotFound));
    low.0.expect_nothing().await;
    let old = control.coordinators()[3].1;
    assert_eq!(old, None);
    control.elect_coordinator(3, Some(BrokerId(2))).unwrap();
    assert_eq!(low.0.message().await.0, "l");
    txn.client = Coordinator::leader(&cluster, 3).await;
    assert_eq!(txn.end(TxnAction::Commit).await, None);
    assert!(control.depose_coordinator(99).is_err());
    assert!(control.elect_coordinator(99, None).is_err());
    assert!(control.elect_coordinator(3, Some(BrokerId(9))).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_deposed_coordinator_has_no_leader_until_one_is_elected() {
    let cluster = cluster_as("spec-1.0", |config| config.coordinators = 2);
    let control = cluster.control();
    let mut client = Client::to(&cluster, 0).await;
    client.send(CommandWatchTcAssignments { watch_id: 1 }).await;
    assert_eq!(expect!(client, WatchTcAssignmentsUpdate).snapshot.unwrap().assignments.len(), 2);
    control.depose_coordinator(0).unwrap();
    let during = expect!(client, WatchTcAssignmentsUpdate).snapshot.unwrap();
    assert_eq!((during.parallelism, during.assignments.len()), (2, 1));
    // A fail-over elects others, and not this one.
    control.kill_broker(BrokerId(2)).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(control.coordinators()[0].1, None);
    assert!(control.coordinators()[1].1.is_some());
    control.elect_coordinator(0, None).unwrap();
    assert!(control.coordinators()[0].1.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_commit_waits_for_a_segment_whose_broker_died() {
    let cluster = cluster();
    create(&cluster, TOPIC, 2);
    let (mut low, mut high) =
        (OnSegment::attach(&cluster, LOW).await, OnSegment::attach(&cluster, HIGH).await);
    let control = cluster.control();
    // A coordinator on a broker that stays.
    let owner = |name: &str| {
        let owners = control.cluster().read(|c| c.owners());
        owners.into_iter().find(|(topic, _)| topic.as_str() == name).unwrap().1.unwrap()
    };
    let (dies, stays) = (owner(LOW), owner(HIGH));
    assert_ne!(dies, stays);
    control.elect_coordinator(3, Some(stays)).unwrap();
    let mut txn = Coordinator::open(&cluster, 60_000).await;
    txn.add(&[LOW, HIGH]).await;
    low.publish(txn.txn, 0, "l").await;
    high.publish(txn.txn, 0, "h").await;
    control.kill_broker(dies).unwrap();
    txn.ask(TxnAction::Commit).await;
    txn.client.expect_nothing().await;
    assert_eq!(high.0.message().await.0, "h");
    tokio::time::sleep(Duration::from_secs(2)).await;
    expect!(txn.client, EndTxnResponse);
    let mut low = Client::to(&cluster, owner(LOW).0 as usize).await;
    low.subscribe(1, LOW, "s").await;
    assert_eq!(low.message().await.0, "l");
}

#[tokio::test(start_paused = true)]
async fn a_split_changes_nothing_for_what_was_written_before() {
    let cluster = cluster();
    let parent = segment_of(&cluster, TOPIC).await;
    let mut at = OnSegment::attach(&cluster, &parent).await;
    let mut txn = Coordinator::open(&cluster, 60_000).await;
    txn.add(&[&parent]).await;
    at.publish(txn.txn, 0, "old").await;
    split(&cluster, TOPIC, 0);
    expect!(at.0, CloseProducer);
    let child = "segment://public/default/t/0000-7fff-1";
    let mut other = OnSegment::attach(&cluster, child).await;
    txn.add(&[child]).await;
    other.publish(txn.txn, 0, "new").await;
    assert_eq!(txn.end(TxnAction::Commit).await, None);
    assert_eq!(at.0.message().await.0, "old");
    assert_eq!(other.0.message().await.0, "new");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_added_is_dropped_with_the_commit() {
    let cluster = cluster();
    create(&cluster, TOPIC, 2);
    let mut low = OnSegment::attach(&cluster, LOW).await;
    let mut txn = Coordinator::open(&cluster, 60_000).await;
    low.publish(txn.txn, 0, "stray").await;
    low.0.publish_ok(1, 1, "after").await;
    assert_eq!(txn.end(TxnAction::Commit).await, None);
    assert_eq!(low.0.message().await.0, "after");
    assert!(history(&cluster, txn.txn).contains(&"forget"));
}

#[tokio::test(start_paused = true)]
async fn coordinators_are_found_by_the_classic_lookup_too() {
    let cluster = cluster();
    let topic = "persistent://pulsar/system/transaction_coordinator_assign";
    let mut client = Client::to(&cluster, 0).await;
    let request_id = client.request();
    let command = CommandPartitionedTopicMetadata { topic: topic.into(), request_id, ..Default::default() };
    client.send(command).await;
    assert_eq!(expect!(client, PartitionedMetadataResponse).partitions, Some(16));
    let leader = cluster.control().coordinators()[5].1.unwrap();
    let answer = client.lookup(&format!("{topic}-partition-5")).await;
    assert_eq!(answer.broker_service_url(), cluster.broker_urls()[leader.0 as usize]);
    cluster.control().depose_coordinator(5).unwrap();
    let answer = client.lookup(&format!("{topic}-partition-5")).await;
    assert_eq!(answer.error(), ServerError::ServiceNotReady);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_during_an_election_strikes_with_the_next_leader() {
    let cluster = cluster();
    create(&cluster, TOPIC, 2);
    let mut low = OnSegment::attach(&cluster, LOW).await;
    let mut txn = Coordinator::open(&cluster, 1_000).await;
    txn.add(&[LOW]).await;
    low.publish(txn.txn, 0, "gone").await;
    cluster.control().depose_coordinator(3).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(history(&cluster, txn.txn), ["open", "add"]);
    cluster.control().elect_coordinator(3, None).unwrap();
    assert_eq!(history(&cluster, txn.txn), ["open", "add", "timeout", "abort", "timed-out"]);
}

#[tokio::test(start_paused = true)]
async fn all_coordinators_begin_at_the_broker_that_the_configuration_names() {
    let leaders = |at: Option<BrokerId>| {
        let cluster = cluster_as("spec-1.0", |config| config.coordinators_at = at);
        let leaders = cluster.control().coordinators().into_iter();
        leaders.filter_map(|(_, leader)| leader).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(leaders(Some(BrokerId(1))), [BrokerId(1)].into());
    assert_eq!(leaders(None).len(), 3);
    assert_eq!(leaders(Some(BrokerId(9))).len(), 3, "a broker that does not exist leads nothing");
}
