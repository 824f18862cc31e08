//! The check that no required field is missing.
//!
//! prost reads an absent required field as its default, so a SEND without a sequence id would count as sequence id
//! 0. The encoded bytes still tell the difference: this module walks them by the descriptor of `pulsar.proto`.

use std::sync::LazyLock;

use bytes::Buf;
use prost::encoding::{self, WireType};
use prost_reflect::{Cardinality, Kind, MessageDescriptor};
use thiserror::Error;

use crate::{command::Command, fields};

/// A required field that is absent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} without its required field {field}")]
pub struct MissingField {
    /// The message type, such as `CommandSend`.
    pub message: String,
    /// The field's name on the wire.
    pub field: String,
}

/// What the walk needs of one message type.
#[derive(Debug, Default)]
struct Shape {
    name: String,
    /// Number and name of each required field; at most 64 of them.
    required: Vec<(u32, String)>,
    /// Field number and index into the table, for fields that are messages.
    nested: Vec<(u32, usize)>,
    /// Whether this type or one below it has required fields: walking the others finds nothing.
    walk: bool,
}

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let types: Vec<MessageDescriptor> = fields::pool().all_messages().collect();
    let index = |m: &MessageDescriptor| types.iter().position(|t| t == m);
    let mut shapes: Vec<Shape> = types
        .iter()
        .map(|m| {
            let required: Vec<_> = m
                .fields()
                .filter(|f| f.cardinality() == Cardinality::Required)
                .map(|f| (f.number(), f.name().to_owned()))
                .collect();
            let nested = m
                .fields()
                .filter_map(|f| match f.kind() {
                    Kind::Message(inner) => index(&inner).map(|i| (f.number(), i)),
                    _ => None,
                })
                .collect();
            Shape { name: m.name().to_owned(), walk: !required.is_empty(), required, nested }
        })
        .collect();
    // Types nest a few levels deep: repeat until nothing changes.
    loop {
        let walked: Vec<bool> = shapes.iter().map(|s| s.walk).collect();
        let mut changed = false;
        for shape in &mut shapes {
            let walk = shape.walk || shape.nested.iter().any(|(_, i)| walked.get(*i) == Some(&true));
            changed |= walk != shape.walk;
            shape.walk = walk;
        }
        if !changed {
            return shapes;
        }
    }
});

/// Which shape belongs to the body of each command number.
static COMMANDS: LazyLock<Vec<Option<usize>>> =
    LazyLock::new(|| (0..128).map(|number| Command::body_type(number).and_then(shape)).collect());

/// A message type that [`check_message`] takes.
pub(crate) type Type = LazyLock<Option<usize>>;
pub(crate) static METADATA: Type = LazyLock::new(|| shape("MessageMetadata"));
pub(crate) static SINGLE_METADATA: Type = LazyLock::new(|| shape("SingleMessageMetadata"));

fn shape(name: &str) -> Option<usize> {
    SHAPES.iter().position(|s| s.name == name)
}

/// Checks the body of the command with this number. Bytes that are not protobuf pass: decoding refuses them.
pub(crate) fn check_command(number: u32, body: &[u8]) -> Result<(), MissingField> {
    match COMMANDS.get(number as usize) {
        Some(Some(shape)) => check(*shape, body, 0),
        _ => Ok(()),
    }
}

/// Checks an encoded message of this type. Bytes that are not protobuf pass here too.
pub(crate) fn check_message(message: &Type, bytes: &[u8]) -> Result<(), MissingField> {
    message.map_or(Ok(()), |shape| check(shape, bytes, 0))
}

/// Deeper messages are not walked; prost refuses to decode them.
const MAX_DEPTH: usize = 100;

fn check(shape: usize, mut bytes: &[u8], depth: usize) -> Result<(), MissingField> {
    let Some(shape) = SHAPES.get(shape) else { return Ok(()) };
    if !shape.walk || depth > MAX_DEPTH {
        return Ok(());
    }
    let mut seen = 0u64;
    while bytes.has_remaining() {
        let Ok((field, wire)) = encoding::decode_key(&mut bytes) else { return Ok(()) };
        if let Some(i) = shape.required.iter().position(|(number, _)| *number == field) {
            seen |= 1 << i;
        }
        let nested = shape.nested.iter().find(|(number, _)| *number == field);
        match (wire, nested) {
            (WireType::LengthDelimited, Some((_, inner))) => {
                let Ok(len) = encoding::decode_varint(&mut bytes) else { return Ok(()) };
                let Some((body, rest)) =
                    usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len))
                else {
                    return Ok(());
                };
                check(*inner, body, depth + 1)?;
                bytes = rest;
            }
            _ => {
                if encoding::skip_field(wire, field, &mut bytes, Default::default()).is_err() {
                    return Ok(());
                }
            }
        }
    }
    match shape.required.iter().enumerate().find(|(i, _)| seen & (1 << i) == 0) {
        None => Ok(()),
        Some((_, (_, field))) => Err(MissingField { message: shape.name.clone(), field: field.clone() }),
    }
}
