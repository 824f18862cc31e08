//! A session as the client under test of one scenario.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use stc_adapter_protocol::operation as op;
use stc_adapter_protocol::{
    Boundary, Checkpoint, CheckpointOptions, ClientError, ClientId, ClientOptions, ConsumerId, Described,
    EndScenario, MessageId, NamespaceOptions, Operation, Order, Outgoing, ProducerId, ProducerOptions,
    QueueOptions, Received, StreamOptions, TicketId, TransactionId, TransactionState, for_each_operation,
};
use stc_reports::ClientInfo;

use super::factory::Pool;
use super::notes::Notes;
use super::session::Session;
use crate::client::{ClientUnderTest, Reply};

/// How long an adapter may take to close what a scenario left open. One that takes longer is ended.
const TO_CLOSE: Duration = Duration::from_secs(30);

pub(super) struct Adapter {
    /// `None` after the scenario.
    session: RefCell<Option<Rc<Session>>>,
    pool: Arc<Pool>,
    info: ClientInfo,
    notes: Notes,
    /// The end of standard error, once the session serves somebody else.
    stderr: RefCell<Vec<String>>,
}

impl Adapter {
    pub(super) fn new(session: Session, pool: Arc<Pool>, notes: Notes) -> Adapter {
        let info = ClientInfo { name: session.sdk.name.clone(), version: session.sdk.version.clone() };
        let session = RefCell::new(Some(Rc::new(session)));
        Adapter { session, pool, info, notes, stderr: RefCell::default() }
    }

    pub(super) async fn call<O: Operation>(&self, params: O) -> Result<O::Result, ClientError> {
        let session = self.session.borrow().clone();
        let session = session.ok_or_else(|| ClientError::Gone("the scenario is over".to_owned()))?;
        match O::NEEDS {
            Some(capability) if !session.offers.contains(&capability) => {
                Err(ClientError::Unsupported(capability.to_string()))
            }
            _ => session.connection.call(&params, Some(&self.notes)).await,
        }
    }

    async fn end(&self) -> Result<(), ClientError> {
        let ended = tokio::time::timeout(TO_CLOSE, self.call(EndScenario {})).await;
        let ended = ended.unwrap_or_else(|_| {
            let told = format!("the adapter did not answer endScenario within {} s", TO_CLOSE.as_secs());
            Err(ClientError::Gone(told))
        });
        let Some(session) = self.session.take() else { return ended };
        self.stderr.replace(session.stderr());
        // Operations in the background may still hold it; then it is theirs to drop, and a new one is made.
        if ended.is_ok()
            && let Ok(session) = Rc::try_unwrap(session)
        {
            self.pool.give_back(session);
        }
        ended
    }
}

/// One function of the trait for each line of the table.
macro_rules! ask {
    ($(
        $(#[doc = $about:literal])*
        $method:literal $function:ident $Name:ident [$($needs:ident)?]
        { $($field:ident: $type:ty),* } -> $result:ty;
    )*) => {$(
        fn $function(&self, $($field: $type),*) -> Reply<'_, $result> {
            Box::pin(self.call(op::$Name { $($field),* }))
        }
    )*};
}

impl ClientUnderTest for Adapter {
    fn info(&self) -> ClientInfo {
        self.info.clone()
    }

    for_each_operation!(ask);

    fn stop(&self) -> Reply<'_, ()> {
        Box::pin(self.end())
    }

    fn stderr_tail(&self) -> Vec<String> {
        let session = self.session.borrow();
        session.as_ref().map_or_else(|| self.stderr.borrow().clone(), |session| session.stderr())
    }
}
