//! Steps about transactions: opening them, what is sent and acknowledged in them, their ends, what becomes of it.

use cucumber::{given, then, when};

use super::consume::{self, nth};
use super::params::{ConsumerName, ProducerName, StreamName, TxnName, cycled_keys};
use super::{sends, stream};
use crate::atomicity;
use crate::client::{ClientError, Outgoing, TransactionId, TransactionState};
use crate::feature::Need;
use crate::judge::{Step, Trouble};
use crate::transaction_wire::Transaction;
use crate::world::{Started, THE, TRANSACTION_TIMEOUT_MS, World};

/// What a failed NewTransaction can break.
const OPEN: [&str; 7] =
    ["API-6.4", "WIRE-8.1.6", "WIRE-11.9", "WIRE-8.1.4", "COMPAT-3.5", "COMPAT-3.4", "WIRE-8.1.1"];
/// What a failed commit or abort can.
const END: [&str; 12] = [
    "API-6.7",
    "API-6.8",
    "API-6.1",
    "API-6.2",
    "WIRE-8.1.6",
    "WIRE-8.1.4",
    "WIRE-8.1.3",
    "WIRE-11.9",
    "COMPAT-3.5",
    "WIRE-8.2.2",
    "API-4.2.7",
    "API-4.1.12",
];

// ---- opening ----

/// A transaction with this timeout.
#[given(expr = "{txn} of {int} s")]
#[when(expr = "the application opens {txn} of {int} s")]
async fn open(world: &mut World, name: TxnName, seconds: u64) -> Step {
    let object = world.client_object(THE).await;
    let client = world.client().await;
    let opened = world.within(client.new_transaction(object, seconds * 1000)).await;
    let id = world.expect(&OPEN, opened, "opening the transaction");
    world.transactions.insert(name.0, id);
    Ok(())
}

/// Opening a transaction in the hope of a failure, which a later step judges. A client may look for coordinators as early
/// as when it is built.
#[when("the application tries to open a transaction")]
async fn try_open(world: &mut World) -> Step {
    let opened = match world.try_client_object(THE).await {
        Ok(object) => {
            let client = world.client().await;
            world.within(client.new_transaction(object, TRANSACTION_TIMEOUT_MS)).await.map(|_| ())
        }
        Err(e) => Err(e),
    };
    world.tried(opened);
    Ok(())
}

// ---- operations within ----

/// Messages one after another, each waited for, with keys in turn.
#[given(expr = "{producer} has sent {int} message(s) with {int} key(s) in {txn}")]
#[when(expr = "{producer} sends {int} message(s) with {int} key(s) in {txn}")]
async fn sends(world: &mut World, name: ProducerName, count: usize, keys: usize, txn: TxnName) -> Step {
    for key in cycled_keys(count, keys) {
        let message = within(world, Some(key), &txn)?;
        sends::deliver(world, &name.0, message).await?;
    }
    Ok(())
}

/// One message with a key.
#[when(expr = "{producer} sends a message with key {string} in {txn}")]
async fn send_keyed(world: &mut World, name: ProducerName, key: String, txn: TxnName) -> Step {
    let message = within(world, Some(key), &txn)?;
    sends::deliver(world, &name.0, message).await
}

/// A send in the hope of a failure, which a later step judges.
#[when(expr = "{producer} tries to send a message in {txn}")]
async fn try_send(world: &mut World, name: ProducerName, txn: TxnName) -> Step {
    let message = within(world, None, &txn)?;
    sends::try_deliver(world, &name.0, message).await
}

/// Asynchronous sends with keys in turn; nothing is waited for.
#[when(expr = "{producer} starts to send {int} message(s) with {int} key(s) in {txn}")]
async fn starts(world: &mut World, name: ProducerName, count: usize, keys: usize, txn: TxnName) -> Step {
    let transaction = world.transaction(&txn.0)?;
    let messages = sends::numbered(world, cycled_keys(count, keys).map(Some)).into_iter();
    let within = |message| Outgoing { transaction: Some(transaction), ..message };
    sends::start(world, &name.0, messages.map(within).collect()).await
}

