//! Entries and batches: damage never passes, and no claim of a batch is believed.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used)]

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use stc_proto::{
    Entry,
    batch::{self, BatchError},
    entry::{EntryError, with_broker_metadata},
    fields,
    pulsar::{BrokerEntryMetadata, MessageMetadata, SingleMessageMetadata},
};

mod support;

use support::arbitrary::any_json;

fn any_entry() -> impl Strategy<Value = Entry> {
    (any_json("MessageMetadata"), prop::collection::vec(any::<u8>(), 0..50)).prop_map(|(json, payload)| {
        let metadata: MessageMetadata = fields::from_json("MessageMetadata", &json).unwrap();
        Entry::new(metadata, payload.into())
    })
}

fn any_batch() -> impl Strategy<Value = Vec<(SingleMessageMetadata, Bytes)>> {
    let message = (any_json("SingleMessageMetadata"), prop::collection::vec(any::<u8>(), 0..20));
    let message = message.prop_map(|(json, payload)| {
        let mut metadata: SingleMessageMetadata = fields::from_json("SingleMessageMetadata", &json).unwrap();
        metadata.payload_size = payload.len() as i32;
        (metadata, Bytes::from(payload))
    });
    prop::collection::vec(message, 0..5)
}

fn encode(batch: &[(SingleMessageMetadata, Bytes)]) -> Bytes {
    let mut buf = BytesMut::new();
    for (metadata, payload) in batch {
        batch::append(&mut buf, metadata.clone(), payload);
    }
    buf.freeze()
}

proptest! {
    #[test]
    fn an_entry_survives_with_and_without_broker_metadata(entry in any_entry(), index in any::<u64>()) {
        let bytes = entry.to_bytes();
        let parsed = Entry::parse(bytes.clone()).unwrap();
        prop_assert!(parsed.checksum.is_some());
        prop_assert_eq!(&Entry { checksum: None, ..parsed }, &entry);
        let broker = BrokerEntryMetadata { index: Some(index), ..Default::default() };
        let parsed = Entry::parse(with_broker_metadata(&broker, &bytes)).unwrap();
        prop_assert_eq!(parsed.broker.as_ref(), Some(&broker));
        prop_assert_eq!(parsed.to_bytes(), with_broker_metadata(&broker, &bytes));
    }

    #[test]
    fn a_truncated_entry_is_refused(entry in any_entry(), end in any::<prop::sample::Index>()) {
        let bytes = entry.to_bytes();
        prop_assert!(Entry::parse(bytes.slice(..end.index(bytes.len()))).is_err());
    }

    #[test]
    fn a_flipped_bit_is_noticed(entry in any_entry(), bit in any::<prop::sample::Index>()) {
        let mut bytes = entry.to_bytes().to_vec();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Entry::parse(bytes.into()).is_err());
    }

    #[test]
    fn soup_is_an_entry_or_an_error(
        head in prop::sample::select(vec![&[][..], &[0x0e, 0x01], &[0x0e, 0x02], &[0x0e, 0x02, 0, 0, 0, 0, 0x0e, 0x01]]),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let _ = Entry::parse([head, &bytes].concat().into());
        let _ = Entry::parse([head, &[0, 0, 0, 9], &bytes].concat().into());
    }

    #[test]
    fn a_batch_survives(batch in any_batch()) {
        let bytes = encode(&batch);
        prop_assert_eq!(batch::read(bytes.clone(), batch.len()).unwrap(), batch.clone());
        // A count that is too high is found out, however high it is.
        for count in [batch.len() + 1, usize::MAX] {
            prop_assert_eq!(batch::read(bytes.clone(), count), Err(BatchError::Truncated { index: batch.len() }));
        }
    }

    #[test]
    fn a_truncated_batch_is_refused(batch in any_batch(), end in any::<prop::sample::Index>()) {
        let bytes = encode(&batch);
        prop_assume!(!bytes.is_empty());
        prop_assert!(batch::read(bytes.slice(..end.index(bytes.len())), batch.len()).is_err());
    }

    #[test]
    fn soup_is_a_batch_or_an_error(size in 0u32..20, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = batch::read([&size.to_be_bytes()[..], &bytes].concat().into(), usize::MAX);
    }
}

#[test]
fn a_negative_payload_size_is_refused() {
    let metadata = SingleMessageMetadata { payload_size: -1, ..Default::default() };
    let mut bytes = BytesMut::new();
    bytes.put_u32(prost::Message::encoded_len(&metadata) as u32);
    prost::Message::encode(&metadata, &mut bytes).unwrap();
    bytes.put_slice(b"payload");
    assert_eq!(batch::read(bytes.freeze(), 1), Err(BatchError::Malformed { index: 0 }));
}

#[test]
fn a_wrong_checksum_is_told_apart_from_a_short_entry() {
    let good = Entry::new(MessageMetadata::default(), Bytes::from_static(b"x")).to_bytes();
    let mut bad = good.to_vec();
    *bad.last_mut().unwrap() ^= 1;
    assert!(matches!(Entry::parse(bad.into()), Err(EntryError::Checksum { .. })));
    assert_eq!(Entry::parse(good.slice(..4)), Err(EntryError::Truncated("checksum")));
    // An entry without a checksum is read as well.
    assert_eq!(Entry::parse(good.slice(6..)).unwrap().checksum, None);
}
