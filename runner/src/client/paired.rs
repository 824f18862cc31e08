//! Two clients as one: what one produces the other consumes. So a scenario about messages on their way becomes one
//! about two SDKs: keys, order, schemas, compression, batches, properties.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use stc_adapter_protocol::{Capability, for_each_operation};
use stc_reports::ClientInfo;
use tokio::sync::OnceCell;

use super::{
    Boundary, Checkpoint, CheckpointOptions, ClientError, ClientId, ClientOptions, ClientUnderTest,
    ConsumerId, Described, MessageId, NamespaceOptions, Order, Outgoing, ProducerId, ProducerOptions,
    QueueOptions, Received, Reply, StreamOptions, TicketId, TransactionId, TransactionState,
};
use crate::feature::Scenario;
use crate::run::{ClientFactory, Opening};
use crate::target::Broker;

/// Makes pairs of clients.
pub struct PairedFactory {
    /// Makes the one that produces.
    pub producing: Arc<dyn ClientFactory>,
    /// Makes the one that consumes.
    pub consuming: Arc<dyn ClientFactory>,
}

impl PairedFactory {
    /// Whether a scenario is about messages that one client produces and another may consume, told by what is received
    /// or stored alone.
    pub fn fits(scenario: &Scenario) -> bool {
        let says = |words: &[&str]| {
            scenario.steps.iter().any(|step| words.iter().any(|word| step.value.contains(word)))
        };
        // A transaction cannot span what two clients do.
        let in_transactions = scenario.checklist.iter().any(|c| c == Capability::Transactions.as_str());
        // Serialized identifiers are each SDK's own: one cannot read those of another.
        let across = says(&[" its send returned"]);
        scenario.needs.is_empty()
            && !across
            && !in_transactions
            && says(&[" sends ", " has sent ", " send "])
            && says(&[" receives ", " gave ", " gives "])
    }
}

impl ClientFactory for PairedFactory {
    fn info(&self) -> ClientInfo {
        let (producing, consuming) = (self.producing.info(), self.consuming.info());
        ClientInfo {
            name: format!("{} {} to {}", producing.name, producing.version, consuming.name),
            version: consuming.version,
        }
    }

    fn missing(&self, scenario: &Scenario) -> Option<String> {
        self.producing.missing(scenario).or_else(|| self.consuming.missing(scenario))
    }

    fn start<'a>(&'a self, broker: &'a Broker, opening: Opening<'a>) -> Reply<'a, Rc<dyn ClientUnderTest>> {
        Box::pin(async move {
            let producing = self.producing.start(broker, opening).await?;
            // Names that it makes up differ from those of the other.
            let seed = opening.seed.wrapping_add(1 << 32);
            let consuming = self.consuming.start(broker, Opening { seed, ..opening }).await?;
            let paired = Paired { producing, consuming, clients: RefCell::default(), last: Cell::new(0) };
            Ok(Rc::new(paired) as Rc<dyn ClientUnderTest>)
        })
    }
}

struct Paired {
    producing: Rc<dyn ClientUnderTest>,
    consuming: Rc<dyn ClientUnderTest>,
    clients: RefCell<BTreeMap<ClientId, Rc<Objects>>>,
    last: Cell<u64>,
}

/// What stands for one client object.
struct Objects {
    options: ClientOptions,
    producing: ClientId,
    /// Made when something is first consumed: a scenario that only produces has one client.
    consuming: OnceCell<ClientId>,
}

impl Paired {
    fn objects(&self, client: ClientId) -> Result<Rc<Objects>, ClientError> {
        let found = self.clients.borrow().get(&client).cloned();
        found.ok_or_else(|| ClientError::Gone("there is no such client".to_owned()))
    }

    async fn consuming(&self, client: ClientId) -> Result<ClientId, ClientError> {
        let objects = self.objects(client)?;
        let opened = objects.consuming.get_or_try_init(|| self.consuming.open(objects.options.clone()));
        opened.await.copied()
    }
}

