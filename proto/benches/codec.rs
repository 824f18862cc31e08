//! What a frame costs: `cargo bench -p stc-proto`.
#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a benchmark may fail

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use stc_proto::{Command, Decoder, Entry, Frame, KeyHash, Layout, frame::decode_command, pulsar::*};

/// A keyed and stamped message of 1 KiB.
fn entry() -> Entry {
    let metadata = MessageMetadata {
        producer_name: "producer-seg-1".into(),
        sequence_id: 123_456,
        publish_time: 1_700_000_000_000,
        properties: vec![KeyValue { key: "origin".into(), value: "benchmark".into() }],
        partition_key: Some("key-0".into()),
        uncompressed_size: Some(1024),
        schema_version: Some(Bytes::from_static(&[0; 8])),
        entry_hash_min: Some(0xF8BF),
        entry_hash_max: Some(0xF8BF),
        ..Default::default()
    };
    Entry::new(metadata, Bytes::from(vec![7; 1024]))
}

fn frames() -> [(&'static str, Frame); 3] {
    let id = MessageIdData { ledger_id: 71, entry_id: 123_456, ..Default::default() };
    let send = CommandSend { producer_id: 3, sequence_id: 123_456, ..Default::default() };
    let message = CommandMessage { consumer_id: 3, message_id: id.clone(), ..Default::default() };
    let ack = CommandAck { consumer_id: 3, message_id: vec![id], ..Default::default() };
    [
        ("SEND", Frame::with_payload(send, entry().to_bytes())),
        ("MESSAGE", Frame::with_payload(message, entry().to_bytes())),
        ("ACK", ack.into()),
    ]
}

fn frame(c: &mut Criterion) {
    for (name, frame) in frames() {
        let bytes = frame.to_bytes();
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("encode", |b| {
            let mut buf = BytesMut::with_capacity(4096);
            b.iter(|| {
                buf.clear();
                frame.encode(black_box(&mut buf));
            });
        });
        // The copy into the buffer stands for the read from a socket and is not timed.
        group.bench_function("decode", |b| {
            b.iter_batched_ref(
                || BytesMut::from(&bytes[..]),
                |buf| Decoder::default().decode(black_box(buf)).unwrap(),
                BatchSize::SmallInput,
            );
        });
        let mut command = BytesMut::new();
        frame.command.encode(&mut command);
        let command = command.freeze();
        group.bench_function("decode command, checked", |b| {
            b.iter(|| decode_command(black_box(command.clone())))
        });
        group.bench_function("decode command, prost alone", |b| {
            b.iter(|| <BaseCommand as prost::Message>::decode(black_box(command.clone())).unwrap());
        });
        group.finish();
    }
}

fn parts(c: &mut Criterion) {
    let bytes = entry().to_bytes();
    c.bench_function("entry parse", |b| b.iter(|| Entry::parse(black_box(bytes.clone())).unwrap()));
    let entry = entry();
    c.bench_function("entry encode", |b| b.iter(|| black_box(&entry).to_bytes()));
    c.bench_function("key hash", |b| b.iter(|| KeyHash::of(black_box("customer-000123"))));
    let (_, Frame { command, .. }) = frames().into_iter().next().unwrap();
    c.bench_function("command as JSON", |b| b.iter(|| Command::fields(black_box(&command))));
    let layout = Layout::initial(64, 64, 0);
    c.bench_function("route over 64 segments", |b| {
        b.iter(|| layout.route(black_box(KeyHash(0xE337_F8BF))).is_some())
    });
}

criterion_group!(benches, frame, parts);
criterion_main!(benches);
