//! Scripts against the coordinators' machine.

use std::collections::BTreeMap;

use super::{
    Part, TxnId,
    coordinators::{Ask, Coordinators, Discovery, Effect},
};
use crate::core::{
    backoff::{BackoffLimits, Rng},
    deviant::Deviance,
    error::{Category, Error},
};

const TXN: TxnId = TxnId { coordinator: 1, number: 7 };
const COMMIT: Ask = Ask::End(TXN, true);

fn machine() -> Coordinators {
    let limits = BackoffLimits { initial: 100, max: 1000 };
    Coordinators::new(limits, Rng::new(1), Deviance::default())
}

fn leaders(of: &[(u64, &str)]) -> BTreeMap<u64, String> {
    of.iter().map(|(id, url)| (*id, (*url).to_owned())).collect()
}

fn connect(coordinator: u64, generation: u64, address: Option<&str>) -> Effect {
    Effect::Connect { coordinator, generation, address: address.map(ToOwned::to_owned) }
}

fn send(request: u64, attempt: u64, ask: Ask) -> Effect {
    Effect::Send { request, attempt, coordinator: 1, ask }
}

fn not_leader() -> Error {
    Error::server(stc_proto::pulsar::ServerError::TransactionCoordinatorNotFound as i32, "")
}

/// A machine that was asked to commit, with the watch open.
fn watching(of: &[(u64, &str)]) -> (Coordinators, u64) {
    let mut machine = machine();
    let request = machine.ask(COMMIT, 10_000, 0);
    assert_eq!(machine.take_effects(), [Effect::Discover]);
    machine.discovered(Ok(Discovery::Watch), 0);
    machine.snapshot(4, leaders(of), 0);
    (machine, request)
}

#[test]
fn a_request_goes_to_the_leader_that_the_snapshot_names() {
    let (mut machine, request) = watching(&[(0, "a"), (1, "b")]);
    assert_eq!(machine.take_effects(), [connect(1, 1, Some("b"))]);
    machine.connected(1, 1, Ok(()), 0);
    assert_eq!(machine.take_effects(), [send(request, 1, COMMIT)]);
    machine.answered(request, 1, Ok(None), 0);
    assert_eq!(machine.take_effects(), [Effect::Settle { request, result: Ok(None) }]);
    assert_eq!(machine.next_deadline(), None);
    // A second request needs no second connect.
    let again = machine.ask(Ask::Add(TXN, Part::Topic("t".into())), 10_000, 0);
    assert!(matches!(machine.take_effects().as_slice(), [Effect::Send { request, .. }] if *request == again));
}

#[test]
fn a_request_waits_while_its_coordinator_is_elected_and_fails_only_when_its_time_is_over() {
    let (mut machine, request) = watching(&[(0, "a")]);
    assert_eq!(machine.take_effects(), []);
    assert_eq!(machine.next_deadline(), Some(10_000), "nothing but the end of its time");
    machine.snapshot(4, leaders(&[(1, "b")]), 500);
    assert_eq!(machine.take_effects(), [connect(1, 1, Some("b"))]);
    machine.tick(10_000);
    let [Effect::Settle { request: settled, result: Err(error) }] = &machine.take_effects()[..] else {
        panic!("a failure")
    };
    assert_eq!((*settled, error.category()), (request, Category::Timeout));
}

#[test]
fn a_request_follows_its_coordinator_to_another_leader() {
    let (mut machine, request) = watching(&[(1, "b")]);
    machine.connected(1, 1, Ok(()), 0);
    machine.take_effects();
    machine.snapshot(4, leaders(&[]), 10);
    assert_eq!(machine.take_effects(), [], "in election");
    machine.snapshot(4, leaders(&[(1, "c")]), 20);
    assert_eq!(machine.take_effects(), [connect(1, 2, Some("c"))]);
    machine.connected(1, 1, Ok(()), 20);
    assert_eq!(machine.take_effects(), [], "an answer to an abandoned connect");
    machine.connected(1, 2, Ok(()), 20);
    assert_eq!(machine.take_effects(), [send(request, 2, COMMIT)]);
    machine.answered(request, 1, Err(not_leader()), 20);
    assert_eq!(machine.take_effects(), [], "an answer to an abandoned sending");
    machine.answered(request, 2, Ok(None), 20);
    assert_eq!(machine.take_effects().len(), 1);
}

#[test]
fn a_refusal_by_a_broker_that_does_not_lead_is_tried_again() {
    let (mut machine, request) = watching(&[(1, "b")]);
    machine.connected(1, 1, Ok(()), 0);
    machine.answered(request, 1, Err(not_leader()), 0);
    machine.take_effects();
    let at = machine.next_deadline().unwrap();
    assert!((90..=100).contains(&at), "{at}");
    machine.tick(at);
    assert_eq!(machine.take_effects(), [connect(1, 2, Some("b"))]);
    machine.connected(1, 2, Ok(()), at);
    machine.answered(request, 2, Err(Error::not_connected("lost")), at);
    machine.take_effects();
    machine.tick(machine.next_deadline().unwrap());
    assert_eq!(machine.take_effects(), [connect(1, 3, Some("b"))]);
    let conflict = Error::new(Category::TransactionConflict, "it was aborted");
    machine.connected(1, 3, Ok(()), 500);
    machine.answered(request, 3, Err(conflict.clone()), 500);
    let last = machine.take_effects().pop();
    assert_eq!(last, Some(Effect::Settle { request, result: Err(conflict) }), "nothing to try again");
}

#[test]
fn new_transactions_go_round_the_coordinators() {
    let mut machine = machine();
    for _ in 0..3 {
        machine.ask(Ask::New(1000), 10_000, 0);
    }
    machine.discovered(Ok(Discovery::Classic(2)), 0);
    let connects: Vec<Effect> = machine.take_effects();
    assert_eq!(connects[1..], [connect(0, 1, None), connect(1, 1, None)]);
    machine.connected(0, 1, Ok(()), 0);
    let sent = machine.take_effects();
    assert_eq!(sent.len(), 2, "the first and the third: {sent:?}");
}

#[test]
fn a_watch_that_is_refused_fails_who_asked_and_a_lost_one_is_opened_again() {
    let mut machine = machine();
    let request = machine.ask(COMMIT, 10_000, 0);
    let refused = Error::new(Category::Authorization, "no");
    machine.discovered(Err(refused.clone()), 0);
    assert_eq!(machine.take_effects()[1..], [Effect::Settle { request, result: Err(refused.clone()) }]);
    assert_eq!(machine.next_deadline(), None);
    machine.ask(COMMIT, 10_000, 0);
    assert_eq!(machine.take_effects(), [Effect::Discover], "the next one asks anew");
    machine.discovered(Err(Error::not_connected("")), 0);
    machine.tick(100);
    assert_eq!(machine.take_effects(), [Effect::Discover], "a failure that may pass");
    machine.discovered(Ok(Discovery::Watch), 100);
    machine.snapshot(4, leaders(&[(1, "b")]), 100);
    machine.watch_lost(100);
    machine.take_effects();
    machine.tick(200);
    assert_eq!(machine.take_effects(), [Effect::Discover]);
    machine.discovered(Err(refused), 200);
    assert_eq!(machine.take_effects(), [], "later refusals fail nobody");
    assert!(machine.next_deadline().is_some());
}
