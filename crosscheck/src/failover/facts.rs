//! What one scenario showed, as lines that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stc_proto::{Command, pulsar::ServerError};

use super::{
    application::Saw,
    cluster::port_of,
    wire::{Seen, What},
};

/// Lines by name, in the order in which they are shown.
pub type Facts = Vec<(&'static str, String)>;

/// What the application saw.
#[must_use]
pub fn of_application(saw: &Saw) -> Facts {
    vec![
        ("sends that failed", listed(saw.failures.iter().map(|(error, count)| format!("{count} {error}")))),
        ("lost by the stream consumer", saw.lost_by_stream.to_string()),
        ("lost by the queue consumer", saw.lost_by_queue.to_string()),
        ("keys out of order in the stream", saw.out_of_order.to_string()),
    ]
}

/// The layout that was pushed last.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Its epoch.
    pub epoch: u64,
    /// Which port serves each segment.
    pub owners: BTreeMap<u64, u16>,
    /// The port of the controller's broker, when there is one.
    pub controller: Option<u16>,
}

/// The layout that was pushed last in what was seen.
#[must_use]
pub fn layout(seen: &[Seen]) -> Option<Layout> {
    seen.iter().rev().find_map(|seen| {
        let What::Received(Command::ScalableTopicUpdate(update)) = &seen.what else { return None };
        let dag = update.dag.as_ref()?;
        let owners = dag.segment_brokers.iter();
        Some(Layout {
            epoch: dag.epoch,
            owners: owners
                .filter_map(|owner| Some((owner.segment_id, port_of(&owner.broker_url)?)))
                .collect(),
            controller: dag.controller_broker_url.as_deref().and_then(port_of),
        })
    })
}

/// The ports of the brokers that pushed layouts.
#[must_use]
pub fn watched_at(seen: &[Seen]) -> BTreeSet<u16> {
    let pushes =
        seen.iter().filter(|seen| matches!(seen.what, What::Received(Command::ScalableTopicUpdate(_))));
    pushes.map(|seen| seen.port).collect()
}

/// What went over the wire before and since the broker at the port `victim` was disturbed, and the layout that the
/// client knows.
#[must_use]
pub fn of_wire(before: &[Seen], seen: &[Seen], last: &Layout, victim: u16) -> Facts {
    let place = |port: u16| if port == victim { "the one that went" } else { "the other" };
    vec![
        ("the last layout has segments at", listed(last.owners.values().map(|port| place(*port).to_owned()))),
        ("the last layout has the controller at", last.controller.map_or("nobody", place).to_owned()),
        ("epoch of the last layout", last.epoch.to_string()),
        ("errors in layout updates", listed(updates(seen).filter_map(|update| error_in(update, "error")))),
        ("producers are closed", listed(closes(seen, "CLOSE_PRODUCER"))),
        ("consumers are closed", listed(closes(seen, "CLOSE_CONSUMER"))),
        ("refusals", listed(refusals(seen))),
        ("the client sends", listed(sent(seen, victim))),
        (
            "layout sessions keep their ids",
            yes(same_ids(before, seen, "SCALABLE_TOPIC_LOOKUP", "session_id")),
        ),
        (
            "registrations keep their ids",
            yes(same_ids(before, seen, "SCALABLE_TOPIC_SUBSCRIBE", "consumer_id")),
        ),
        ("segments of the last assignment", last_assignment(seen)),
    ]
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// Each different text once, sorted.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: BTreeSet<String> = texts.collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.into_iter().collect::<Vec<_>>().join(", "),
    }
}

fn updates(seen: &[Seen]) -> impl Iterator<Item = Value> {
    seen.iter().filter_map(|seen| match &seen.what {
        What::Received(command @ Command::ScalableTopicUpdate(_)) => Some(command.fields()),
        _ => None,
    })
}

fn error_in(fields: Value, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(error) => Some(error.clone()),
        Value::Number(error) => {
            let code = i32::try_from(error.as_i64()?).ok()?;
            Some(ServerError::try_from(code).map_or(code.to_string(), |error| error.as_str_name().to_owned()))
        }
        _ => None,
    }
}

