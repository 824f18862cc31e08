//! The operations, each with its handler.

use axum::http::Method;
use serde_json::Value as Json;
use stc_proto::fields;

use super::{
    journal,
    table::{Call, Given, Operation, Refusal, operation},
    types::{
        Advance, Armed, BrokerStatus, Clock, CoordinatorStatus, Drop, Dropped, Elect, HeldFrame, Inject,
        InjectAssignment, Layout, Mark, MoveSegment, MoveTopic, OfTopic, Owner, Pruned, Pushed, Registration,
        Stored, TopicProperties,
    },
};
use crate::{
    control::{Control, DropSelector},
    core::{
        BrokerId, ConnId,
        controller::assignment::GroupKind,
        fault::{Fault, FaultStatus},
    },
};

type Outcome<T> = Result<T, Refusal>;

/// Every operation of the control API.
pub(super) fn operations() -> Vec<Operation> {
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        operation(
            get.clone(),
            "/faults",
            "listFaults",
            "Every armed fault, and how often it struck.",
            faults,
        ),
        operation(post.clone(), "/faults", "armFault", "Arms a fault.", arm),
        operation(
            delete.clone(),
            "/faults/{fault}",
            "disarmFault",
            "Disarms a fault; frames it holds stay held.",
            disarm,
        ),
        operation(get.clone(), "/held", "listHeld", "Every held frame.", held),
        operation(post.clone(), "/held/{held}/release", "releaseHeld", "Lets a held frame go on.", release),
        operation(get.clone(), "/brokers", "listBrokers", "The brokers.", brokers),
        operation(
            post.clone(),
            "/brokers/{broker}/kill",
            "killBroker",
            "Kills a broker: its connections break, others take over what it owned.",
            kill,
        ),
        operation(
            post.clone(),
            "/brokers/{broker}/revive",
            "reviveBroker",
            "Starts a killed broker again.",
            revive,
        ),
        operation(
            post.clone(),
            "/brokers/{broker}/unload",
            "unloadBroker",
            "Gives everything that a broker owns to the others, as before a restart; it stays up.",
            unload,
        ),
        operation(
            post.clone(),
            "/segments/move",
            "moveSegment",
            "Gives a segment to another broker; producers and consumers are closed and come back.",
            move_segment,
        ),
        operation(
            post.clone(),
            "/controllers/move",
            "moveController",
            "Gives a scalable topic's controller to another broker.",
            move_controller,
        ),
        operation(
            post.clone(),
            "/topics/move",
            "moveTopic",
            "Gives a classic topic or a partition to another broker.",
            move_topic,
        ),
        operation(
            post.clone(),
            "/topics/properties",
            "setTopicProperties",
            "Gives a scalable topic other properties; namespace watches with filters hear of it.",
            set_properties,
        ),
        operation(get.clone(), "/owners", "listOwners", "Who serves what.", owners),
        operation(
            post.clone(),
            "/connections/drop",
            "dropConnections",
            "Breaks connections: those that match everything that is given, all for {}.",
            drop_connections,
        ),
        operation(
            post.clone(),
            "/pushes/hold",
            "holdPushes",
            "Holds a topic's layout pushes back.",
            hold_pushes,
        ),
        operation(
            post.clone(),
            "/pushes/release",
            "releasePushes",
            "Sends what was held back, and stops holding.",
            release_pushes,
        ),
        operation(
            post.clone(),
            "/pushes/inject",
            "injectLayout",
            "Pushes a layout to a topic's watches as it is: stale, repeated or wrong.",
            inject,
        ),
        operation(
            get.clone(),
            "/coordinators",
            "listCoordinators",
            "The transaction coordinators, and who leads each one.",
            coordinators,
        ),
        operation(
            post.clone(),
            "/coordinators/{coordinator}/depose",
            "deposeCoordinator",
            "Begins an election of a transaction coordinator, which lasts until elect; its broker stays up.",
            depose,
        ),
        operation(
            post.clone(),
            "/coordinators/{coordinator}/elect",
            "electCoordinator",
            "Gives a transaction coordinator a leader: the broker that is named, else one that the seed chooses.",
            elect,
        ),
        operation(
            post.clone(),
            "/ends/hold",
            "holdEnds",
            "Decides the ends of transactions from now on without carrying them out.",
            hold_ends,
        ),
        operation(
            post.clone(),
            "/ends/release",
            "releaseEnds",
            "Carries out the ends of transactions that were held, and stops holding.",
            release_ends,
        ),
        operation(
            get.clone(),
            "/layout",
            "readLayout",
            "A scalable topic's layout as the wire has it now: what to change and inject.",
            layout,
        ),
        operation(
            get.clone(),
            "/registrations",
            "listRegistrations",
            "The consumers registered with a scalable topic's controller, and what each is to read.",
            registrations,
        ),
        operation(
            post.clone(),
            "/assignments/inject",
            "injectAssignment",
            "Sends an assignment to a registered consumer as it is: stale, repeated or wrong.",
            inject_assignment,
        ),
        operation(
            post.clone(),
            "/prune",
            "prune",
            "Prunes a scalable topic's drained sealed segments now.",
            prune,
        ),
        operation(get.clone(), "/clock", "readClock", "The cluster's clock.", clock),
        operation(
            post.clone(),
            "/clock/advance",
            "advanceClock",
            "Moves the clock ahead; what falls due happens.",
            advance,
        ),
        operation(
            get.clone(),
            "/stored",
            "listStored",
            "What a topic stores, in stored order; for a scalable or partitioned topic, part after part.",
            stored,
        ),
        operation(get.clone(), "/journal", "readJournal", "A part of the journal.", journal::read),
        operation(
            post.clone(),
            "/journal/wait",
            "waitForRecord",
            "The first record that matches, once there is one. 408 when none came in time.",
            journal::wait,
        ),
        operation(
            get.clone(),
            "/journal/follow",
            "followJournal",
            "Every record as it comes, one JSON object a line, until the connection closes.",
            journal::follow,
        ),
        operation(post.clone(), "/marks", "mark", "Puts a note into the journal.", mark),
        operation(
            post,
            "/reset",
            "reset",
            "Starts again: connections break; topics, namespaces, faults and the journal are gone.",
            reset,
        ),
    ]
}