fn within(world: &World, key: Option<String>, txn: &TxnName) -> Result<Outgoing, Trouble> {
    Ok(Outgoing { transaction: Some(world.transaction(&txn.0)?), ..world.next_message(key) })
}

/// Acknowledges one of the messages that the consumer gave. A conflict may show now or at the commit.
#[when(expr = "{consumer} acknowledges message number {int} of those it received in {txn}")]
async fn acknowledge(world: &mut World, name: ConsumerName, number: usize, txn: TxnName) -> Step {
    let handle = nth(world, &name.0, number)?;
    let (consumer, transaction) = (world.consumer(&name.0)?.id, world.transaction(&txn.0)?);
    let client = world.client().await;
    let done = world.within(client.acknowledge_in(consumer, handle, transaction)).await;
    accepted(world, done);
    Ok(())
}

/// Acknowledges the message that the stream consumer gave last, and with it everything before.
#[when(expr = "{stream} acknowledges its last message in {txn}")]
async fn acknowledge_last(world: &mut World, name: StreamName, txn: TxnName) -> Step {
    let last = stream::own(world, &name.0).last().map(|message| message.handle);
    let last = last.ok_or_else(|| Trouble::new("the consumer gave no message"))?;
    let (consumer, transaction) = (stream::handle(world, &name.0)?, world.transaction(&txn.0)?);
    let client = world.client().await;
    let done = world.within(client.acknowledge_cumulative_in(consumer, last, transaction)).await;
    accepted(world, done);
    Ok(())
}

fn accepted(world: &World, done: Result<(), ClientError>) {
    match done {
        Err(ClientError::Failed(error)) if error.category == "TransactionConflict" => {}
        done => {
            world.expect(&["API-6.6", "API-4.2.7", "API-4.1.12"], done, "acknowledging in the transaction")
        }
    }
}

// ---- ends ----

/// Commits; it has to succeed.
#[when(expr = "the application commits {txn}")]
async fn commit(world: &mut World, txn: TxnName) -> Step {
    let outcome = end(world, &txn, true).await?;
    world.expect(&END, outcome, "the commit");
    world.settle().await;
    Ok(())
}

/// Aborts; it has to succeed.
#[when(expr = "the application aborts {txn}")]
async fn abort(world: &mut World, txn: TxnName) -> Step {
    let outcome = end(world, &txn, false).await?;
    world.expect(&END, outcome, "the abort");
    world.settle().await;
    Ok(())
}

/// A commit in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to commit {txn}")]
async fn try_commit(world: &mut World, txn: TxnName) -> Step {
    let outcome = end(world, &txn, true).await?;
    world.tried(outcome);
    Ok(())
}

/// Two transactions acknowledged one message. Which acknowledgement came first is the client's affair, as it may send them
/// when the calls have ended; the other transaction cannot commit. It is called "refused" from here on.
#[then(expr = "{txn} and {txn} cannot both commit")]
async fn one_commits(world: &mut World, one: TxnName, other: TxnName) -> Step {
    let outcomes = [end(world, &one, true).await?, end(world, &other, true).await?];
    let requirements = ["ERR-2.13", "API-6.1"];
    let (refused, error) = match outcomes {
        [Err(error), Ok(())] => (one, error),
        [Ok(()), Err(error)] => (other, error),
        [Ok(()), Ok(())] => {
            let both = "both transactions committed, and both had acknowledged the message";
            world.broken(&requirements, both.to_owned())
        }
        [Err(error), Err(_)] => world.surprise(&requirements, error, "the commit of either transaction"),
    };
    world.transactions.insert("refused".to_owned(), world.transaction(&refused.0)?);
    world.tried(Err(error));
    Ok(())
}

/// An abort in the hope of a failure, which a later step judges.
#[when(expr = "the application tries to abort {txn}")]
async fn try_abort(world: &mut World, txn: TxnName) -> Step {
    let outcome = end(world, &txn, false).await?;
    world.tried(outcome);
    Ok(())
}

