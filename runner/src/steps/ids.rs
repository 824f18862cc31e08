//! Steps about message identifiers as values: bytes, order, both ends of a topic.

use std::cmp::Ordering;

use cucumber::{then, when};

use super::checkpoint::reader;
use super::params::{ConsumerName, ReaderName};
use crate::client::{Boundary, MessageId};
use crate::judge::{Step, Trouble};
use crate::world::World;

pub(super) async fn compare(world: &mut World, one: &MessageId, other: &MessageId) -> Ordering {
    let compared = world.client().await.compare_ids(one.clone(), other.clone()).await;
    world.expect(&["DATA-4.2", "DATA-4.4"], compared, "comparing two identifiers").into()
}

fn received(world: &World, alias: &str) -> Result<Vec<(MessageId, Option<String>, String)>, Trouble> {
    let reader = reader(world, alias)?;
    Ok(reader.received.iter().map(|m| (m.id.clone(), m.key.clone(), m.text())).collect())
}

/// Any two identifiers of the topic can be compared: different messages are in some order, and the order is total.
#[then(expr = "the identifiers that {reader} gave are in one total order")]
async fn total(world: &mut World, name: ReaderName) -> Step {
    let messages = received(world, &name.0)?;
    let mut order = vec![vec![Ordering::Equal; messages.len()]; messages.len()];
    for (i, (one, _, _)) in messages.iter().enumerate() {
        for (j, (other, _, _)) in messages.iter().enumerate() {
            let compared = compare(world, one, other).await;
            if let Some(cell) = order.get_mut(i).and_then(|row| row.get_mut(j)) {
                *cell = compared;
            }
        }
    }
    let at = |i: usize, j: usize| order.get(i).and_then(|row| row.get(j)).copied();
    for i in 0..messages.len() {
        for j in 0..messages.len() {
            let sound = (at(i, j) == Some(Ordering::Equal)) == (i == j)
                && at(i, j) == at(j, i).map(Ordering::reverse);
            world.judge(&["DATA-4.2"], sound, || {
                format!("messages {i} and {j} compare as {:?} and as {:?}", at(i, j), at(j, i))
            });
            for k in 0..messages.len() {
                let less = |a, b| at(a, b) == Some(Ordering::Less);
                world.judge(&["DATA-4.2"], !(less(i, j) && less(j, k)) || less(i, k), || {
                    format!("{i} is before {j} and {j} before {k}, and {i} is not before {k}")
                });
            }
        }
    }
    if messages.len() < 3 { Err(Trouble::new("too few messages were received")) } else { Ok(()) }
}

/// The identifiers of one key ascend in the order in which its messages came.
#[then(expr = "the identifiers of each key that {reader} gave ascend")]
async fn ascend(world: &mut World, name: ReaderName) -> Step {
    let messages = received(world, &name.0)?;
    let mut judged = 0;
    for (i, (id, key, value)) in messages.iter().enumerate() {
        for (later, _, later_value) in messages.iter().skip(i + 1).filter(|(_, other, _)| other == key) {
            judged += 1;
            let order = compare(world, id, later).await;
            world.judge(&["DATA-4.3"], order == Ordering::Less, || {
                format!(
                    "{value:?} was published before {later_value:?}; their identifiers compare as {order:?}"
                )
            });
        }
    }
    if judged == 0 { Err(Trouble::new("no two messages of one key were received")) } else { Ok(()) }
}

/// Every identifier restored from its bytes is the same identifier, and gives the same bytes.
#[then(expr = "the identifiers that {reader} gave survive as bytes")]
async fn survive(world: &mut World, name: ReaderName) -> Step {
    let messages = received(world, &name.0)?;
    for (id, _, value) in &messages {
        let restored = world.client().await.restore_id(id.clone()).await;
        let restored = world.expect(&["DATA-4.4"], restored, "restoring an identifier");
        let order = compare(world, id, &restored).await;
        world.judge(&["DATA-4.4"], order == Ordering::Equal && restored.bytes == id.bytes, || {
            format!("the identifier of {value:?} is another one once it is restored")
        });
    }
    if messages.is_empty() { Err(Trouble::new("nothing was received")) } else { Ok(()) }
}

/// The earliest identifier is before all, the latest behind all, and both survive as bytes.
#[then(expr = "every identifier that {reader} gave lies between the earliest and the latest")]
async fn between(world: &mut World, name: ReaderName) -> Step {
    let messages = received(world, &name.0)?;
    for (boundary, side) in [(Boundary::Earliest, Ordering::Less), (Boundary::Latest, Ordering::Greater)] {
        let end = world.client().await.boundary_id(boundary).await;
        let end = world.expect(&["DATA-4.6"], end, "asking for an end of the topic");
        let restored = world.client().await.restore_id(end.clone()).await;
        let restored = world.expect(&["DATA-4.6", "DATA-4.4"], restored, "restoring an end of the topic");
        for (id, _, value) in &messages {
            let order = compare(world, &restored, id).await;
            world.judge(&["DATA-4.6"], order == side, || {
                format!("{boundary:?} compares to the identifier of {value:?} as {order:?}")
            });
        }
    }
    if messages.is_empty() { Err(Trouble::new("nothing was received")) } else { Ok(()) }
}

/// Acknowledges by identifiers that went through bytes.
#[when(expr = "{consumer} acknowledges message number {int} of those it received by its restored identifier")]
async fn acknowledge(world: &mut World, name: ConsumerName, number: usize) -> Step {
    let mut own = world.deliveries.iter().filter(|d| d.consumer == name.0);
    let id = own
        .nth(number.saturating_sub(1))
        .map(|d| d.message.id.clone())
        .ok_or_else(|| Trouble(format!("the consumer gave fewer than {number} messages")))?;
    let consumer = world.consumer(&name.0)?;
    let client = world.client().await;
    let done = world.within(client.acknowledge_id(consumer.id, id)).await;
    world.expect(&["DATA-4.4"], done, "acknowledging by a restored identifier");
    world.settle().await;
    Ok(())
}
