//! Transactions (client-api §6): the public handle, and what producers and consumers have of one.

mod coordinators;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OnceCell, watch},
    time::{sleep_until, timeout_at},
};

pub(crate) use coordinators::CoordinatorClient;

use crate::{
    client::Shared,
    core::{
        Millis,
        deviant::Deviant,
        error::{Category, Error},
        transaction::{
            Part, TransactionState, TxnId,
            coordinators::Ask,
            handle::{Decision, TxnCore},
        },
    },
};

/// The longest timeout, in milliseconds: no clock has to cope with more.
const CENTURY: Millis = 100 * 366 * 24 * 60 * 60 * 1000;

/// A transaction (client-api §6): what is published and acknowledged in it takes effect all at once when it is committed,
/// or not at all.
///
/// Messages go into it with [`MessageBuilder::transaction`](crate::MessageBuilder::transaction), acknowledgements with
/// [`QueueConsumer::acknowledge_in`](crate::QueueConsumer::acknowledge_in) and
/// [`StreamConsumer::acknowledge_cumulative_in`](crate::StreamConsumer::acknowledge_cumulative_in), on any topics. A
/// transaction that is dropped without an end takes no effect: it times out.
///
/// Cheap to clone; all clones are one transaction.
#[derive(Clone)]
pub struct Transaction {
    pub(crate) txn: Arc<Txn>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.txn.id().to_string();
        f.debug_struct("Transaction").field("id", &id).field("state", &self.state()).finish()
    }
}

impl AsRef<Transaction> for Transaction {
    fn as_ref(&self) -> &Transaction {
        self
    }
}

impl Transaction {
    /// Asks a coordinator for a new transaction.
    pub(crate) async fn open(
        client: Arc<Shared>,
        coordinators: Arc<CoordinatorClient>,
        timeout: Duration,
    ) -> Result<Transaction, Error> {
        let _alive = client.enter()?;
        let ttl = Millis::try_from(timeout.as_millis()).map_or(CENTURY, |ms| ms.min(CENTURY));
        if ttl == 0 {
            let why = "a transaction's timeout is at least 1 ms";
            return Err(Error::new(Category::InvalidConfiguration, why));
        }
        let now = client.clocks.now().mono;
        let endless = client.deviance.is(Deviant::NoTransactionTimeout);
        // Counted from before the request: the coordinator's time is over no earlier.
        let deadline = now + if endless { CENTURY } else { ttl };
        let limit = now + client.operation_timeout.as_millis() as Millis;
        let opened = coordinators.ask(Ask::New(if endless { 0 } else { ttl }), limit).await?;
        let id = opened.ok_or_else(|| Error::new(Category::Unknown, "the new transaction has no id"))?;
        let core = Mutex::new(TxnCore::new(id, deadline, client.deviance));
        let (changed, parts) = (watch::Sender::new(()), Mutex::default());
        Ok(Transaction { txn: Arc::new(Txn { id, core, changed, parts, coordinators, client }) })
    }

    /// How far it is (client-api §6).
    pub fn state(&self) -> TransactionState {
        let now = self.txn.client.clocks.now().mono;
        self.txn.core().state(now)
    }

    /// Makes everything in it take effect at once, in all topics that it touched (client-api §6, *Commit*). Waits for
    /// the sends and acknowledgements that are under way, and for the transaction's coordinator while that is being
    /// elected.
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction has ended or timed out, or when an operation in it failed, which aborts
    /// it. `Timeout` when its outcome is not known after the client's operation timeout: it may be called again then.
    /// `AlreadyClosed` when the client is closed.
    pub async fn commit(&self) -> Result<(), Error> {
        self.txn.end(true).await
    }

    /// Drops everything in it (client-api §6, *Abort*): its messages are never seen, and what it acknowledged is
    /// delivered again.
    ///
    /// # Errors
    /// As for [`Transaction::commit`].
    pub async fn abort(&self) -> Result<(), Error> {
        self.txn.end(false).await
    }
}

/// What handles, producers and consumers share of a transaction.
pub(crate) struct Txn {
    id: TxnId,
    core: Mutex<TxnCore>,
    /// An operation has its result, or the state changed.
    changed: watch::Sender<()>,
    /// What the coordinator was told about. One request for each, however many wait for it.
    parts: Mutex<BTreeMap<Part, Arc<OnceCell<()>>>>,
    coordinators: Arc<CoordinatorClient>,
    client: Arc<Shared>,
}

