//! Steps about entries: how messages share them, and the bucket hashes that are stamped on them (key-shared §3).

use std::collections::BTreeSet;

use cucumber::then;
use stc_proto::KeyHash;

use super::layout::bucket_starts;
use super::params::{Hash, Topic};
use super::stored::all;
use crate::judge::{Step, Trouble};
use crate::stored::StoredMessage;
use crate::world::{THE, World};

/// The stored entries of a topic, each as its messages.
async fn entries(world: &mut World, topic: &str) -> Result<Vec<Vec<StoredMessage>>, Trouble> {
    let mut entries: Vec<Vec<StoredMessage>> = Vec::new();
    for message in all(world, topic).await? {
        match entries.last_mut() {
            Some(entry) if message.index > 0 => entry.push(message),
            _ => entries.push(vec![message]),
        }
    }
    if entries.is_empty() { Err(Trouble::new("nothing is stored")) } else { Ok(entries) }
}

/// The first message of each stored entry, for what its metadata says and for entries that cannot be read further.
pub(super) async fn heads(world: &mut World, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    Ok(entries(world, topic).await?.into_iter().filter_map(|entry| entry.into_iter().next()).collect())
}

fn bucket_hashes(entry: &[StoredMessage]) -> Vec<u16> {
    entry.iter().filter_map(|m| m.key.as_deref()).map(|k| KeyHash::of(k).bucket()).collect()
}

/// Points at the SEND that brought the entry.
fn rest_on(world: &World, entry: &[StoredMessage]) {
    if let Some(message) = entry.first() {
        world.rests_on_send_of(&message.payload);
    }
}

fn place(entry: &[StoredMessage]) -> String {
    entry
        .first()
        .map(|m| format!("entry {}:{} of {}", m.position.0, m.position.1, m.place()))
        .unwrap_or_default()
}

/// Batches were really made: what the scenario says about them is not said about nothing.
#[then(expr = "some entry of {topic} holds several messages")]
async fn some_batch(world: &mut World, topic: Topic) -> Step {
    let batched = entries(world, &topic.0).await?.iter().any(|e| e.len() > 1);
    if batched {
        Ok(())
    } else {
        Err(Trouble::new("no entry holds several messages: the scenario shows nothing"))
    }
}

/// Every message is an entry of its own.
#[then(expr = "every entry of {topic} holds one message")]
async fn one_each(world: &mut World, topic: Topic) -> Step {
    for entry in entries(world, &topic.0).await? {
        world.judge(&["KS-9.6", "KS-3.7", "COMPAT-3.7"], entry.len() == 1, || {
            rest_on(world, &entry);
            format!("{} holds {} messages", place(&entry), entry.len())
        });
    }
    Ok(())
}

/// No entry holds messages of two buckets of its segment.
#[then(expr = "every entry of {topic} holds messages of one bucket of its segment")]
async fn one_bucket(world: &mut World, topic: Topic) -> Step {
    let layout = world.layout(&topic.0).await?;
    for entry in entries(world, &topic.0).await? {
        let segment = entry.first().and_then(|m| m.segment).and_then(|id| layout.segment(id));
        let Some(segment) = segment else { continue };
        let buckets: BTreeSet<usize> =
            bucket_hashes(&entry).into_iter().map(|hash| segment.buckets.index_of(hash)).collect();
        world.judge(&["KS-3.1", "KS-2.1", "KS-2.3", "KS-2.6", "KS-5.2"], buckets.len() <= 1, || {
            rest_on(world, &entry);
            format!("{} holds messages of buckets {buckets:?}", place(&entry))
        });
    }
    Ok(())
}

/// No entry holds messages of two of the buckets that a pushed layout gave.
#[then(
    regex = r"^every entry of the topic holds messages of one of the buckets that start at ((?:0x[0-9a-f]{4} ?)+)$"
)]
async fn one_given_bucket(world: &mut World, starts: String) -> Step {
    let starts = bucket_starts(&starts)?;
    for entry in entries(world, THE).await? {
        let bucket = |hash: u16| starts.iter().rposition(|start| *start <= hash);
        let buckets: BTreeSet<Option<usize>> = bucket_hashes(&entry).into_iter().map(bucket).collect();
        world.judge(&["KS-2.3", "KS-2.6", "KS-3.1"], buckets.len() <= 1, || {
            rest_on(world, &entry);
            format!("{} holds messages of {} buckets", place(&entry), buckets.len())
        });
    }
    Ok(())
}

