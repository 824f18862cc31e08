//! Steps about end-to-end encryption: keys and failure actions as options, and what encrypted entries look like.

use std::collections::BTreeSet;

use cucumber::{gherkin, then, when};

use super::entries::heads;
use super::params::Topic;
use super::produce::producer_options;
use crate::client::{
    ConsumerCryptoFailure, ConsumerEncryption, Key, ProducerCryptoFailure, ProducerEncryption,
};
use crate::judge::{Step, Trouble};
use crate::stored::StoredMessage;
use crate::world::{THE, World};

/// The key pairs that scenarios name: the name, the public half, the private half. Nobody else uses them.
const KEYS: [(&str, &str, &str); 4] = [
    (
        "rsa",
        include_str!("../../../features/keys/rsa-public.pem"),
        include_str!("../../../features/keys/rsa-private.pem"),
    ),
    (
        "p256",
        include_str!("../../../features/keys/p256-public.pem"),
        include_str!("../../../features/keys/p256-private.pem"),
    ),
    (
        "p384",
        include_str!("../../../features/keys/p384-public.pem"),
        include_str!("../../../features/keys/p384-private.pem"),
    ),
    (
        "p521",
        include_str!("../../../features/keys/p521-public.pem"),
        include_str!("../../../features/keys/p521-private.pem"),
    ),
];