/// An index of a broker from a path. The cluster says whether it has one.
fn broker(id: u64) -> Result<BrokerId, Refusal> {
    match u32::try_from(id) {
        Ok(id) => Ok(BrokerId(id)),
        Err(_) => Err(Refusal::not_found(format!("there is no broker {id}"))),
    }
}

async fn faults(control: Control, _: Call<(), ()>) -> Outcome<Given<Vec<FaultStatus>>> {
    Ok(Given(control.faults()))
}

async fn arm(control: Control, call: Call<(), Given<Fault>>) -> Outcome<Given<Armed>> {
    let id = control.arm(call.body.0)?;
    Ok(Given(Armed { id }))
}

async fn disarm(control: Control, call: Call<(), ()>) -> Outcome<()> {
    Ok(control.disarm(call.id)?)
}

async fn held(control: Control, _: Call<(), ()>) -> Outcome<Given<Vec<HeldFrame>>> {
    Ok(Given(control.held().iter().map(HeldFrame::from).collect()))
}

async fn release(control: Control, call: Call<(), ()>) -> Outcome<()> {
    Ok(control.release(call.id)?)
}

async fn brokers(control: Control, _: Call<(), ()>) -> Outcome<Given<Vec<BrokerStatus>>> {
    let brokers = control.cluster().read(|cluster| cluster.brokers().to_vec());
    let brokers = brokers.into_iter().zip(0..).map(|(broker, id)| BrokerStatus {
        id,
        up: broker.up,
        service_url: broker.service_url,
        admin_url: broker.admin_url,
        service_url_tls: broker.service_url_tls,
        admin_url_tls: broker.admin_url_tls,
    });
    Ok(Given(brokers.collect()))
}

async fn kill(control: Control, call: Call<(), ()>) -> Outcome<()> {
    control.kill_broker(broker(call.id)?)?;
    control.cluster().ports_settled().await;
    Ok(())
}

async fn revive(control: Control, call: Call<(), ()>) -> Outcome<()> {
    control.revive_broker(broker(call.id)?)?;
    control.cluster().ports_settled().await;
    Ok(())
}

async fn unload(control: Control, call: Call<(), ()>) -> Outcome<()> {
    Ok(control.unload_broker(broker(call.id)?)?)
}

async fn move_segment(control: Control, call: Call<(), Given<MoveSegment>>) -> Outcome<()> {
    let Given(MoveSegment { topic, segment, broker }) = call.body;
    Ok(control.move_segment(&topic, segment, BrokerId(broker))?)
}

async fn move_controller(control: Control, call: Call<(), Given<MoveTopic>>) -> Outcome<()> {
    let Given(MoveTopic { topic, broker }) = call.body;
    Ok(control.move_controller(&topic, BrokerId(broker))?)
}

async fn move_topic(control: Control, call: Call<(), Given<MoveTopic>>) -> Outcome<()> {
    let Given(MoveTopic { topic, broker }) = call.body;
    Ok(control.move_topic(&topic, BrokerId(broker))?)
}

async fn set_properties(control: Control, call: Call<(), Given<TopicProperties>>) -> Outcome<()> {
    let Given(TopicProperties { topic, properties }) = call.body;
    Ok(control.set_topic_properties(&topic, properties)?)
}

async fn owners(control: Control, _: Call<(), ()>) -> Outcome<Given<Vec<Owner>>> {
    let owners = control.cluster().read(|cluster| cluster.owners());
    let owners = owners
        .into_iter()
        .map(|(topic, broker)| Owner { topic: topic.to_string(), broker: broker.map(|id| id.0) });
    Ok(Given(owners.collect()))
}

