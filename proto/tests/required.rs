//! Dropping any required field of any message is noticed; adding fields that nobody knows is not.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};
use stc_proto::{Entry, FrameError, batch, entry::EntryError, frame::decode_command, required::MissingField};

mod support;

use support::arbitrary::{POOL, commands, fields_within};

/// A message with every field of it and below it, repeated ones once.
fn full(descriptor: &MessageDescriptor) -> DynamicMessage {
    full_within(descriptor, &[])
}

fn full_within(descriptor: &MessageDescriptor, above: &[MessageDescriptor]) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    let (fields, above) = fields_within(descriptor, above);
    for field in fields {
        let value = match field.kind() {
            Kind::Message(inner) => Value::Message(full_within(&inner, &above)),
            Kind::Enum(e) => Value::EnumNumber(e.values().next().unwrap().number()),
            kind => Value::default_value(&kind),
        };
        let value = if field.is_list() { Value::List(vec![value]) } else { value };
        message.set_field(&field, value);
    }
    message
}

/// For each required field in or below a message: the message without it, and the error that is due.
fn each_without(message: &DynamicMessage) -> Vec<(DynamicMessage, MissingField)> {
    let mut all = Vec::new();
    for field in message.descriptor().fields() {
        if field.cardinality() == Cardinality::Required {
            let mut without = message.clone();
            without.clear_field(&field);
            all.push((without, missing(&field)));
        }
        if !message.has_field(&field) {
            continue;
        }
        let inner = match message.get_field(&field).into_owned() {
            Value::Message(inner) => inner,
            Value::List(items) => match items.into_iter().next() {
                Some(Value::Message(inner)) => inner,
                _ => continue,
            },
            _ => continue,
        };
        for (inner, error) in each_without(&inner) {
            let mut without = message.clone();
            let inner = Value::Message(inner);
            without.set_field(&field, if field.is_list() { Value::List(vec![inner]) } else { inner });
            all.push((without, error));
        }
    }
    all
}

fn missing(field: &FieldDescriptor) -> MissingField {
    MissingField { message: field.parent_message().name().to_owned(), field: field.name().to_owned() }
}

/// An encoded `BaseCommand`.
fn base_command(number: u32, body: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    prost::encoding::uint32::encode(1, &number, &mut bytes);
    prost::encoding::bytes::encode(number, &body.to_vec(), &mut bytes);
    bytes.freeze()
}

fn sized(bytes: &[u8]) -> Bytes {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat().into()
}

#[test]
fn each_required_field_is_missed() {
    // Which fields were dropped, as message and field.
    let mut dropped = BTreeSet::new();
    for (number, name, body) in commands() {
        let body = full(&body);
        assert!(decode_command(base_command(number, &body.encode_to_vec())).is_ok(), "{name}");
        for (body, error) in each_without(&body) {
            let result = decode_command(base_command(number, &body.encode_to_vec()));
            assert_eq!(result, Err(FrameError::Missing(error.clone())), "{name}");
            dropped.insert((error.message, error.field));
        }
    }
    let metadata = full(&POOL.get_message_by_name("pulsar.MessageMetadata").unwrap());
    assert!(Entry::parse(sized(&metadata.encode_to_vec())).is_ok());
    for (metadata, error) in each_without(&metadata) {
        let result = Entry::parse(sized(&metadata.encode_to_vec()));
        assert_eq!(result, Err(EntryError::Missing(error.clone())));
        dropped.insert((error.message, error.field));
    }
    let single = full(&POOL.get_message_by_name("pulsar.SingleMessageMetadata").unwrap());
    assert!(batch::read(sized(&single.encode_to_vec()), 1).is_ok());
    for (single, error) in each_without(&single) {
        assert!(batch::read(sized(&single.encode_to_vec()), 1).is_err(), "{error}");
        dropped.insert((error.message, error.field));
    }
    let required: BTreeSet<_> = POOL
        .all_messages()
        .flat_map(|message| message.fields().collect::<Vec<_>>())
        .filter(|field| field.cardinality() == Cardinality::Required)
        .map(|field| (missing(&field).message, missing(&field).field))
        .collect();
    let never: Vec<_> = required.difference(&dropped).collect();
    assert_eq!(never, [&("BaseCommand".into(), "type".into())], "frames.rs drops the type");
    assert!(required.len() > 140, "only {} required fields", required.len());
}

/// The largest number of required fields that the check can keep track of.
#[test]
fn no_message_has_more_required_fields_than_bits() {
    let most = POOL
        .all_messages()
        .map(|m| m.fields().filter(|f| f.cardinality() == Cardinality::Required).count())
        .max();
    assert!(most.is_some_and(|most| (2..=64).contains(&most)), "{most:?}");
}

#[test]
fn unknown_fields_are_ignored_in_every_command() {
    let unknown = |buf: &mut Vec<u8>| {
        prost::encoding::uint64::encode(1000, &u64::MAX, buf);
        prost::encoding::string::encode(1001, &"from the future".to_owned(), buf);
        prost::encoding::fixed64::encode(1002, &1, buf);
        prost::encoding::fixed32::encode(1003, &1, buf);
    };
    let commands = commands();
    assert!(commands.len() >= 71, "only {} commands", commands.len());
    for (number, name, body) in commands {
        let mut body = full(&body).encode_to_vec();
        let known = decode_command(base_command(number, &body)).unwrap();
        unknown(&mut body);
        let mut command = base_command(number, &body).to_vec();
        unknown(&mut command);
        assert_eq!(decode_command(command.into()), Ok(known), "{name}");
    }
}