/// How a broker closes producers or consumers on its own.
fn closes(seen: &[Seen], command: &'static str) -> impl Iterator<Item = String> {
    seen.iter().filter_map(move |seen| match &seen.what {
        What::Received(received) if received.name() == command => {
            let fields = received.fields();
            let address = fields.get("assignedBrokerServiceUrl").and_then(Value::as_str);
            Some(
                if address.is_some_and(|url| !url.is_empty()) { "with an address" } else { "without one" }
                    .into(),
            )
        }
        _ => None,
    })
}

/// Which requests were refused, and with which error. That a topic is not served at the moment is left out: whether a
/// client asks in that moment is chance.
fn refusals(seen: &[Seen]) -> impl Iterator<Item = String> {
    let mut asked: BTreeMap<(u64, String), &'static str> = BTreeMap::new();
    let mut refused = Vec::new();
    for one in seen {
        match &one.what {
            What::Sent(command) => {
                if let Some(id) = command.fields().get("request_id") {
                    asked.insert((one.connection, id.to_string()), command.name());
                }
            }
            What::Received(Command::SendError(error)) => {
                let name = ServerError::try_from(error.error).map_or("?", |error| error.as_str_name());
                refused.push(format!("SEND: {name}"));
            }
            What::Received(command) => {
                let fields = command.fields();
                if let Some(id) = fields.get("request_id").map(Value::to_string)
                    && let Some(request) = asked.get(&(one.connection, id))
                    && let Some(error) = error_in(fields, "error")
                    && error != ServerError::ServiceNotReady.as_str_name()
                {
                    refused.push(format!("{request}: {error}"));
                }
            }
            _ => {}
        }
    }
    refused.into_iter()
}

/// What the client sends to the broker that is left; sends, acknowledgements and the like aside.
fn sent(seen: &[Seen], victim: u16) -> impl Iterator<Item = String> {
    seen.iter().filter(move |seen| seen.port != victim).filter_map(|seen| match &seen.what {
        What::Sent(Command::Send(_) | Command::Ack(_) | Command::Flow(_)) => None,
        What::Sent(Command::Ping(_) | Command::Pong(_)) => None,
        // Whether a watch still stands when its layout is asked for anew is chance.
        What::Sent(Command::ScalableTopicClose(_)) => None,
        What::Sent(command) => Some(command.name().to_owned()),
        _ => None,
    })
}

/// Whether all commands of a kind carry ids that they carried before the disturbance too.
fn same_ids(before: &[Seen], seen: &[Seen], command: &str, field: &str) -> bool {
    let ids = |seen: &[Seen]| -> BTreeSet<String> {
        let sent = seen.iter().filter_map(|seen| match &seen.what {
            What::Sent(sent) if sent.name() == command => sent.fields().get(field).map(Value::to_string),
            _ => None,
        });
        sent.collect()
    };
    ids(seen).is_subset(&ids(before))
}

/// Whether the stream consumer asked for a registration and got it, as far as it asked.
#[must_use]
pub fn registered(seen: &[Seen], victim: u16) -> Registered {
    let count =
        |is: fn(&What) -> bool| seen.iter().filter(|seen| seen.port != victim && is(&seen.what)).count();
    let asked = count(|what| matches!(what, What::Sent(Command::ScalableTopicSubscribe(_))));
    let answered = count(|what| matches!(what, What::Received(Command::ScalableTopicSubscribeResponse(_))));
    match (asked, answered) {
        (0, _) => Registered::NotAsked,
        _ if answered < asked => Registered::Unanswered,
        _ => Registered::Answered,
    }
}

/// How far a registration with the broker that is left has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// Nobody asked for one.
    NotAsked,
    /// The answer is still to come.
    Unanswered,
    /// It is answered.
    Answered,
}