/// Every entry with keys is stamped with the smallest and the largest bucket hash of its messages.
#[then(expr = "every entry of {topic} is stamped with the bucket hashes of its messages")]
async fn stamped(world: &mut World, topic: Topic) -> Step {
    for entry in entries(world, &topic.0).await? {
        let hashes = bucket_hashes(&entry);
        let (Some(min), Some(max)) = (hashes.iter().min(), hashes.iter().max()) else { continue };
        let Some(metadata) = entry.first().map(|m| &m.metadata) else { continue };
        let stamps = (metadata.entry_hash_min, metadata.entry_hash_max);
        world.judge(
            &["KS-8.3", "KS-3.4", "KS-3.3", "KS-3.2"],
            stamps.0.is_some() && stamps.1.is_some(),
            || {
                rest_on(world, &entry);
                format!("{} is not stamped", place(&entry))
            },
        );
        let single: &[&str] = if entry.len() == 1 { &["KS-3.3"] } else { &[] };
        let requirements: Vec<&str> =
            single.iter().chain(&["KS-8.3", "KS-3.5", "KS-3.2", "KS-2.1"]).copied().collect();
        world.judge(&requirements, stamps == (Some((*min).into()), Some((*max).into())), || {
            rest_on(world, &entry);
            format!(
                "{} is stamped {:?} to {:?} instead of {min} to {max}",
                place(&entry),
                stamps.0.unwrap_or_default(),
                stamps.1.unwrap_or_default()
            )
        });
    }
    Ok(())
}

/// An entry that has only messages without a key is stamped 0 to 0, or not at all (docs/readings.md).
#[then(expr = "entries of {topic} without keys are stamped 0x0000 or not at all")]
async fn keyless_stamped(world: &mut World, topic: Topic) -> Step {
    let mut keyless = 0;
    for entry in entries(world, &topic.0).await?.iter().filter(|entry| bucket_hashes(entry).is_empty()) {
        keyless += 1;
        let Some(metadata) = entry.first().map(|m| &m.metadata) else { continue };
        let stamps = (metadata.entry_hash_min, metadata.entry_hash_max);
        world.judge(&["KS-3.5", "KS-3.2"], matches!(stamps, (None, None) | (Some(0), Some(0))), || {
            rest_on(world, entry);
            format!("{} has no keys and is stamped {stamps:?}", place(entry))
        });
    }
    if keyless > 0 {
        Ok(())
    } else {
        Err(Trouble::new("every entry has a message with a key: the scenario shows nothing"))
    }
}

/// The newest entry has both stamps equal to this hash. The feature file gives the hash, so that a hash function that
/// both sides share cannot hide its own fault.
#[then(expr = "the entry of the message is stamped {hash} to {hash}")]
async fn stamped_with(world: &mut World, min: Hash, max: Hash) -> Step {
    let entries = entries(world, THE).await?;
    let metadata = entries.last().and_then(|e| e.first()).map(|m| m.metadata.clone()).unwrap_or_default();
    let stamps = (metadata.entry_hash_min, metadata.entry_hash_max);
    world.judge(&["KS-3.4", "KS-3.3"], stamps.0.is_some() && stamps.1.is_some(), || {
        "the entry is not stamped".to_owned()
    });
    world.judge(&["KS-2.1", "KS-3.3"], stamps == (Some(min.0.into()), Some(max.0.into())), || {
        let shown = |stamp: Option<u32>| format!("0x{:04x}", stamp.unwrap_or_default());
        format!(
            "the entry is stamped {} to {} instead of 0x{:04x} to 0x{:04x}",
            shown(stamps.0),
            shown(stamps.1),
            min.0,
            max.0
        )
    });
    Ok(())
}

/// No entry is stamped.
#[then(expr = "no entry of {topic} is stamped")]
async fn unstamped(world: &mut World, topic: Topic) -> Step {
    for entry in entries(world, &topic.0).await? {
        let stamped = entry.first().is_some_and(|m| m.metadata.entry_hash_min.is_some());
        world.judge(&["KS-9.6"], !stamped, || {
            rest_on(world, &entry);
            format!("{} is stamped", place(&entry))
        });
    }
    Ok(())
}
