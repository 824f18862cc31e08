//! The verdict: what was sent, stored, received and acknowledged, compared message by message.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Event, Group, Log};

/// How many examples a finding shows.
const SHOWN: usize = 5;

/// Values by key, in order.
pub type ByKey = BTreeMap<String, Vec<String>>;

/// What a run amounted to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Messages sent.
    pub sent: usize,
    /// Receipts of all consumers.
    pub receipts: usize,
    /// Receipts of messages that the consumer's group had received before.
    pub repeats: usize,
    /// Receipts whose consumer left without acknowledging them.
    pub left_unacknowledged: usize,
    /// Messages that a queue consumer gave back.
    pub given_back: usize,
}

/// Every way in which the run is wrong, in words; none when it is right.
///
/// `stored` is what the brokers hold. A message is lost for a group that never received it, and gone for a subscription
/// when nobody who received it acknowledged it, though nothing is left to deliver. Messages of one key are to be stored
/// as they were sent; an ordered group is to receive them so too, where only the first receipt counts: redelivery
/// repeats. `group_ordered` says whether the order of a checkpoint group is up to the client: a controller that hands
/// it parents and children together (`docs/divergences.md`, B9) leaves none to keep.
#[must_use]
pub fn findings(log: &Log, stored: &ByKey, group_ordered: bool) -> Vec<String> {
    let sent = sent(log);
    let mut found = Vec::new();
    let mut report = |what: &str, examples: Vec<String>| {
        if !examples.is_empty() {
            let shown: Vec<&str> = examples.iter().take(SHOWN).map(String::as_str).collect();
            found.push(format!("{} {what}: {}", examples.len(), shown.join(", ")));
        }
    };
    report("sends without a good result", unsettled(log));
    let keys: BTreeSet<&String> = sent.keys().chain(stored.keys()).collect();
    let wrong = keys.into_iter().filter(|key| sent.get(*key) != stored.get(*key));
    report("keys stored otherwise than sent", wrong.map(|key| difference(key, &sent, stored)).collect());
    for group in Group::ALL {
        let first = first_receipts(log, group);
        let got: BTreeSet<&String> = first.values().flatten().collect();
        let lost = sent.values().flatten().filter(|value| !got.contains(value)).cloned().collect();
        report(&format!("messages lost for {group:?}"), lost);
        let foreign = first.iter().flat_map(|(key, values)| {
            let known = sent.get(key);
            values.iter().filter(move |value| !known.is_some_and(|known| known.contains(value))).cloned()
        });
        report(&format!("messages that {group:?} received and nobody sent with that key"), foreign.collect());
        if group.is_ordered() && (group_ordered || group != Group::Shared) {
            let reordered = first.iter().filter(|(key, got)| {
                let expected = sent.get(*key).into_iter().flatten().filter(|value| got.contains(value));
                !expected.eq(got.iter())
            });
            report(
                &format!("keys out of order for {group:?}"),
                reordered.map(|(key, _)| difference(key, &sent, &first)).collect(),
            );
        }
        if group.acknowledges() {
            let acknowledged = acknowledged(log, group);
            let gone = got.iter().filter(|value| !acknowledged.contains(**value)).map(|v| (*v).clone());
            report(
                &format!("messages of {group:?} that nobody acknowledged and nobody gets any more"),
                gone.collect(),
            );
        }
    }
    report("messages before the checkpoint that came again after it", before_the_checkpoint(log));
    found
}

/// The figures of a run.
#[must_use]
pub fn figures(log: &Log) -> Figures {
    let mut figures = Figures { sent: log.sending(), ..Figures::default() };
    let mut seen = BTreeSet::new();
    let mut held: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in log.events() {
        match event {
            Event::Received { consumer, value, .. } => {
                figures.receipts += 1;
                let group = log.group(consumer);
                figures.repeats += usize::from(!seen.insert((group, value)));
                if group.is_some_and(Group::acknowledges) {
                    held.entry(consumer).or_default().insert(value);
                }
            }
            Event::Acknowledged { consumer, values } => {
                if let Some(held) = held.get_mut(consumer.as_str()) {
                    values.iter().for_each(|value| _ = held.remove(value.as_str()));
                }
            }
            Event::GivenBack { consumer, value } => {
                figures.given_back += 1;
                if let Some(held) = held.get_mut(consumer.as_str()) {
                    held.remove(value.as_str());
                }
            }
            _ => {}
        }
    }
    figures.left_unacknowledged = held.values().map(BTreeSet::len).sum();
    figures
}

