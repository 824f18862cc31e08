//! Steps about end-to-end encryption: keys and failure actions as options, and what encrypted entries look like.

use cucumber::{gherkin, then, when};

use super::params::{ProducerName, Topic};
use super::produce::{await_sends, create, deliver, producer_options};
use crate::client::{
    ConsumerCryptoFailure, ConsumerEncryption, Key, Outgoing, ProducerCryptoFailure, ProducerEncryption,
};
use crate::judge::{Step, Trouble};
use crate::stored::{self, StoredMessage};
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

/// `rsa, p256`: the keys that a producer encrypts for. `missing` is a key that its provider does not have.
pub(super) fn recipients(names: &str) -> ProducerEncryption {
    let key = |(name, public, _): &(&str, &str, &str)| Key { name: (*name).into(), pem: (*public).into() };
    ProducerEncryption {
        recipients: names.split(", ").map(str::to_owned).collect(),
        keys: KEYS.iter().map(key).collect(),
        ..ProducerEncryption::default()
    }
}

/// What a producer does with messages that it cannot encrypt: `fail` or `send unencrypted`.
pub(super) fn producer_action(name: &str) -> Result<ProducerCryptoFailure, Trouble> {
    match name {
        "fail" => Ok(ProducerCryptoFailure::Fail),
        "send unencrypted" => Ok(ProducerCryptoFailure::SendUnencrypted),
        other => Err(Trouble(format!("no such action where encrypting fails: {other}"))),
    }
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
#[when(expr = "the application tries to create {producer} on {topic} and to send a message, with")]
async fn try_to_publish(world: &mut World, name: ProducerName, topic: Topic, step: &gherkin::Step) -> Step {
    let mut options = producer_options(world, step)?;
    options.topic = Some(world.topic(&topic.0)?);
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let message = world.next_message(None);
    let published = match world.within(client.create_producer(object, options)).await {
        Ok(id) => world.within(client.send(id, message)).await.map(|_| ()),
        Err(error) => Err(error),
    };
    world.producers.remove(&name.0);
    world.tried(published);
    Ok(())
}

/// The same where both have to succeed.
#[when(expr = "the application creates {producer} on {topic} and sends a message, with")]
async fn publish(world: &mut World, name: ProducerName, topic: Topic, step: &gherkin::Step) -> Step {
    let options = producer_options(world, step)?;
    create(world, THE, &name.0, &topic.0, options).await?;
    let message: Outgoing = world.next_message(Some("key".to_owned()));
    deliver(world, &name.0, message).await
}

/// Everything that is stored, once every send has ended.
async fn entries(world: &mut World, topic: &str) -> Result<Vec<StoredMessage>, Trouble> {
    await_sends(world).await;
    let name = world.topic(topic)?;
    let stored = stored::of(&world.broker().await, &name).await?;
    if stored.is_empty() { Err(Trouble::new("nothing is stored")) } else { Ok(stored) }
}

/// Whether a stored entry shows one of the values that were sent.
fn shows(world: &World, entry: &StoredMessage) -> bool {
    let shown = |value: &str| entry.payload.windows(value.len().max(1)).any(|part| part == value.as_bytes());
    world.sent_texts().any(|(value, _)| shown(value))
}

/// Every entry carries a data key wrapped for each of these, by name, and none shows what was sent.
#[then(expr = "every entry of {topic} is encrypted for {string}")]
async fn encrypted_for(world: &mut World, topic: Topic, names: String) -> Step {
    let mut expected: Vec<&str> = names.split(", ").collect();
    expected.sort_unstable();
    for entry in entries(world, &topic.0).await? {
        let mut seen: Vec<&str> = entry.metadata.encryption_keys.iter().map(|key| key.key.as_str()).collect();
        seen.sort_unstable();
        world.judge(&["API-3.1.7", "CONF-3.9"], seen == expected, || {
            world.rests_on_send_of(&entry.payload);
            format!("an entry is encrypted for {seen:?} instead of {expected:?}")
        });
        world.judge(&["CONF-3.9", "API-3.1.7"], !shows(world, &entry), || {
            world.rests_on_send_of(&entry.payload);
            "an entry shows the value that was sent".to_owned()
        });
    }
    Ok(())
}

/// No entry is encrypted, and each shows what was sent.
#[then(expr = "every entry of {topic} is in the clear")]
async fn in_the_clear(world: &mut World, topic: Topic) -> Step {
    for entry in entries(world, &topic.0).await? {
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
    let stored = entries(world, &topic.0).await?;
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
    let stored = entries(world, THE).await?;
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