async fn end(world: &mut World, txn: &TxnName, commit: bool) -> Result<Result<(), ClientError>, Trouble> {
    let transaction = world.transaction(&txn.0)?;
    let client = world.client().await;
    let ending = if commit { client.commit(transaction) } else { client.abort(transaction) };
    Ok(world.within(ending).await)
}

/// A commit that is under way while the scenario goes on.
#[when(expr = "the application starts to commit {txn}")]
async fn start_commit(world: &mut World, txn: TxnName) -> Step {
    let transaction = world.transaction(&txn.0)?;
    let client = world.client().await;
    let task = tokio::task::spawn_local(async move {
        client.commit(transaction).await?;
        Ok(Started::Done)
    });
    world.started.insert(format!("commit {}", txn.0), task);
    world.settle().await;
    Ok(())
}

/// That commit is waited for and has to succeed.
#[when(expr = "the commit of {txn} has ended")]
async fn committed(world: &mut World, txn: TxnName) -> Step {
    let task = world.started.remove(&format!("commit {}", txn.0));
    let task = task.ok_or_else(|| Trouble::new("no commit was started"))?;
    let ended = world
        .within(Box::pin(async move { task.await.map_err(|e| ClientError::Gone(e.to_string()))? }))
        .await;
    world.expect(&END, ended, "the commit");
    Ok(())
}

/// That commit is still under way.
#[then(expr = "the commit of {txn} is still under way")]
async fn under_way(world: &mut World, txn: TxnName) -> Step {
    world.settle().await;
    let task = world.started.get(&format!("commit {}", txn.0));
    let task = task.ok_or_else(|| Trouble::new("no commit was started"))?;
    world.judge(&["WIRE-8.1.6", "API-6.1", "API-6.7"], !task.is_finished(), || {
        "the commit ended although it had to wait".to_owned()
    });
    Ok(())
}

// ---- judging ----

/// The state that the client tells: open, committing, committed, aborted, timed-out or error.
#[then(expr = "{txn} is {word}")]
async fn state(world: &mut World, txn: TxnName, expected: String) -> Step {
    let transaction = world.transaction(&txn.0)?;
    let client = world.client().await;
    let state = world.within(client.transaction_state(transaction)).await;
    let state = match world.expect(&["API-6.9"], state, "asking for the state") {
        TransactionState::Open => "open",
        TransactionState::Committing => "committing",
        TransactionState::Aborting => "aborting",
        TransactionState::Committed => "committed",
        TransactionState::Aborted => "aborted",
        TransactionState::Error => "error",
        TransactionState::TimedOut => "timed-out",
    };
    world.judge(&["API-6.9", "API-6.4", "API-6.3"], state == expected, || {
        format!("the transaction is {state} instead of {expected}")
    });
    Ok(())
}

/// Nothing that was sent in the transaction was received.
#[then(expr = "no message of {txn} was received")]
async fn none_received(world: &mut World, txn: TxnName) -> Step {
    let transaction = world.transaction(&txn.0)?;
    let of = texts(world, transaction);
    let came = world.deliveries.iter().map(|d| d.message.text()).find(|text| of.contains(text));
    let requirements = ["API-6.2", "API-6.3", "API-6.8", "API-6.1", "API-3.2.8"];
    if let Some(text) = came {
        world
            .broken(&requirements, format!("{text:?} came, which belongs to a transaction without a commit"));
    }
    if of.is_empty() { Err(Trouble::new("nothing was sent in the transaction")) } else { Ok(()) }
}