/// What a consumer received, in order.
#[must_use]
pub fn receipts<'a>(log: &'a Log, name: &str) -> Vec<&'a str> {
    let of = |event: &'a Event| match event {
        Event::Received { consumer, value, .. } if consumer == name => Some(value.as_str()),
        _ => None,
    };
    log.events().iter().filter_map(of).collect()
}

fn sent(log: &Log) -> ByKey {
    let mut sent = ByKey::new();
    for event in log.events() {
        if let Event::Sending { key, value } = event {
            sent.entry(key.clone()).or_default().push(value.clone());
        }
    }
    sent
}

fn unsettled(log: &Log) -> Vec<String> {
    let mut waiting: BTreeMap<&String, &str> = BTreeMap::new();
    for event in log.events() {
        match event {
            Event::Sending { value, .. } => _ = waiting.insert(value, "no result"),
            Event::Sent { value, error: None } => _ = waiting.remove(value),
            Event::Sent { value, error: Some(error) } => _ = waiting.insert(value, error),
            _ => {}
        }
    }
    waiting.into_iter().map(|(value, why)| format!("{value} ({why})")).collect()
}

/// What a group received, by key, each message where it came first.
fn first_receipts(log: &Log, group: Group) -> ByKey {
    let (mut first, mut seen) = (ByKey::new(), BTreeSet::new());
    for event in log.events() {
        if let Event::Received { consumer, key, value, .. } = event
            && log.group(consumer) == Some(group)
            && seen.insert(value)
        {
            first.entry(key.clone().unwrap_or_default()).or_default().push(value.clone());
        }
    }
    first
}

/// What those who received it acknowledged, in a group.
fn acknowledged(log: &Log, group: Group) -> BTreeSet<String> {
    let in_group = |event: &Event| match event {
        Event::Acknowledged { consumer, values } if log.group(consumer) == Some(group) => values.clone(),
        _ => Vec::new(),
    };
    log.events().iter().flat_map(in_group).collect()
}

/// Messages that a checkpoint consumer received although the one before it had them: a checkpoint is exact.
fn before_the_checkpoint(log: &Log) -> Vec<String> {
    let (mut earlier, mut again) = (BTreeMap::new(), Vec::new());
    for event in log.events() {
        if let Event::Received { consumer, value, .. } = event
            && log.group(consumer) == Some(Group::Checkpoint)
            && *earlier.entry(value).or_insert(consumer) != consumer
        {
            again.push(value.clone());
        }
    }
    again
}

