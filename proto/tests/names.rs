//! Names and hashes of any text.

use proptest::prelude::*;
use stc_proto::{HashRange, KeyHash, SegmentName, TopicName, name::Domain};

fn any_domain() -> impl Strategy<Value = Domain> {
    prop::sample::select(vec![Domain::Persistent, Domain::NonPersistent, Domain::Topic, Domain::Segment])
}

/// Text that is often a name, or nearly one.
fn nearly_a_name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(topic|segment|persistent|SEGMENT)://([a-z]{1,3}/){1,4}[ a-z0-9/-]{0,12}",
        "segment://t/n/[a-z/]{0,4}/[0-9a-fA-F+-]{0,6}-[0-9a-f]{0,5}-[0-9+-]{0,22}",
        "[a-z/:é ]{0,12}(-partition-[0-9+]{0,11})?",
    ]
}

proptest! {
    #[test]
    fn any_text_is_a_name_or_an_error(text in nearly_a_name(), domain in any_domain(), index in any::<u32>()) {
        let Ok(name) = TopicName::parse(&text) else { return Ok(()) };
        // The canonical form is a fixed point, and consists of its parts.
        prop_assert_eq!(TopicName::parse(name.as_str()), Ok(name.clone()));
        let rest = format!("://{}/{}/{}", name.tenant(), name.namespace_local(), name.local());
        prop_assert!(name.as_str().ends_with(&rest));
        prop_assert_eq!(name.namespace(), format!("{}/{}", name.tenant(), name.namespace_local()));
        let other = name.with_domain(domain);
        prop_assert_eq!(other.as_str(), format!("{}{rest}", domain.as_str()));
        prop_assert_eq!(other.local(), name.local());
        if let Ok(segment) = SegmentName::of(&name) {
            prop_assert_eq!(SegmentName::parse(&segment.to_string()), Ok(segment));
        } else {
            prop_assert_ne!(name.domain(), Domain::Segment);
            let index = index & 0x7FFF_FFFF;
            prop_assert_eq!(name.partition(index).partition_index(), Some(index));
            prop_assert_eq!(name.partition(index).partitioned(), name);
        }
    }

    #[test]
    fn a_segment_name_survives(local in "[^/ ]{1,8}", start in any::<u16>(), width in any::<u16>(), id in 0..=i64::MAX as u64) {
        let range = HashRange::new(start, start.saturating_add(width)).unwrap();
        let topic = TopicName::new(Domain::Topic, "t", "n", &local);
        prop_assume!(topic.is_ok());
        let segment = SegmentName::new(topic.unwrap(), range, id).unwrap();
        prop_assert_eq!(SegmentName::parse(&segment.to_string()), Ok(segment.clone()));
        prop_assert_eq!(SegmentName::of(&segment.to_topic_name()), Ok(segment));
    }

    #[test]
    fn the_halves_of_a_hash_make_the_hash(key in any::<String>(), n in 1u32..100) {
        let hash = KeyHash::of(&key);
        prop_assert_eq!(u32::from(hash.segment()) << 16 | u32::from(hash.bucket()), hash.0);
        prop_assert!(hash.legacy(n) < n);
    }
}

#[test]
fn what_segments_are_not() {
    let topic = |name: &str| TopicName::parse(name).unwrap();
    assert!(SegmentName::of(&topic("topic://t/n/x/0000-ffff-0")).is_err());
    assert!(SegmentName::new(topic("persistent://t/n/x"), HashRange::FULL, 0).is_err());
    assert!(SegmentName::new(topic("topic://t/n/x"), HashRange::FULL, u64::MAX).is_err());
}