fn texts(world: &World, transaction: TransactionId) -> Vec<String> {
    let of = world.sent.iter().filter(|sent| sent.message.transaction == Some(transaction));
    let text = |value: &crate::client::Value| match value {
        crate::client::Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    of.filter_map(|sent| text(&sent.message.value)).collect()
}

/// The consumer gives, in whatever order, everything that was sent in the transaction, and acknowledges it.
#[when(expr = "{consumer} receives and acknowledges everything of {txn}")]
async fn everything(world: &mut World, name: ConsumerName, txn: TxnName) -> Step {
    let transaction = world.transaction(&txn.0)?;
    sends::await_sends(world).await;
    let count = texts(world, transaction).len();
    if count == 0 {
        return Err(Trouble::new("nothing was sent in the transaction"));
    }
    consume::receives_and_acknowledges(world, name, count).await
}

/// What went over the wire about each transaction agrees with all or nothing.
#[then("the journal shows every transaction whole or not at all")]
async fn atomic(world: &mut World) -> Step {
    world.settle().await;
    let wire = world.wire()?;
    let found = atomicity::violations(wire.records());
    let requirements = ["API-6.1", "API-6.2", "API-6.7", "API-6.8", "API-6.3"];
    if let Some(first) = found.violations.first() {
        world.broken(&requirements, first.clone());
    }
    if found.transactions == 0 { Err(Trouble::new("the journal has no transaction")) } else { Ok(()) }
}

/// A message or acknowledgement of the transaction is on its way, so its end was not asked for.
#[then(expr = "the end of the transaction was not asked for")]
async fn not_ended(world: &mut World) -> Step {
    world.settle().await;
    let ends = Transaction::all(&world.wire()?).into_iter().flat_map(|t| t.ends).count();
    world.judge(&["API-6.1", "API-6.7"], ends == 0, || {
        "the coordinator was asked for the end while an operation of the transaction was under way".to_owned()
    });
    Ok(())
}

/// Every segment that was written to in a transaction was added to it before, and no other topic.
#[then(expr = "every transaction was told of exactly the segments that it wrote to")]
async fn partitions(world: &mut World) -> Step {
    world.settle().await;
    let all = Transaction::all(&world.wire()?);
    let mut sends = 0;
    for transaction in &all {
        for (n, topic) in &transaction.sends {
            sends += 1;
            let added = transaction.partitions.iter().any(|(added, name)| added < n && name == topic);
            world.rests_on(Some(*n));
            world.judge(&["WIRE-8.2.1", "WIRE-8.2.2", "API-6.7"], added, || {
                format!("{topic} was written to in {} before its coordinator was told", transaction.id())
            });
        }
        for (n, added) in &transaction.partitions {
            let written = transaction.sends.iter().any(|(_, topic)| topic == added);
            world.rests_on(Some(*n));
            world.judge(&["WIRE-8.2.1"], written, || {
                format!("{added} was added to {} and never written to", transaction.id())
            });
        }
    }
    if sends == 0 {
        world.broken(&["WIRE-8.2.1", "API-3.2.8", "WIRE-8.2.2"], "no SEND belongs to a transaction");
    }
    Ok(())
}

/// A transaction wrote to this many segments.
#[then(expr = "a transaction wrote to {int} segments")]
async fn wrote_to(world: &mut World, count: usize) -> Step {
    let all = Transaction::all(&world.wire()?);
    let segments = |t: &Transaction| {
        t.sends.iter().map(|(_, topic)| topic.as_str()).collect::<std::collections::BTreeSet<_>>().len()
    };
    match all.iter().map(segments).max() {
        Some(found) if found == count => Ok(()),
        found => {
            Err(Trouble(format!("a transaction wrote to {found:?} segments, the scenario is about {count}")))
        }
    }
}

/// Transactions are made of the protocol's own commands, none of them those between brokers.
#[then("the client used the transaction commands of clients only")]
async fn commands(world: &mut World) -> Step {
    world.uses(Need::Journal);
    let wire = world.wire()?;
    let names: Vec<&str> = wire.from_clients().map(|(_, _, command)| command.name()).collect();
    for wanted in ["NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"] {
        world.judge(&["WIRE-8.1"], names.contains(&wanted), || format!("the client sent no {wanted}"));
    }
    for foreign in ["END_TXN_ON_PARTITION", "END_TXN_ON_SUBSCRIPTION"] {
        world.judge(&["WIRE-8.1"], !names.contains(&foreign), || {
            format!("the client sent {foreign}, which is for brokers")
        });
    }
    Ok(())
}