/// The first place where two orders of a key part.
fn difference(key: &str, expected: &ByKey, found: &ByKey) -> String {
    let (expected, found) = (expected.get(key), found.get(key));
    let at = |list: Option<&Vec<String>>, i: usize| {
        list.and_then(|list| list.get(i)).map_or("nothing", String::as_str).to_owned()
    };
    let longest = expected.map_or(0, Vec::len).max(found.map_or(0, Vec::len));
    let parts = (0..longest).find(|i| at(expected, *i) != at(found, *i)).unwrap_or_default();
    format!("{key} has {} where {} is due", at(found, parts), at(expected, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four messages in two keys; every group receives all, and who acknowledges does.
    fn good() -> Vec<Event> {
        let mut events = Vec::new();
        for (key, value) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")] {
            events.push(Event::Sending { key: key.into(), value: value.into() });
            events.push(Event::Sent { value: value.into(), error: None });
            for consumer in ["s", "q", "c", "g"] {
                events.push(received(consumer, key, value));
            }
            for consumer in ["s", "q"] {
                events
                    .push(Event::Acknowledged { consumer: consumer.into(), values: vec![value.to_owned()] });
            }
        }
        events
    }

    fn received(consumer: &str, key: &str, value: &str) -> Event {
        Event::Received {
            consumer: consumer.into(),
            key: Some(key.into()),
            value: value.into(),
            redelivered: 0,
        }
    }

    fn stored() -> ByKey {
        let values = |list: [&str; 2]| list.map(str::to_owned).to_vec();
        [("a".to_owned(), values(["a1", "a2"])), ("b".to_owned(), values(["b1", "b2"]))].into()
    }

    fn log(events: Vec<Event>) -> Log {
        let mut log = Log::default();
        for (consumer, group) in [
            ("s", Group::Stream),
            ("s2", Group::Stream),
            ("q", Group::Queue),
            ("c", Group::Checkpoint),
            ("c2", Group::Checkpoint),
            ("g", Group::Shared),
        ] {
            log.enrol(consumer, group);
        }
        events.into_iter().for_each(|event| log.add(event));
        log
    }

    fn judged(change: impl FnOnce(&mut Vec<Event>)) -> Vec<String> {
        let mut events = good();
        change(&mut events);
        findings(&log(events), &stored(), true)
    }

    fn at(events: &[Event], wanted: &Event) -> usize {
        events.iter().position(|event| event == wanted).unwrap()
    }

    #[test]
    fn a_good_run_has_no_finding_and_repeats_do_not_change_that() {
        assert_eq!(judged(|_| ()), Vec::<String>::new());
        let again = judged(|events| events.push(received("s2", "a", "a1")));
        assert_eq!(again, Vec::<String>::new(), "at least once");
        let figures = figures(&log(good()));
        let expected = Figures { sent: 4, receipts: 16, repeats: 0, left_unacknowledged: 0, given_back: 0 };
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_lost_message_is_found_in_every_group() {
        for (consumer, group) in [("s", "Stream"), ("q", "Queue"), ("c", "Checkpoint"), ("g", "Shared")] {
            let found = judged(|events| events.retain(|event| *event != received(consumer, "b", "b1")));
            assert_eq!(found, [format!("1 messages lost for {group}: b1")]);
        }
    }

    #[test]
    fn a_key_out_of_order_is_found_where_order_is_due() {
        for (consumer, due) in [("s", true), ("q", false), ("c", true), ("g", true)] {
            let found = judged(|events| {
                let (one, two) =
                    (at(events, &received(consumer, "a", "a1")), at(events, &received(consumer, "a", "a2")));
                events.swap(one, two);
            });
            assert_eq!(found.iter().any(|f| f.contains("keys out of order")), due, "{consumer}: {found:?}");
        }
    }

    #[test]
    fn a_group_that_is_handed_parents_and_children_together_may_be_out_of_order() {
        let mut events = good();
        let (one, two) = (at(&events, &received("g", "a", "a1")), at(&events, &received("g", "a", "a2")));
        events.swap(one, two);
        assert_eq!(findings(&log(events), &stored(), false), Vec::<String>::new());
    }

    #[test]
    fn what_nobody_acknowledged_is_gone() {
        for (consumer, group) in [("s", "Stream"), ("q", "Queue")] {
            let event = Event::Acknowledged { consumer: consumer.into(), values: vec!["a2".into()] };
            let found = judged(|events| events.retain(|e| *e != event));
            assert!(found.len() == 1 && found[0].contains(group) && found[0].contains("a2"), "{found:?}");
            // It is the group that counts: another consumer received it again and acknowledged it.
            if consumer == "s" {
                let found = judged(|events| {
                    events.retain(|e| *e != event);
                    events.push(received("s2", "a", "a2"));
                    events.push(Event::Acknowledged { consumer: "s2".into(), values: vec!["a2".into()] });
                });
                assert_eq!(found, Vec::<String>::new());
            }
        }
    }

    #[test]
    fn what_comes_again_after_a_checkpoint_is_found() {
        let found = judged(|events| events.push(received("c2", "b", "b2")));
        assert_eq!(found, ["1 messages before the checkpoint that came again after it: b2"]);
    }

    #[test]
    fn what_is_stored_otherwise_or_never_sent_is_found() {
        let mut twice = stored();
        twice.get_mut("a").unwrap().push("a2".to_owned());
        let found = findings(&log(good()), &twice, true);
        assert_eq!(found, ["1 keys stored otherwise than sent: a has a2 where nothing is due"]);
        let found = judged(|events| events.push(received("q", "a", "b1x")));
        assert!(found[0].contains("nobody sent"), "{found:?}");
        let found =
            judged(|events| events.retain(|e| !matches!(e, Event::Sent { value, .. } if value == "a1")));
        assert_eq!(found, ["1 sends without a good result: a1 (no result)"]);
    }
}
