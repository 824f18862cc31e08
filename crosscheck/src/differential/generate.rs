//! Sequences at random: the same seed gives the same ones, and proptest shrinks what diverges.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::op::{Kind, Nonsense, Op, Pick};

/// A source of sequences; number and seed together decide a sequence.
#[must_use]
pub fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().zip(seed.to_be_bytes().into_iter().chain(number.to_be_bytes())) {
        *place = byte;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng)
}

/// One sequence and its ways to become shorter.
///
/// # Errors
/// When proptest gives up; no strategy here rejects anything.
pub fn sequence(seed: u64, number: u64) -> Result<impl ValueTree<Value = Vec<Op>>, String> {
    strategy().new_tree(&mut runner(seed, number)).map_err(|reason| reason.to_string())
}

/// A beginning that gives the rest something to work on, and up to 20 steps of any kind.
fn strategy() -> impl Strategy<Value = Vec<Op>> {
    (vec(beginning(), 1..6), vec(op(), 4..20)).prop_map(|(mut first, rest)| {
        first.sort_by_key(|op| !matches!(op, Op::Create { .. }));
        first.extend(rest);
        first
    })
}

fn beginning() -> impl Strategy<Value = Op> {
    prop_oneof![create(), open_producer(), subscribe()]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => create(),
        1 => (topic(), any::<bool>()).prop_map(|(topic, force)| Op::Delete { topic, force }),
        4 => (topic(), pick()).prop_map(|(topic, segment)| Op::Split { topic, segment }),
        3 => (topic(), pick(), pick()).prop_map(|(topic, a, b)| Op::Merge { topic, a, b }),
        3 => (topic(), pick(), buckets())
            .prop_map(|(topic, segment, buckets)| Op::Rebucket { topic, segment, buckets }),
        1 => proptest::sample::select(&Nonsense::ALL[..]).prop_map(|call| Op::Nonsense { call }),
        1 => (topic(), 0..2u8, any::<bool>())
            .prop_map(|(topic, subscription, queue)| Op::MakeSubscription { topic, subscription, queue }),
        1 => (topic(), 0..2u8)
            .prop_map(|(topic, subscription)| Op::DeleteSubscription { topic, subscription }),
        2 => (topic(), 0..2u8, 0..6u8)
            .prop_map(|(topic, subscription, produce)| Op::Seek { topic, subscription, produce }),
        1 => (topic(), 0..2u8).prop_map(|(topic, subscription)| Op::SkipAll { topic, subscription }),
        3 => open_producer(),
        8 => (producer(), vec(proptest::option::weighted(0.8, 0..8u8), 1..8))
            .prop_map(|(producer, keys)| Op::Produce { producer, keys }),
        1 => producer().prop_map(|producer| Op::CloseProducer { producer }),
        5 => subscribe(),
        6 => Just(Op::Receive),
        3 => (consumer(), 0..8u8).prop_map(|(consumer, nth)| Op::Ack { consumer, nth }),
        4 => consumer().prop_map(|consumer| Op::AckAll { consumer }),
        2 => (consumer(), 0..4u8).prop_map(|(consumer, receive)| Op::Cumulative { consumer, receive }),
        1 => (consumer(), consumer(), 0..8u8)
            .prop_map(|(consumer, of, nth)| Op::AckForeign { consumer, of, nth }),
        2 => (consumer(), 0..8u8).prop_map(|(consumer, nth)| Op::Nack { consumer, nth }),
        1 => consumer().prop_map(|consumer| Op::SaveCheckpoint { consumer }),
        2 => consumer().prop_map(|consumer| Op::CloseConsumer { consumer }),
        1 => (0..2u8).prop_map(|client| Op::Cut { client }),
    ]
}

fn create() -> impl Strategy<Value = Op> {
    (topic(), prop_oneof![8 => 1..4i32, 1 => -1..1i32])
        .prop_map(|(topic, segments)| Op::Create { topic, segments })
}

fn open_producer() -> impl Strategy<Value = Op> {
    let name = proptest::option::weighted(0.3, 0..2u8);
    (producer(), 0..2u8, topic(), proptest::bool::weighted(0.15), any::<bool>(), name).prop_map(
        |(producer, client, topic, exclusive, batching, name)| Op::OpenProducer {
            producer,
            client,
            topic,
            exclusive,
            batching,
            name,
        },
    )
}

fn subscribe() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        4 => Just(Kind::Stream),
        4 => Just(Kind::Queue),
        2 => Just(Kind::Checkpoint),
        1 => Just(Kind::Resumed),
    ];
    (consumer(), 0..2u8, topic(), kind, 0..2u8, proptest::bool::weighted(0.7)).prop_map(
        |(consumer, client, topic, kind, subscription, earliest)| Op::Subscribe {
            consumer,
            client,
            topic,
            kind,
            subscription,
            earliest,
        },
    )
}

/// Mostly the first one, so that most steps find it open.
fn producer() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(0u8), 1 => Just(1u8)]
}

fn consumer() -> impl Strategy<Value = u8> {
    prop_oneof![5 => Just(0u8), 3 => Just(1u8), 1 => Just(2u8)]
}

/// Mostly the first topic, so that steps meet.
fn topic() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(0u8), 1 => Just(1u8)]
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        5 => (0..4u8).prop_map(Pick::Active),
        2 => (0..8i64).prop_map(Pick::Id),
        1 => prop_oneof![Just(-1i64), Just(99), Just(i64::MAX)].prop_map(Pick::Id),
    ]
}

fn buckets() -> impl Strategy<Value = Option<i32>> {
    prop_oneof![
        6 => (1..9i32).prop_map(Some),
        1 => prop_oneof![Just(-1i32), Just(0), Just(1024), Just(1025)].prop_map(Some),
        1 => Just(None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generated(seed: u64, number: u64) -> Vec<Op> {
        sequence(seed, number).unwrap().current()
    }

    #[test]
    fn seed_and_number_decide_a_sequence() {
        assert_eq!(generated(5, 3), generated(5, 3));
        assert_ne!(generated(5, 3), generated(5, 4));
        assert_ne!(generated(5, 3), generated(6, 3));
    }

    #[test]
    fn every_kind_of_step_occurs_and_survives_a_file() {
        let all: Vec<Op> = (0..200).flat_map(|number| generated(1, number)).collect();
        let kinds: std::collections::HashSet<_> = all.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 23, "kinds of steps");
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Op>>(&text).unwrap(), all);
    }
}