fn last_assignment(seen: &[Seen]) -> String {
    let last = seen.iter().rev().find_map(|seen| match &seen.what {
        What::Received(Command::ScalableTopicAssignmentUpdate(update)) => Some(update.assignment.clone()),
        What::Received(Command::ScalableTopicSubscribeResponse(response)) => response.assignment.clone(),
        _ => None,
    });
    match last {
        Some(assignment) => {
            let segments = listed(assignment.segments.iter().map(|segment| segment.segment_id.to_string()));
            format!("{segments} at epoch {}", assignment.layout_epoch)
        }
        None => "none came".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use stc_proto::pulsar::*;

    use super::*;

    const VICTIM: u16 = 1;
    const OTHER: u16 = 2;

    fn seen(port: u16, what: What) -> Seen {
        Seen { connection: u64::from(port), port, what }
    }

    fn fact(facts: &Facts, name: &str) -> String {
        facts.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    }

    fn lookup(session_id: u64) -> What {
        let topic = "topic://public/default/t".to_owned();
        What::Sent(CommandScalableTopicLookup { session_id, topic, create_if_missing: None }.into())
    }

    #[test]
    fn a_refusal_is_named_by_its_request_and_chance_is_left_out() {
        let ask = |request_id| What::Sent(CommandLookupTopic { request_id, ..Default::default() }.into());
        let refuse = |request_id, error: ServerError| {
            What::Received(CommandError { request_id, error: error as i32, message: String::new() }.into())
        };
        let all = [
            seen(OTHER, ask(1)),
            seen(OTHER, ask(2)),
            seen(OTHER, refuse(1, ServerError::ServiceNotReady)),
            seen(OTHER, refuse(2, ServerError::TopicNotFound)),
            seen(VICTIM, refuse(2, ServerError::UnknownError)),
        ];
        let facts = of_wire(&[], &all, &Layout::default(), VICTIM);
        assert_eq!(fact(&facts, "refusals"), "LOOKUP: TopicNotFound");
    }

    #[test]
    fn ids_that_were_not_there_before_are_told() {
        let before = [seen(VICTIM, lookup(1)), seen(VICTIM, lookup(2))];
        let name = "layout sessions keep their ids";
        let same = of_wire(&before, &[seen(OTHER, lookup(2))], &Layout::default(), VICTIM);
        assert_eq!(fact(&same, name), "yes");
        let other = of_wire(&before, &[seen(OTHER, lookup(3))], &Layout::default(), VICTIM);
        assert_eq!(fact(&other, name), "no");
    }

    #[test]
    fn a_layout_says_who_is_named_in_it() {
        let dag = ScalableTopicDag {
            epoch: 7,
            segment_brokers: vec![SegmentBrokerAddress {
                segment_id: 0,
                broker_url: "pulsar://127.0.0.1:1".into(),
                broker_url_tls: None,
            }],
            controller_broker_url: Some("pulsar://127.0.0.1:2".into()),
            ..Default::default()
        };
        let update = CommandScalableTopicUpdate { session_id: 1, dag: Some(dag), ..Default::default() };
        let all = [seen(OTHER, What::Received(update.into())), seen(OTHER, What::Closed)];
        let last = layout(&all).unwrap();
        let facts = of_wire(&[], &all, &last, VICTIM);
        assert_eq!(fact(&facts, "the last layout has segments at"), "the one that went");
        assert_eq!(fact(&facts, "the last layout has the controller at"), "the other");
        assert_eq!(fact(&facts, "epoch of the last layout"), "7");
        assert_eq!(watched_at(&all), BTreeSet::from([OTHER]));
    }

    #[test]
    fn a_registration_is_waited_for_until_it_is_answered() {
        let subscribe = CommandScalableTopicSubscribe { request_id: 1, ..Default::default() };
        let response = CommandScalableTopicSubscribeResponse { request_id: 1, ..Default::default() };
        let mut all = vec![seen(VICTIM, What::Sent(subscribe.clone().into()))];
        assert_eq!(registered(&all, VICTIM), Registered::NotAsked);
        all.push(seen(OTHER, What::Sent(subscribe.into())));
        assert_eq!(registered(&all, VICTIM), Registered::Unanswered);
        all.push(seen(OTHER, What::Received(response.into())));
        assert_eq!(registered(&all, VICTIM), Registered::Answered);
    }
}
