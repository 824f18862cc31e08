use super::*;

fn namespace(topics: &[&str]) -> Namespace {
    let limits = BackoffLimits { initial: 100, max: 1000 };
    Namespace::new(names(topics), limits, Rng::new(1), Deviance::default())
}

fn names(topics: &[&str]) -> Vec<String> {
    topics.iter().map(|topic| (*topic).to_owned()).collect()
}

fn at(mono: Millis) -> Now {
    Now { mono, wall: 0 }
}

/// What is to be done, in short: `+t` opens, `-t` closes, `ok` or `failed` ends the subscribe.
fn todo(namespace: &mut Namespace) -> Vec<String> {
    let short = |effect| match effect {
        Effect::Open { topic, .. } => format!("+{topic}"),
        Effect::Close { topic } => format!("-{topic}"),
        Effect::Subscribed(Ok(())) => "ok".to_owned(),
        Effect::Subscribed(Err(error)) => error.category().to_string(),
    };
    namespace.take_effects().into_iter().map(short).collect()
}

fn error(category: Category) -> Result<(), Error> {
    Err(Error::new(category, "no"))
}

#[test]
fn a_subscribe_waits_for_the_topics_that_are_there() {
    let mut empty = namespace(&[]);
    assert_eq!(todo(&mut empty), ["ok"]);
    let mut two = namespace(&["a", "b"]);
    assert_eq!(todo(&mut two), ["+a", "+b"]);
    two.opened("b", Ok(()), at(0));
    assert_eq!(todo(&mut two), [""; 0]);
    two.diff(names(&[]), names(&["c"]));
    two.opened("a", Ok(()), at(0));
    assert_eq!(todo(&mut two), ["+c", "ok"], "later topics are not waited for");
}

#[test]
fn a_topic_that_cannot_be_had_fails_the_subscribe_unless_it_is_gone() {
    let mut refused = namespace(&["a", "b"]);
    refused.opened("a", error(Category::Authorization), at(0));
    refused.opened("b", error(Category::Authorization), at(0));
    assert_eq!(todo(&mut refused), ["+a", "+b", "Authorization"]);
    let mut gone = namespace(&["a", "b"]);
    gone.opened("a", error(Category::NotFound), at(0));
    gone.diff(names(&["b"]), names(&[]));
    assert_eq!(todo(&mut gone), ["+a", "+b", "ok"]);
}

#[test]
fn what_fails_later_is_tried_again_for_as_long_as_it_is_in_the_set() {
    let mut n = namespace(&[]);
    n.diff(names(&[]), names(&["a"]));
    n.opened("a", error(Category::Authorization), at(0));
    assert_eq!(todo(&mut n), ["ok", "+a"]);
    let due = n.next_deadline().unwrap();
    assert!((90..=100).contains(&due), "{due}");
    n.tick(at(due));
    n.opened("a", error(Category::Authorization), at(due));
    assert_eq!(todo(&mut n), ["+a"]);
    assert!(n.next_deadline().unwrap() - due > 100);
    n.diff(names(&["a"]), names(&[]));
    assert_eq!((n.next_deadline(), todo(&mut n)), (None, vec![]));
}

#[test]
fn a_snapshot_replaces_the_set() {
    let mut n = namespace(&["a", "b"]);
    n.opened("a", Ok(()), at(0));
    n.opened("b", Ok(()), at(0));
    todo(&mut n);
    n.snapshot(names(&["b", "c"]));
    assert_eq!(todo(&mut n), ["-a", "+c"]);
    assert_eq!(n.hash(), topic_set_hash(["c", "b"]));
}

#[test]
fn a_topic_in_both_halves_of_a_diff_is_closed_and_then_opened() {
    let mut n = namespace(&["a"]);
    n.opened("a", Ok(()), at(0));
    todo(&mut n);
    n.diff(names(&["a"]), names(&["a"]));
    assert_eq!(todo(&mut n), ["-a"]);
    n.closed("a");
    assert_eq!(todo(&mut n), ["+a"]);
}

#[test]
fn what_opens_after_it_left_is_closed_and_opened_anew_when_it_came_back() {
    let mut n = namespace(&["a"]);
    n.diff(names(&["a"]), names(&[]));
    assert_eq!(todo(&mut n), ["+a", "ok"]);
    n.opened("a", Ok(()), at(0));
    n.closed("a");
    assert_eq!(todo(&mut n), ["-a"]);
    n.diff(names(&[]), names(&["a"]));
    n.diff(names(&["a"]), names(&[]));
    n.diff(names(&[]), names(&["a"]));
    n.opened("a", Ok(()), at(0));
    n.closed("a");
    assert_eq!(todo(&mut n), ["+a", "-a", "+a"], "the one that opened was another topic's");
    n.opened("a", Ok(()), at(0));
    assert_eq!(todo(&mut n), [""; 0]);
}

#[test]
fn each_stay_has_its_own_number() {
    let mut n = namespace(&["a", "b"]);
    n.opened("a", Ok(()), at(0));
    n.diff(names(&["a"]), names(&["a"]));
    n.closed("a");
    let stay = |effect: &Effect| match effect {
        Effect::Open { stay, .. } => Some(*stay),
        _ => None,
    };
    let stays: Vec<u64> = n.take_effects().iter().filter_map(stay).collect();
    assert_eq!(stays, [1, 2, 3]);
}
