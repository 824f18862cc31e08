//! The cucumber world: what one scenario has made so far, and the two observers it judges by.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::Method;
use serde_json::Value as Json;
use sim_broker::Control;
use stc_adapter_protocol::Capability;
use stc_proto::{Layout, TopicName};
use tokio::task::JoinHandle;

use crate::client::{
    ApiError, Asked, ClientError, ClientId, ClientOptions, ClientUnderTest, ConsumerId, MessageId, Outgoing,
    ProducerId, Received, Reply, SchemaKind, TicketId, TransactionId, Value,
};
use crate::feature::{Need, Scenario};
use crate::judge::{Finding, Trouble};
use crate::run::{Environment, Opening};
use crate::steps::checkpoint::Reading;
use crate::target::faults::Faults;
use crate::target::{Broker, Setup, layout};
use crate::wire::Wire;

/// How long a client outside of virtual time gets to react to something that it does not answer.
pub const GRACE: Duration = Duration::from_millis(200);

/// How long a client outside of virtual time gets to bring about what a step waits to see; a bound for clients that never
/// do, far beyond what a slow machine takes.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The timeout that most transactions have.
pub const TRANSACTION_TIMEOUT_MS: u64 = 60_000;

/// Name of the one topic, client, producer or consumer of a scenario that has no second one.
pub const THE: &str = "the";

/// A send that a step asked for.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Alias of the producer.
    pub producer: String,
    /// Alias of the topic.
    pub topic: String,
    /// What was sent.
    pub message: Outgoing,
    /// The asynchronous send whose outcome was not asked for yet.
    pub ticket: Option<TicketId>,
    /// How it ended, once that is known.
    pub outcome: Option<Result<MessageId, ClientError>>,
}

/// A message that a consumer gave.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Alias of the consumer.
    pub consumer: String,
    /// The message.
    pub message: Received,
}

/// A producer and the topic that it was made on.
#[derive(Debug, Clone)]
pub struct Producer {
    /// Handle.
    pub id: ProducerId,
    /// Alias of its topic.
    pub topic: String,
    /// The name that the application gave it.
    pub name: Option<String>,
    /// Its schema.
    pub schema: SchemaKind,
}

/// A queue consumer and what it was made with.
#[derive(Debug, Clone)]
pub struct Consumer {
    /// Handle.
    pub id: ConsumerId,
    /// Alias of its topic.
    pub topic: String,
    /// Its subscription.
    pub subscription: String,
}

/// A stream consumer and what it was made with.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Handle; `None` while its subscribe is under way.
    pub id: Option<ConsumerId>,
    /// Alias of its topic.
    pub topic: String,
    /// Its subscription.
    pub subscription: String,
    /// Its name, which its registration carries.
    pub name: String,
}

/// What an operation in the background will give, in one of these forms.
#[derive(Debug)]
pub enum Started {
    /// CreateProducer, for the alias.
    Producer(String, Producer),
    /// Subscribe, for the alias.
    Consumer(String, Consumer),
    /// A message from the consumer of this alias, or nothing when its time was over.
    Message(String, Option<Received>),
    /// Subscribe of a stream consumer, for the alias.
    Stream(String, ConsumerId),
    /// Close, flush or the like.
    Done,
}

/// Why cucumber cannot make a world.
#[derive(Debug, thiserror::Error)]
#[error("a world is made by the driver, which knows the scenario")]
pub struct MadeByDriver;

