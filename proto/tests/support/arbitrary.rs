//! Messages made from the descriptor of the protocol, so that no message type is forgotten.

use std::sync::LazyLock;

use proptest::prelude::*;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Value as Json, json};
use stc_proto::{Command, fields};

pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/pulsar.bin")).as_slice()).unwrap()
});

/// Number, name and body type of every command.
pub(crate) fn commands() -> Vec<(u32, &'static str, MessageDescriptor)> {
    let base = POOL.get_message_by_name("pulsar.BaseCommand").unwrap();
    (0..=u32::from(u8::MAX))
        .filter_map(|number| {
            let name = Command::name_of(number)?;
            let Kind::Message(body) = base.get_field(number)?.kind() else { return None };
            Some((number, name, body))
        })
        .collect()
}

/// Any command, with any of its optional fields.
pub(crate) fn any_command() -> impl Strategy<Value = Command> {
    let bodies = commands().into_iter().map(|(_, name, body)| {
        message(&body, &[]).prop_map(move |json| fields::command_from_json(name, &json).unwrap()).boxed()
    });
    proptest::strategy::Union::new(bodies)
}

/// Any message of a type, in the form of [`stc_proto::fields`].
pub(crate) fn any_json(name: &str) -> BoxedStrategy<Json> {
    message(&POOL.get_message_by_name(&format!("pulsar.{name}")).unwrap(), &[])
}

/// The fields of a message that is found within messages of the types `above`, except the one that would nest a
/// message id into itself without end.
pub(crate) fn fields_within(
    descriptor: &MessageDescriptor,
    above: &[MessageDescriptor],
) -> (Vec<FieldDescriptor>, Vec<MessageDescriptor>) {
    let endless = |f: &FieldDescriptor| matches!(f.kind(), Kind::Message(inner) if above.contains(&inner));
    let fields = descriptor.fields().filter(|f| !endless(f)).collect();
    (fields, [above, std::slice::from_ref(descriptor)].concat())
}

fn message(descriptor: &MessageDescriptor, above: &[MessageDescriptor]) -> BoxedStrategy<Json> {
    let (fields, above) = fields_within(descriptor, above);
    let fields: Vec<_> = fields.iter().map(|f| field(f, &above)).collect();
    fields.prop_map(|fields| Json::Object(fields.into_iter().flatten().collect())).boxed()
}

fn field(field: &FieldDescriptor, above: &[MessageDescriptor]) -> BoxedStrategy<Option<(String, Json)>> {
    let name = field.name().to_owned();
    let one = value(&field.kind(), above);
    let value = match field {
        f if f.is_list() => {
            // An empty list does not exist on the wire.
            let items = prop::collection::vec(one, 1..3).prop_map(|items| Some(Json::from(items)));
            prop_oneof![Just(None), items].boxed()
        }
        f if f.cardinality() == prost_reflect::Cardinality::Required => one.prop_map(Some).boxed(),
        _ => prop::option::of(one).boxed(),
    };
    value.prop_map(move |value| value.map(|value| (name.clone(), value))).boxed()
}

fn value(kind: &Kind, above: &[MessageDescriptor]) -> BoxedStrategy<Json> {
    match kind {
        Kind::Bool => any::<bool>().prop_map(Json::from).boxed(),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => any::<i32>().prop_map(Json::from).boxed(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => any::<i64>().prop_map(Json::from).boxed(),
        Kind::Uint32 | Kind::Fixed32 => any::<u32>().prop_map(Json::from).boxed(),
        Kind::Uint64 | Kind::Fixed64 => any::<u64>().prop_map(Json::from).boxed(),
        Kind::Float => any::<f32>().prop_map(|v| json!(f64::from(v))).boxed(),
        Kind::Double => any::<f64>().prop_map(Json::from).boxed(),
        Kind::String => any::<String>().prop_map(Json::from).boxed(),
        Kind::Bytes => {
            prop::collection::vec(any::<u8>(), 0..16).prop_map(|bytes| fields::hex(&bytes).into()).boxed()
        }
        Kind::Enum(e) => {
            let names: Vec<_> = e.values().map(|v| v.name().to_owned()).collect();
            prop::sample::select(names).prop_map(Json::from).boxed()
        }
        Kind::Message(inner) => message(inner, above),
    }
}