/// Who does an operation, by what it is about.
macro_rules! route {
    // Both do these.
    (open $($rest:tt)*) => {};
    (close $($rest:tt)*) => {};
    (renew_token $($rest:tt)*) => {};
    (create_producer { $client:ident: $id:ty, $options:ident: $type:ty } $result:ty) => {
        fn create_producer(&self, $client: $id, $options: $type) -> Reply<'_, $result> {
            Box::pin(async move {
                let client = self.objects($client)?.producing;
                self.producing.create_producer(client, $options).await
            })
        }
    };
    (new_transaction { $client:ident: $id:ty, $timeout:ident: $type:ty } $result:ty) => {
        fn new_transaction(&self, $client: $id, $timeout: $type) -> Reply<'_, $result> {
            Box::pin(async move {
                let client = self.objects($client)?.producing;
                self.producing.new_transaction(client, $timeout).await
            })
        }
    };
    ($function:ident { transaction: $id:ty } $result:ty) => {
        fn $function(&self, transaction: $id) -> Reply<'_, $result> {
            self.producing.$function(transaction)
        }
    };
    // A transaction belongs to one client: that which produces.
    ($function:ident { consumer: $id:ty, handle: $handle:ty, transaction: $transaction:ty } $result:ty) => {
        fn $function(&self, _: $id, _: $handle, _: $transaction) -> Reply<'_, $result> {
            let why = "a transaction of two clients".to_owned();
            Box::pin(async move { Err(ClientError::Unsupported(why)) })
        }
    };
    ($function:ident { client: $id:ty, $options:ident: $type:ty } $result:ty) => {
        fn $function(&self, client: $id, $options: $type) -> Reply<'_, $result> {
            Box::pin(async move {
                let client = self.consuming(client).await?;
                self.consuming.$function(client, $options).await
            })
        }
    };
    ($function:ident { producer: $id:ty $(, $field:ident: $type:ty)* } $result:ty) => {
        fn $function(&self, producer: $id $(, $field: $type)*) -> Reply<'_, $result> {
            self.producing.$function(producer $(, $field)*)
        }
    };
    ($function:ident { ticket: $id:ty } $result:ty) => {
        fn $function(&self, ticket: $id) -> Reply<'_, $result> {
            self.producing.$function(ticket)
        }
    };
    // Consumers, and identifiers, which come from consumers: the forms of two SDKs have nothing in common.
    ($function:ident { $($field:ident: $type:ty),* } $result:ty) => {
        fn $function(&self, $($field: $type),*) -> Reply<'_, $result> {
            self.consuming.$function($($field),*)
        }
    };
}

macro_rules! routes {
    ($(
        $(#[doc = $about:literal])*
        $method:literal $function:ident $Name:ident [$($needs:ident)?]
        { $($parameters:tt)* } -> $result:ty;
    )*) => {
        $(route! { $function { $($parameters)* } $result })*
    };
}

impl ClientUnderTest for Paired {
    fn info(&self) -> ClientInfo {
        self.producing.info()
    }

    fn open(&self, options: ClientOptions) -> Reply<'_, ClientId> {
        Box::pin(async move {
            let producing = self.producing.open(options.clone()).await?;
            self.last.set(self.last.get() + 1);
            let id = ClientId(self.last.get());
            let objects = Objects { options, producing, consuming: OnceCell::new() };
            self.clients.borrow_mut().insert(id, Rc::new(objects));
            Ok(id)
        })
    }

    fn renew_token(&self, client: ClientId, token: String) -> Reply<'_, ()> {
        Box::pin(async move {
            let objects = self.objects(client)?;
            if let Some(consuming) = objects.consuming.get() {
                self.consuming.renew_token(*consuming, token.clone()).await?;
            }
            self.producing.renew_token(objects.producing, token).await
        })
    }

    fn close(&self, client: ClientId) -> Reply<'_, ()> {
        Box::pin(async move {
            let objects = self.objects(client)?;
            if let Some(consuming) = objects.consuming.get() {
                self.consuming.close(*consuming).await?;
            }
            self.producing.close(objects.producing).await
        })
    }

    for_each_operation!(routes);

    fn stop(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            // The second is ended even if the first does not end well.
            let consuming = self.consuming.stop().await;
            self.producing.stop().await.and(consuming)
        })
    }

    fn stderr_tail(&self) -> Vec<String> {
        let mut lines = self.producing.stderr_tail();
        lines.extend(self.consuming.stderr_tail());
        lines
    }
}