/// The state of one scenario.
#[derive(cucumber::World)]
#[world(init = Self::refuse)]
pub struct World {
    /// Id of the scenario.
    pub scenario: String,
    requirements: Vec<String>,
    /// Whether it is about transactions.
    transactional: bool,
    environment: Arc<Environment>,
    /// Seed of this scenario.
    pub seed: u64,
    /// How the cluster is to be set up; it starts when something first needs it.
    pub setup: Setup,
    used: RefCell<BTreeSet<Need>>,
    rests_on: Cell<Option<u64>>,
    observes: Cell<bool>,
    broker: Option<Broker>,
    asked: Asked,
    client: Option<Rc<dyn ClientUnderTest>>,
    /// Called when the client has opened a client object, or failed to.
    opened: Box<dyn Fn()>,
    /// Full names of topics by alias.
    pub topics: BTreeMap<String, String>,
    /// The namespace that the scenario is about, `tenant/namespace`, where it is about one.
    pub namespace: Option<String>,
    /// Client objects by alias.
    pub clients: BTreeMap<String, ClientId>,
    /// Definitions of records by the names that steps gave them.
    pub records: BTreeMap<String, String>,
    /// Producers by alias.
    pub producers: BTreeMap<String, Producer>,
    /// Queue consumers by alias.
    pub consumers: BTreeMap<String, Consumer>,
    /// Stream consumers by alias, the open ones and those that are subscribing.
    pub streams: BTreeMap<String, Stream>,
    /// What the application acknowledged of the stream consumers' messages.
    pub acknowledged: BTreeSet<String>,
    /// Transactions by alias.
    pub transactions: BTreeMap<String, TransactionId>,
    /// All sends, in the order of their calls.
    pub sent: Vec<Sent>,
    /// All messages that consumers gave, in order.
    pub deliveries: Vec<Delivery>,
    /// Checkpoint consumers, and what is known of positions.
    pub reading: Reading,
    /// Operations in the background, by what the step calls them.
    pub started: BTreeMap<String, JoinHandle<Result<Started, ClientError>>>,
    /// How the last operation that may fail ended.
    tried: Option<Result<(), ClientError>>,
    /// Numbers that steps remember, such as journal positions, by name.
    pub marks: BTreeMap<String, u64>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("scenario", &self.scenario)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Worlds come from the driver, which knows the scenario; cucumber's own runner is not used.
    fn refuse() -> Result<World, MadeByDriver> {
        Err(MadeByDriver)
    }

    pub(crate) fn new(
        scenario: &Scenario,
        environment: Arc<Environment>,
        seed: u64,
        opened: Box<dyn Fn()>,
    ) -> World {
        World {
            scenario: scenario.id.clone(),
            requirements: scenario.requirements.clone(),
            transactional: scenario.checklist.iter().any(|item| item == Capability::Transactions.as_str()),
            setup: Setup::new(&environment.profile, seed),
            environment,
            seed,
            used: RefCell::default(),
            rests_on: Cell::default(),
            observes: Cell::default(),
            broker: None,
            asked: Asked::default(),
            client: None,
            opened,
            topics: BTreeMap::new(),
            namespace: None,
            clients: BTreeMap::new(),
            records: BTreeMap::new(),
            producers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            streams: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            transactions: BTreeMap::new(),
            sent: Vec::new(),
            deliveries: Vec::new(),
            reading: Reading::default(),
            started: BTreeMap::new(),
            tried: None,
            marks: BTreeMap::new(),
        }
    }

    /// Changes how the cluster is set up. Only before something started it.
    ///
    /// # Errors
    /// When it runs already: the step is in the wrong place.
    pub fn set_up(&mut self, change: impl FnOnce(&mut Setup)) -> Result<(), Trouble> {
        if self.broker.is_some() {
            return Err(Trouble::new("the cluster is set up before anything uses it"));
        }
        self.uses(Need::Control);
        change(&mut self.setup);
        Ok(())
    }

    /// The broker side, started on first use. Ends the scenario as *could not run* when it does not start.
    pub async fn broker(&mut self) -> Broker {
        if let Some(broker) = &self.broker {
            return broker.clone();
        }
        match Broker::start(&self.environment.target, &self.setup).await {
            Ok(broker) => {
                self.broker = Some(broker.clone());
                broker
            }
            Err(e) => Finding::CouldNotRun { reason: format!("the target did not start: {e}") }.raise(),
        }
    }

    /// The broker side, if something started it.
    pub fn started_broker(&self) -> Option<&Broker> {
        self.broker.as_ref()
    }

    /// The control API of the cluster, which is started on first use.
    ///
    /// # Errors
    /// When the target has none: the scenario lacks `@needs-control`.
    pub async fn control(&mut self) -> Result<Control, Trouble> {
        self.uses(Need::Control);
        let cluster = self.broker().await.cluster;
        cluster
            .map(|c| c.control())
            .ok_or_else(|| Trouble::new("the target has no control API: tag the scenario @needs-control"))
    }

    /// What strikes frames and connections. The broker side is started on first use.
    ///
    /// # Errors
    /// When the target strikes nothing: the scenario lacks `@needs-faults`.
    pub async fn faults(&mut self) -> Result<Faults, Trouble> {
        self.uses(Need::Faults);
        let faults = self.broker().await.faults();
        faults.ok_or_else(|| {
            Trouble::new("nothing strikes frames on the target: tag the scenario @needs-faults")
        })
    }

