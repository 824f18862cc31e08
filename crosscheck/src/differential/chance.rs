//! What is a matter of chance on a real broker, and how sequences stay clear of it: each case has its entry in
//! `docs/divergences.md`.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::op::{Kind, Op};
use super::readers::Readers;
use super::trace::{About, Place, Seen};

/// The number of the entry about a step that is left out.
///
/// - B20: 5.0.1 lets the stream consumers of a deleted subscription go one by one, in the order of a hash table, and
///   sends the rest new assignments each time.
/// - B24: clients that were attached when their topic was deleted look for it again and again. Whether they or somebody
///   else come to a new topic of the name first, and what they make of what it took over, is chance; so is whether one of
///   them creates it.
/// - B26: of what a queue consumer was sent before everything was skipped, nobody hears once it closes.
/// - B21: consumers that share a segment by buckets attach to it again, one by one, when their subscription is moved;
///   what the first one is sent before the others are back, they are not sent until it is acknowledged.
/// - B27: queue consumers that attach to a sealed segment at the same time are all told of its end, or one of them is.
pub(super) fn avoided(
    op: &Op,
    readers: &Readers,
    orphaned: &BTreeSet<u8>,
    seen: &Seen,
) -> Option<&'static str> {
    match op {
        Op::Create { topic, .. } | Op::OpenProducer { topic, .. } | Op::Subscribe { topic, .. } => {
            orphaned.contains(topic).then_some("B24")
        }
        Op::SkipAll { topic, subscription } => {
            (readers.members_of(*topic, Kind::Queue, *subscription) > 1).then_some("B26")
        }
        Op::Cut { .. } if !orphaned.is_empty() => Some("B24"),
        Op::Cut { .. } => crowded(|_, _| true, seen).then_some("B27"),
        Op::DeleteSubscription { topic, subscription } => {
            (readers.streams(*topic, *subscription) > 1).then_some("B20")
        }
        Op::Seek { topic, subscription, .. }
            if readers.streams(*topic, *subscription) > handed_out(*topic, *subscription, seen) =>
        {
            Some("B21")
        }
        Op::Seek { topic, subscription, .. } => {
            let meant = format!("s{subscription}");
            crowded(|of, name| of == *topic && name == meant, seen).then_some("B27")
        }
        _ => None,
    }
}

/// The subscriptions, with their topics, that have to have acknowledged everything before a step (B21): their consumers
/// share a segment by buckets, or will, and the step makes them attach anew. A bucket that has moved to another consumer
/// waits for what its former one holds, and who is first to attach, and gets what buckets, is chance.
pub(super) fn to_be_drained(op: &Op, readers: &Readers, seen: &Seen) -> BTreeSet<(u8, u8)> {
    let shares = |(topic, subscription): &(u8, u8), more: usize, fewer: usize| {
        let members = readers.streams(*topic, *subscription) + more;
        members > 1 && members > handed_out(*topic, *subscription, seen).saturating_sub(fewer)
    };
    let of_topic = |topic: u8| readers.subscriptions().filter(move |(of, _)| *of == topic);
    match op {
        Op::Subscribe { topic, subscription, kind: Kind::Stream, .. } => {
            Some((*topic, *subscription)).filter(|group| shares(group, 1, 0)).into_iter().collect()
        }
        Op::CloseConsumer { consumer } => {
            readers.subscription_of(*consumer).filter(|group| shares(group, 0, 0)).into_iter().collect()
        }
        Op::Split { topic, .. } | Op::Rebucket { topic, .. } => {
            of_topic(*topic).filter(|group| shares(group, 0, 0)).collect()
        }
        Op::Merge { topic, .. } => of_topic(*topic).filter(|group| shares(group, 0, 1)).collect(),
        Op::Cut { .. } => readers.subscriptions().filter(|group| shares(group, 0, 0)).collect(),
        _ => BTreeSet::new(),
    }
}

/// Whether everything has to be received before a step (B26): it acknowledges what is stored, and of that a stream consumer
/// receives what was on its way. The statistics do not tell when that is everything; of queues they do.
pub(super) fn to_be_received(op: &Op, readers: &Readers) -> bool {
    match op {
        Op::SkipAll { topic, subscription } | Op::Seek { topic, subscription, .. } => {
            readers.streams(*topic, *subscription) > 0
        }
        _ => false,
    }
}

/// Whether several queue consumers of such a subscription, by topic and name, are attached to one sealed segment.
fn crowded(meant: impl Fn(u8, &str) -> bool, seen: &Seen) -> bool {
    let text = |place: &Place, field: &str| {
        let value = seen.get(place)?;
        value.get(field).unwrap_or(value).as_str().map(str::to_owned)
    };
    seen.iter().any(|(place, value)| {
        let Place::Subscription { topic, name, about: About::Segment(id) } = place else { return false };
        let kind = Place::Subscription { topic: *topic, name: name.clone(), about: About::Kind };
        meant(*topic, name)
            && value.get("attached").and_then(Json::as_u64).is_some_and(|attached| attached > 1)
            && text(&kind, "").as_deref() == Some("QUEUE")
            && text(&Place::Segment(*topic, *id), "state").as_deref() == Some("SEALED")
    })
}

/// How many segments the consumers of a subscription have, as the statistics showed.
fn handed_out(topic: u8, subscription: u8, seen: &Seen) -> usize {
    let place = Place::Subscription { topic, name: format!("s{subscription}"), about: About::Consumers };
    let consumers = seen.get(&place).and_then(Json::as_object).into_iter().flatten();
    let segments = consumers.filter_map(|(_, consumer)| consumer.get("segments")?.as_array());
    segments.flatten().filter_map(Json::as_u64).collect::<BTreeSet<u64>>().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A topic with a segment in a state, and a subscription of a kind with consumers attached there.
    fn seen(state: &str, kind: &str, attached: u64) -> Seen {
        let about = |about| Place::Subscription { topic: 0, name: "s1".to_owned(), about };
        [
            (Place::Segment(0, 3), json!({ "state": state })),
            (about(About::Kind), json!(kind)),
            (about(About::Segment(3)), json!({ "attached": attached })),
        ]
        .into()
    }

    #[test]
    fn moving_a_queue_is_left_out_where_two_of_its_consumers_are_at_a_sealed_segment() {
        let avoided = |op: Op, seen: &Seen| avoided(&op, &Readers::default(), &BTreeSet::new(), seen);
        let seek = |subscription| Op::Seek { topic: 0, subscription, produce: 0 };
        let crowded = seen("SEALED", "QUEUE", 2);
        assert_eq!(avoided(seek(1), &crowded), Some("B27"));
        assert_eq!(avoided(Op::Cut { client: 0 }, &crowded), Some("B27"));
        assert_eq!(avoided(seek(0), &crowded), None, "another subscription");
        assert_eq!(avoided(seek(1), &seen("SEALED", "QUEUE", 1)), None, "one consumer");
        assert_eq!(avoided(seek(1), &seen("ACTIVE", "QUEUE", 2)), None, "an active segment");
        assert_eq!(avoided(seek(1), &seen("SEALED", "STREAM", 2)), None, "stream consumers");
    }
}