impl std::fmt::Debug for Txn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Txn").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Txn {
    pub(crate) fn id(&self) -> TxnId {
        self.id
    }

    fn core(&self) -> MutexGuard<'_, TxnCore> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a send or an acknowledgement: the commit waits for it.
    ///
    /// # Errors
    /// `TransactionConflict` when the transaction is not open; `InvalidConfiguration` when it is another client's.
    pub(crate) fn begin(self: &Arc<Self>, client: &Arc<Shared>) -> Result<Operation, Error> {
        if !Arc::ptr_eq(client, &self.client) {
            let why = "the transaction was opened by another client";
            return Err(Error::new(Category::InvalidConfiguration, why));
        }
        self.core().begin(self.client.clocks.now().mono)?;
        Ok(Operation { txn: Some(self.clone()) })
    }

    /// Tells the coordinator what the transaction touches, once.
    ///
    /// # Errors
    /// What the coordinator refuses it with; `Timeout`.
    pub(crate) async fn enlist(&self, part: Part) -> Result<(), Error> {
        let cell = {
            let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
            let topics = parts.keys().any(|known| matches!(known, Part::Topic(_)) && *known != part);
            let unknown = matches!(part, Part::Topic(_)) && topics;
            if self.client.deviance.is(Deviant::SkipsParts)
                || (unknown && self.client.deviance.is(Deviant::FirstPartOnly))
            {
                return Ok(());
            }
            parts.entry(part.clone()).or_default().clone()
        };
        let tell = || async { self.coordinators.ask(Ask::Add(self.id, part), self.limit()).await.map(drop) };
        cell.get_or_try_init(tell).await.map(drop)
    }

    fn limit(&self) -> Millis {
        self.client.clocks.now().mono + self.client.operation_timeout.as_millis() as Millis
    }

    async fn end(&self, commit: bool) -> Result<(), Error> {
        let _alive = self.client.enter()?;
        let limit = self.limit();
        self.core().end(commit, self.client.clocks.now().mono)?;
        self.changed.send_replace(());
        let mut changed = self.changed.subscribe();
        let quiet = async {
            while !self.core().is_quiet() {
                let _ = changed.changed().await;
            }
        };
        let late = |_| Error::timeout("operations of the transaction are still under way");
        timeout_at(self.client.clocks.instant(limit), quiet).await.map_err(late)?;
        let decision = self.core().decide(commit);
        let result = self.coordinators.ask(Ask::End(self.id, decision == Decision::Commit), limit).await;
        let result = result.map(drop);
        self.core().ended(&result);
        self.changed.send_replace(());
        match decision {
            Decision::Abort(Some(reason)) => result.and(Err(self.client.deviance.report(reason))),
            _ => result,
        }
    }

    /// Waits for the end of the transaction, the time-out too. Whether it was committed.
    pub(crate) async fn outcome(&self) -> bool {
        let mut changed = self.changed.subscribe();
        let deadline = self.client.clocks.instant(self.core().deadline());
        loop {
            let state = self.core().state(self.client.clocks.now().mono);
            if state.is_final() {
                return state == TransactionState::Committed;
            }
            tokio::select! {
                biased;
                _ = changed.changed() => {}
                () = sleep_until(deadline), if state == TransactionState::Open => {}
            }
        }
    }
}

/// A send or an acknowledgement in a transaction. One that is dropped without a result has failed.
#[derive(Debug)]
pub(crate) struct Operation {
    txn: Option<Arc<Txn>>,
}

impl Operation {
    /// The transaction; `None` once the operation has its result.
    pub(crate) fn txn(&self) -> Option<&Arc<Txn>> {
        self.txn.as_ref()
    }

    /// The operation has its result.
    pub(crate) fn done(mut self, result: Result<(), Error>) {
        self.finish(result);
    }

    fn finish(&mut self, result: Result<(), Error>) {
        if let Some(txn) = self.txn.take() {
            txn.core().done(result);
            txn.changed.send_replace(());
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.finish(Err(Error::closed("producer or consumer")));
    }
}