    /// Notes that the scenario cannot do without something that not every target offers.
    pub fn uses(&self, need: Need) {
        self.used.borrow_mut().insert(need);
    }

    /// What the steps so far could not have done without.
    pub fn used(&self) -> BTreeSet<Need> {
        self.used.borrow().clone()
    }

    /// The client under test, started on first use.
    pub async fn client(&mut self) -> Rc<dyn ClientUnderTest> {
        if let Some(client) = &self.client {
            return Rc::clone(client);
        }
        let broker = self.broker().await;
        let opening = Opening { scenario: &self.scenario, seed: self.seed, asked: &self.asked };
        match self.environment.client.start(&broker, opening).await {
            Ok(client) => {
                self.client = Some(Rc::clone(&client));
                client
            }
            Err(e) => Finding::CouldNotRun { reason: format!("the client did not start: {e}") }.raise(),
        }
    }

    /// The client under test, if something started it.
    pub fn started_client(&self) -> Option<Rc<dyn ClientUnderTest>> {
        self.client.clone()
    }

    /// What the client was asked over a protocol and has not answered.
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The client object of this alias, opened on first use.
    pub async fn client_object(&mut self, alias: &str) -> ClientId {
        let opened = self.try_client_object(alias).await;
        self.expect(&[], opened, "building a client")
    }

    /// As [`World::client_object`], where a client may fail as early as this.
    pub async fn try_client_object(&mut self, alias: &str) -> Result<ClientId, ClientError> {
        if let Some(id) = self.clients.get(alias) {
            return Ok(*id);
        }
        let options = self.client_options().await;
        let id = self.open_client(options).await?;
        self.clients.insert(alias.to_owned(), id);
        Ok(id)
    }

    /// A client object with these options.
    pub async fn open_client(&mut self, options: ClientOptions) -> Result<ClientId, ClientError> {
        let opened = self.client().await.open(options).await;
        (self.opened)();
        opened
    }

    /// Options of a client object that no step asked for.
    pub async fn client_options(&mut self) -> ClientOptions {
        let broker = self.broker().await;
        ClientOptions {
            // One address, so that whether a client finds a coordinator elsewhere is never a matter of chance.
            service_url: if self.transactional { broker.first_address() } else { broker.service_url },
            transaction_timeout_ms: self.transactional.then_some(TRANSACTION_TIMEOUT_MS),
            ..ClientOptions::default()
        }
    }

    /// The full name of the topic of this alias.
    ///
    /// # Errors
    /// When no step made it.
    pub fn topic(&self, alias: &str) -> Result<String, Trouble> {
        self.topics
            .get(alias)
            .cloned()
            .ok_or_else(|| Trouble(format!("no step made a topic {}", shown(alias))))
    }

    /// A name for a topic that no other scenario and no other run uses.
    pub fn fresh_name(&self, alias: &str) -> String {
        let slug: String = self
            .scenario
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let alias = if alias == THE { String::new() } else { format!("-{alias}") };
        // A broker elsewhere still has what an earlier run with this seed made.
        let run = if self.environment.target.elsewhere().is_some() { started() } else { String::new() };
        format!("{slug}{alias}-{:08x}{run}", self.seed as u32)
    }

    /// The producer of this alias.
    ///
    /// # Errors
    /// When no step made it.
    pub fn producer(&self, alias: &str) -> Result<Producer, Trouble> {
        self.producers
            .get(alias)
            .cloned()
            .ok_or_else(|| Trouble(format!("no step made a producer {}", shown(alias))))
    }

    /// The queue consumer of this alias.
    ///
    /// # Errors
    /// When no step made it.
    pub fn consumer(&self, alias: &str) -> Result<Consumer, Trouble> {
        self.consumers
            .get(alias)
            .cloned()
            .ok_or_else(|| Trouble(format!("no step made a consumer {}", shown(alias))))
    }

    /// The stream consumer of this alias.
    ///
    /// # Errors
    /// When no step made it.
    pub fn stream(&self, alias: &str) -> Result<Stream, Trouble> {
        self.streams
            .get(alias)
            .cloned()
            .ok_or_else(|| Trouble(format!("no step made a stream consumer {}", shown(alias))))
    }

