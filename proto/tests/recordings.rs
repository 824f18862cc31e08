//! Every frame of the recordings (`recordings/README.md`) is rebuilt from its row and read again.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use stc_proto::{
    Decoder, Entry, Frame, Layout, batch,
    fields::{self, unhex},
    pulsar::{MessageMetadata, ScalableTopicDag, SingleMessageMetadata},
};

mod support;

/// Takes the one frame of these bytes off a decoder.
fn decode(bytes: &Bytes) -> Frame {
    let mut buf = BytesMut::from(bytes.as_ref());
    let frame = Decoder::default().decode(&mut buf).unwrap().expect("a whole frame");
    assert!(buf.is_empty());
    frame
}

#[test]
fn every_command_is_rebuilt_from_its_fields() {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut lengths = 0;
    for row in support::rows().iter().filter(|row| row.is_frame()) {
        let command = fields::command_from_json(&row.kind, &row.fields).unwrap();
        assert_eq!(command.name(), row.kind);
        let frame = decode(&Frame::from(command.clone()).to_bytes());
        assert_eq!(frame, Frame::from(command), "{}", row.place());
        assert_eq!(frame.command.fields(), row.fields, "{}", row.place());
        let mut encoded = BytesMut::new();
        frame.command.encode(&mut encoded);
        assert_eq!(encoded.len(), frame.command.encoded_len(), "{}", row.place());
        if !row.rewritten {
            assert_eq!(Some(encoded.len()), row.cmd_len, "{}", row.place());
            lengths += 1;
        }
        *counts.entry(row.kind.clone()).or_default() += 1;
    }
    assert_eq!((counts.len(), counts.values().sum::<usize>(), lengths), (49, 6083, 5334), "{counts:#?}");
    for (kind, count) in [("SEND", 541), ("MESSAGE", 651), ("ACK", 134), ("SCALABLE_TOPIC_UPDATE", 342)] {
        assert_eq!(counts[kind], count, "{kind}");
    }
}

#[test]
fn every_entry_is_rebuilt_with_its_checksum() {
    let mut entries = 0;
    for row in support::rows() {
        let Some(recorded) = &row.metadata else { continue };
        let metadata: MessageMetadata = fields::from_json("MessageMetadata", recorded).unwrap();
        let payload = row.payload();
        let command = fields::command_from_json(&row.kind, &row.fields).unwrap();
        let bytes = Entry::new(metadata.clone(), payload.clone().into()).to_bytes();
        let frame = decode(&Frame::with_payload(command, bytes).to_bytes());
        let entry = Entry::parse(frame.payload.expect("an entry")).unwrap();
        assert_eq!(entry.payload, payload, "{}", row.place());
        assert_eq!(entry.metadata, metadata, "{}", row.place());
        assert_eq!(&fields::to_json("MessageMetadata", &entry.metadata), recorded, "{}", row.place());
        let checksum = entry.checksum.map(|c| format!("{c:08x}"));
        assert_eq!(checksum, row.crc32c, "{}", row.place());
        entries += 1;
    }
    assert_eq!(entries, 541 + 651);
}

#[test]
fn every_batch_is_read_and_rebuilt() {
    let (mut batches, mut messages) = (0, 0);
    for row in support::rows().iter().filter(|row| !row.batch.is_empty()) {
        let payload = Bytes::from(row.payload());
        let read = batch::read(payload.clone(), row.batch.len()).unwrap();
        let mut rebuilt = BytesMut::new();
        for ((metadata, message), recorded) in read.into_iter().zip(&row.batch) {
            let json = fields::to_json("SingleMessageMetadata", &metadata);
            assert_eq!(json, recorded.single_metadata, "{}", row.place());
            assert_eq!(message, unhex(&recorded.payload_hex).unwrap(), "{}", row.place());
            let metadata: SingleMessageMetadata = fields::from_json("SingleMessageMetadata", &json).unwrap();
            batch::append(&mut rebuilt, metadata, &message);
            messages += 1;
        }
        assert_eq!(rebuilt, payload, "{}", row.place());
        batches += 1;
    }
    assert_eq!((batches, messages), (53, 190));
}

#[test]
fn every_layout_that_the_broker_pushed_is_valid() {
    let mut layouts = 0;
    for row in support::rows().iter().filter(|row| row.kind == "SCALABLE_TOPIC_UPDATE") {
        let Some(dag) = row.fields.get("dag") else { continue };
        let dag: ScalableTopicDag = fields::from_json("ScalableTopicDAG", dag).unwrap();
        let layout = Layout::from_dag(&dag).unwrap_or_else(|e| panic!("{}: {e}", row.place()));
        let addresses = ScalableTopicDag { segments: layout.to_dag().segments, ..dag.clone() };
        assert_eq!(addresses, dag, "{}", row.place());
        layouts += 1;
    }
    assert_eq!(layouts, 338);
}