async fn drop_connections(control: Control, call: Call<(), Given<Drop>>) -> Outcome<Given<Dropped>> {
    let Given(Drop { broker, conn }) = call.body;
    let which = DropSelector { broker: broker.map(BrokerId), conn: conn.map(ConnId) };
    if let Some(broker) = which.broker {
        control.cluster().read(|cluster| cluster.existing(broker))?;
    }
    Ok(Given(Dropped { connections: control.drop_connections(which) }))
}

async fn hold_pushes(control: Control, call: Call<(), Given<OfTopic>>) -> Outcome<()> {
    Ok(control.hold_pushes(&call.body.0.topic)?)
}

async fn release_pushes(control: Control, call: Call<(), Given<OfTopic>>) -> Outcome<Given<Pushed>> {
    Ok(Given(Pushed { pushes: control.release_pushes(&call.body.0.topic)? }))
}

async fn inject(control: Control, call: Call<(), Given<Inject>>) -> Outcome<Given<Pushed>> {
    let Given(Inject { topic, layout }) = call.body;
    let dag = fields::from_json("ScalableTopicDAG", &Json::Object(layout))
        .map_err(|e| Refusal::bad_request(format!("layout: {e}")))?;
    Ok(Given(Pushed { pushes: control.push_layout(&topic, &dag)? }))
}

async fn layout(control: Control, call: Call<Given<OfTopic>, ()>) -> Outcome<Given<Layout>> {
    let dag = control.current_dag(&call.query.0.topic)?;
    Ok(Given(Layout::from(&dag)))
}

async fn coordinators(control: Control, _: Call<(), ()>) -> Outcome<Given<Vec<CoordinatorStatus>>> {
    let coordinators = control.coordinators().into_iter();
    let status =
        |(id, leader): (u64, Option<BrokerId>)| CoordinatorStatus { id, broker: leader.map(|b| b.0) };
    Ok(Given(coordinators.map(status).collect()))
}

async fn depose(control: Control, call: Call<(), ()>) -> Outcome<()> {
    Ok(control.depose_coordinator(call.id)?)
}

async fn elect(control: Control, call: Call<(), Given<Elect>>) -> Outcome<()> {
    Ok(control.elect_coordinator(call.id, call.body.0.broker.map(BrokerId))?)
}

async fn hold_ends(control: Control, _: Call<(), ()>) -> Outcome<()> {
    control.hold_ends();
    Ok(())
}

async fn release_ends(control: Control, _: Call<(), ()>) -> Outcome<()> {
    control.release_ends();
    Ok(())
}

async fn registrations(
    control: Control,
    call: Call<Given<OfTopic>, ()>,
) -> Outcome<Given<Vec<Registration>>> {
    let registered = control.registered(&call.query.0.topic)?;
    let registrations = registered.into_iter().map(|r| Registration {
        subscription: r.group.subscription,
        checkpoint: r.group.kind == GroupKind::Checkpoint,
        consumer: r.consumer,
        connected: r.session.is_some(),
        segments: r.shares.iter().map(|share| share.segment).collect(),
    });
    Ok(Given(registrations.collect()))
}

async fn inject_assignment(control: Control, call: Call<(), Given<InjectAssignment>>) -> Outcome<()> {
    let Given(InjectAssignment { topic, subscription, consumer, assignment }) = call.body;
    let assignment = fields::from_json("ScalableConsumerAssignment", &Json::Object(assignment))
        .map_err(|e| Refusal::bad_request(format!("assignment: {e}")))?;
    Ok(control.push_assignment(&topic, &subscription, &consumer, &assignment)?)
}

async fn prune(control: Control, call: Call<(), Given<OfTopic>>) -> Outcome<Given<Pruned>> {
    Ok(Given(Pruned { segments: control.prune(&call.body.0.topic)? }))
}

async fn clock(control: Control, _: Call<(), ()>) -> Outcome<Given<Clock>> {
    Ok(Given(Clock { now_ms: control.cluster().now() }))
}

async fn advance(control: Control, call: Call<(), Given<Advance>>) -> Outcome<Given<Clock>> {
    let Given(Advance { ms }) = call.body;
    // A clock that wraps or leaves the calendar would help nobody.
    if ms > YEAR_MS {
        return Err(Refusal::bad_request(format!("ms: {ms} is more than a year")));
    }
    control.advance_clock(ms);
    Ok(Given(Clock { now_ms: control.cluster().now() }))
}

/// A year in milliseconds.
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;

async fn stored(control: Control, call: Call<Given<OfTopic>, ()>) -> Outcome<Given<Vec<Stored>>> {
    let stored = control.stored(&call.query.0.topic)?;
    Ok(Given(stored.into_iter().map(Stored::from).collect()))
}

async fn mark(control: Control, call: Call<(), Given<Mark>>) -> Outcome<()> {
    control.mark(&call.body.0.text);
    Ok(())
}

async fn reset(control: Control, _: Call<(), ()>) -> Outcome<()> {
    control.reset();
    control.cluster().ports_settled().await;
    Ok(())
}