/// An option of a producer: `encryption` (`rsa, p256`, and `missing` for a key that its provider does not have),
/// `encryption failure` (`fail`, `send unencrypted`). Says whether it was one.
pub(super) fn producer_option(
    made: &mut Option<ProducerEncryption>,
    name: &str,
    value: &str,
) -> Result<bool, Trouble> {
    match name {
        "encryption" => {
            let key =
                |(name, public, _): &(&str, &str, &str)| Key { name: (*name).into(), pem: (*public).into() };
            let policy = made.get_or_insert_default();
            policy.recipients = value.split(", ").map(str::to_owned).collect();
            policy.keys = KEYS.iter().map(key).collect();
        }
        "encryption failure" => {
            made.get_or_insert_default().on_failure = match value {
                "fail" => ProducerCryptoFailure::Fail,
                "send unencrypted" => ProducerCryptoFailure::SendUnencrypted,
                other => return Err(Trouble(format!("no such action where encrypting fails: {other}"))),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// An option of a consumer of any kind: `private keys` (`rsa, p256`, `none`, or `p384 as p256` for a wrong one), `decryption failure` (`fail`, `discard`,
/// `consume`). Says whether it was one.
pub(super) fn consumer_option(
    made: &mut Option<ConsumerEncryption>,
    name: &str,
    value: &str,
) -> Result<bool, Trouble> {
    match name {
        "private keys" => {
            let names: Vec<&str> = value.split(", ").filter(|name| *name != "none").collect();
            made.get_or_insert_default().keys = names.into_iter().map(private).collect::<Result<_, _>>()?;
        }
        "decryption failure" => {
            made.get_or_insert_default().on_failure = match value {
                "fail" => ConsumerCryptoFailure::Fail,
                "discard" => ConsumerCryptoFailure::Discard,
                "consume" => ConsumerCryptoFailure::Consume,
                other => return Err(Trouble(format!("no such action where decrypting fails: {other}"))),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn private(text: &str) -> Result<Key, Trouble> {
    let (key, name) = text.split_once(" as ").unwrap_or((text, text));
    let found = KEYS.iter().find(|(known, ..)| *known == key);
    let (_, _, pem) = found.ok_or_else(|| Trouble(format!("there is no key {key:?}")))?;
    Ok(Key { name: name.to_owned(), pem: (*pem).to_owned() })
}

/// A producer is created and sends one message; the first of the two that fails is how it ended. Some clients ask for keys
/// when they create a producer, others when they first encrypt.
#[when(expr = "the application tries to create a producer on {topic} and to send a message, with")]
async fn try_to_publish(world: &mut World, topic: Topic, step: &gherkin::Step) -> Step {
    let mut options = producer_options(world, step)?;
    options.topic = Some(world.topic(&topic.0)?);
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let message = world.next_message(None);
    let published = match world.within(client.create_producer(object, options)).await {
        Ok(id) => world.within(client.send(id, message)).await.map(|_| ()),
        Err(error) => Err(error),
    };
    world.tried(published);
    Ok(())
}

/// Whether a stored entry shows one of the values that were sent.
fn shows(world: &World, entry: &StoredMessage) -> bool {
    let shown = |value: &str| entry.payload.windows(value.len().max(1)).any(|part| part == value.as_bytes());
    world.sent_texts().any(|(value, _)| shown(value))
}

/// Every entry carries a data key wrapped for each of these, by name, and none shows what was sent: `rsa, p256`, or
/// `rsa or p384` where some entries are for the one and some for the other.
#[then(expr = "every entry of {topic} is encrypted for {string}")]
async fn encrypted_for(world: &mut World, topic: Topic, names: String) -> Step {
    let sorted = |names: &str| {
        let mut names: Vec<String> = names.split(", ").map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    let expected: BTreeSet<Vec<String>> = names.split(" or ").map(sorted).collect();
    let mut found = BTreeSet::new();
    for entry in heads(world, &topic.0).await? {
        let mut seen: Vec<String> =
            entry.metadata.encryption_keys.iter().map(|key| key.key.clone()).collect();
        seen.sort_unstable();
        world.judge(&["API-3.1.7", "CONF-3.9"], expected.contains(&seen), || {
            world.rests_on_send_of(&entry.payload);
            format!("an entry is encrypted for {seen:?} instead of {names}")
        });
        found.insert(seen);
        world.judge(&["CONF-3.9", "API-3.1.7"], !shows(world, &entry), || {
            world.rests_on_send_of(&entry.payload);
            "an entry shows the value that was sent".to_owned()
        });
    }
    world.judge(&["API-3.1.7", "CONF-3.9"], found == expected, || {
        format!("the entries are encrypted for {found:?}, and none for others of {names}")
    });
    Ok(())
}

/// No entry is encrypted, and each shows what was sent.
#[then(expr = "every entry of {topic} is in the clear")]
async fn in_the_clear(world: &mut World, topic: Topic) -> Step {
    for entry in heads(world, &topic.0).await? {
        let clear = entry.metadata.encryption_keys.is_empty() && shows(world, &entry);
        world.judge(&["CONF-3.9"], clear, || {
            world.rests_on_send_of(&entry.payload);
            "an entry is encrypted although no key was to be had".to_owned()
        });
    }
    Ok(())
}

/// No entry says that it is a batch of several messages. What an encrypted entry is cannot be seen, but it says so.
#[then(expr = "every entry of {topic} says that it holds one message")]
async fn one_each(world: &mut World, topic: Topic) -> Step {
    let stored = heads(world, &topic.0).await?;
    for entry in &stored {
        let count = entry.metadata.num_messages_in_batch.unwrap_or(1);
        world.judge(&["KS-8.2"], count == 1, || {
            world.rests_on_send_of(&entry.payload);
            format!("an encrypted entry says that it holds {count} messages")
        });
    }
    world.judge(&["KS-8.2"], stored.len() == world.sent.len(), || {
        format!("{} messages are stored in {} entries", world.sent.len(), stored.len())
    });
    Ok(())
}

/// What the application got last is what is stored in the last entry, byte for byte.
#[then("the last message has the payload of the stored entry")]
async fn as_stored(world: &mut World) -> Step {
    let stored = heads(world, THE).await?;
    let last = world.deliveries.last().ok_or_else(|| Trouble::new("nothing was received"))?;
    let expected = stored.last().map(|entry| &entry.payload);
    world.judge(&["CONF-3.9"], expected == Some(&last.message.payload), || {
        format!(
            "the application got {} bytes, and the encrypted entry has {} others",
            last.message.payload.len(),
            expected.map(Vec::len).unwrap_or_default()
        )
    });
    Ok(())
}