    /// The transaction of this alias.
    ///
    /// # Errors
    /// When no step opened it.
    pub fn transaction(&self, alias: &str) -> Result<TransactionId, Trouble> {
        let found = self.transactions.get(alias).copied();
        found.ok_or_else(|| Trouble(format!("no step opened a transaction {}", shown(alias))))
    }

    /// Waits until something can be seen in the journal, at most for 30 s; in virtual time they cost nothing. Whether
    /// it came about.
    ///
    /// # Errors
    /// Those of `seen`.
    pub async fn eventually(
        &mut self,
        mut seen: impl FnMut(&mut World) -> Result<bool, Trouble>,
    ) -> Result<bool, Trouble> {
        let step = if self.virtual_time() { 100 } else { 20 };
        for _ in 0..30_000 / step {
            if seen(self)? {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(step)).await;
        }
        seen(self)
    }

    /// The message that would be sent as number `index`, counted from 0. Its value tells it from all others.
    pub fn message(&self, index: usize, key: Option<String>) -> Outgoing {
        Outgoing { key, value: Value::Text(format!("m-{index}")), ..Outgoing::default() }
    }

    /// The next message.
    pub fn next_message(&self, key: Option<String>) -> Outgoing {
        self.message(self.sent.len(), key)
    }

    /// The text messages whose sends succeeded, with their values, in the order of the calls.
    pub fn sent_texts(&self) -> impl Iterator<Item = (&str, &Outgoing)> {
        let succeeded = self.sent.iter().filter(|sent| matches!(sent.outcome, Some(Ok(_))));
        succeeded.filter_map(|sent| match &sent.message.value {
            Value::Text(text) => Some((text.as_str(), &sent.message)),
            _ => None,
        })
    }

    /// Names the wire record that the judgements from here on rest on, by its number; `None` when it is no single one.
    /// Reports mark the record by which a scenario failed. Every step starts with none.
    pub fn rests_on(&self, record: Option<u64>) {
        self.rests_on.set(record);
    }

    /// The wire record that the last judgement rested on.
    pub fn rested_on(&self) -> Option<u64> {
        self.rests_on.get()
    }

    /// What a step asserts in this scenario: those of `candidates` that it cites, the one to blame first. None leaves
    /// everything that the scenario cites in doubt. A step that several kinds of scenario share lists all that it can
    /// stand for.
    pub fn asserted(&self, candidates: &[&str]) -> Vec<String> {
        let cited = |c: &&&str| self.requirements.iter().any(|r| r == **c);
        candidates.iter().filter(cited).map(|c| (*c).to_owned()).collect()
    }

    /// Ends the scenario with *fail* unless `holds`, and blames as [`World::asserted`] says.
    pub fn judge(&self, candidates: &[&str], holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.broken(candidates, message());
        }
    }

    /// Ends the scenario with *fail*, and blames as [`World::asserted`] says.
    pub fn broken(&self, candidates: &[&str], message: impl Into<String>) -> ! {
        Finding::Broken { requirements: self.asserted(candidates), message: message.into() }.raise()
    }

    /// The value of an operation that has to succeed. `what` names the operation for the message.
    pub fn expect<T>(&self, candidates: &[&str], result: Result<T, ClientError>, what: &str) -> T {
        match result {
            Ok(value) => value,
            Err(e) => self.surprise(candidates, e, what),
        }
    }

    /// Ends the scenario because an operation failed that has to succeed.
    pub fn surprise(&self, candidates: &[&str], error: ClientError, what: &str) -> ! {
        match error {
            ClientError::Unsupported(capability) => Finding::Unsupported { capability }.raise(),
            ClientError::Failed(ApiError { category, message, .. }) => {
                self.broken(candidates, format!("{what} failed with {category}: {message}"))
            }
            // That something does not end is seen only by waiting, so it convicts nobody of one requirement.
            ClientError::Hangs(seconds) => {
                let message = format!("{what} does not end: nothing came of it in {seconds} s");
                let message = self.asked.complete(message);
                Finding::Broken { requirements: Vec::new(), message }.raise()
            }
            error @ (ClientError::Gone(_) | ClientError::Breach(_) | ClientError::Fault(_)) => {
                let hint = match error {
                    ClientError::Breach(_) => {
                        "\n`stc adapter-check` tells how an adapter keeps to the protocol"
                    }
                    _ => "",
                };
                let message = format!("{what}: {error}{hint}");
                Finding::Broken { requirements: Vec::new(), message }.raise()
            }
        }
    }

    /// Notes how an operation ended that a step only tries, for a later step to judge. What the client does not offer ends
    /// the scenario here: it is neither a success nor a failure of the operation.
    pub fn tried(&mut self, outcome: Result<(), ClientError>) {
        if let Err(ClientError::Unsupported(capability)) = outcome {
            Finding::Unsupported { capability }.raise();
        }
        self.tried = Some(outcome);
    }

    /// How the operation ended that was tried last.
    ///
    /// # Errors
    /// When no step tried one.
    pub fn outcome(&self) -> Result<Result<(), ClientError>, Trouble> {
        self.tried.clone().ok_or_else(|| Trouble::new("nothing was tried"))
    }

    /// Bounds an operation that has a time-out of its own in the client.
    pub async fn within<T>(&self, operation: Reply<'_, T>) -> Result<T, ClientError> {
        let limit = self.environment.operation_limit();
        tokio::time::timeout(limit, operation).await.unwrap_or(Err(ClientError::Hangs(limit.as_secs())))
    }

    /// Whether the scenario runs under virtual time.
    pub fn virtual_time(&self) -> bool {
        self.environment.target.is_memory()
    }

    /// Lets everything happen that can happen by itself. In memory that is exact: virtual time moves only when nobody
    /// has anything to do. Outside it is [`GRACE`], the one wait that rests on the clock.
    pub async fn settle(&self) {
        let wait = if self.virtual_time() { Duration::from_millis(1) } else { GRACE };
        tokio::time::sleep(wait).await;
    }

    /// The same for a step that only looks, and looks for something to have come about. Outside of virtual time a client
    /// may be slower than any grace, so the driver runs such a step again while it does not hold, for [`PATIENCE`]. What
    /// has happened does not unhappen: what must *not* be there is found at the first look or, as with [`World::settle`],
    /// not at all.
    pub async fn observe(&self) {
        self.observes.set(!self.virtual_time());
        self.settle().await;
    }

    /// The step that observes found what time cannot mend: it is not run again.
    pub fn conclude(&self) {
        self.observes.set(false);
    }

    /// Whether the step that ran since the last call can be run again, see [`World::observe`].
    pub(crate) fn observed(&self) -> bool {
        self.observes.take()
    }

    /// The journal up to now, decoded.
    ///
    /// # Errors
    /// When the target has none: the scenario lacks `@needs-journal`.
    pub fn wire(&self) -> Result<Wire, Trouble> {
        self.uses(Need::Journal);
        let broker = self.broker.as_ref().ok_or_else(|| Trouble::new("nothing has used the cluster yet"))?;
        let records = broker
            .journal()
            .ok_or_else(|| Trouble::new("the target has no journal: tag the scenario @needs-journal"))?;
        Ok(Wire::new(records))
    }

    /// One admin call that must succeed.
    ///
    /// # Errors
    /// [`crate::target::admin::AdminError`] as a fault of the suite.
    pub async fn admin(&mut self, method: Method, path: &str, body: Option<Json>) -> Result<String, Trouble> {
        Ok(self.broker().await.admin.must(method, path, body).await?)
    }

    /// The admin path of a scalable topic, `/admin/v2/scalable/{tenant}/{namespace}/{topic}`.
    ///
    /// # Errors
    /// When the topic's name does not parse.
    pub fn scalable_path(&self, alias: &str) -> Result<String, Trouble> {
        let name = TopicName::parse(&self.topic(alias)?)?;
        Ok(format!("/admin/v2/scalable/{}/{}", name.namespace(), name.local()))
    }

    /// The layout of a topic as the broker has it now.
    ///
    /// # Errors
    /// When the admin REST does not tell it.
    pub async fn layout(&mut self, alias: &str) -> Result<Layout, Trouble> {
        let path = self.scalable_path(alias)?;
        let body = self.admin(Method::GET, &path, None).await?;
        layout::parse(&body).map_err(|e| Trouble(format!("GET {path}: {e}")))
    }
}

/// When this program first asked, as the end of a name.
fn started() -> String {
    static AT: OnceLock<u128> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("-{:x}", AT.get_or_init(now))
}

fn shown(alias: &str) -> String {
    if alias == THE { "without a name".to_owned() } else { format!("{alias:?}") }
}
