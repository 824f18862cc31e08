//! One world: a small cluster in memory, applications, a reader, disturbances, and the verdict. Its seed decides all
//! of it, and its time is virtual.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use sim_broker::core::{BrokerId, ClusterConfig, profile::Profile};
use sim_broker::net::SimCluster;
use stc_runner::atomicity;
use stc_runner::client::reference::{Deviant, ReferenceFactory};
use stc_runner::client::{
    Asked, Batching, ClientId, ClientOptions, ClientUnderTest, ConsumerId, ProducerId, ProducerOptions,
    QueueOptions, StreamOptions,
};
use stc_runner::run::{ClientFactory, Opening};
use stc_runner::target::Broker;
use stc_runner::target::admin::{Admin, Method};
use stc_vectors::corpus::Random;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::Figures;
use super::applications::{Application, End, Ledger, Worker, message};
use super::disturbances::Disturber;

/// How many brokers a world has.
pub const BROKERS: u32 = 3;
/// How many coordinators.
pub const COORDINATORS: u32 = 4;
/// What applications take from, and where they publish.
pub const TOPICS: [&str; 2] = [WORK, RESULTS];

const WORK: &str = "public/default/work";
const RESULTS: &str = "public/default/results";

/// How many messages there are to work on.
const AMOUNT: usize = 20;
/// After this long without a message nothing more will come.
const SILENCE_MS: u64 = 30_000;
/// The longest that applications may take: far more than all their timeouts.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// Longer than the timeout of any transaction.
const TIMEOUTS: Duration = Duration::from_secs(60);

/// Runs the world of a seed; what happened in it, and what contradicts all or nothing.
///
/// # Errors
/// When it cannot be set up.
pub fn run(seed: u64, deviant: Option<Deviant>) -> anyhow::Result<(Figures, Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    LocalSet::new().block_on(&runtime, async {
        let world = World::new(seed, deviant).await?;
        let judged = world.run().await;
        world.broker.shutdown().await;
        judged
    })
}

struct World {
    broker: Broker,
    cluster: SimCluster,
    client: Rc<dyn ClientUnderTest>,
    object: ClientId,
    random: RefCell<Random>,
    ledger: Rc<RefCell<Ledger>>,
}

impl World {
    async fn new(seed: u64, deviant: Option<Deviant>) -> anyhow::Result<World> {
        let profile = Profile::built_in("spec-1.0")?;
        let config = ClusterConfig {
            brokers: BROKERS,
            coordinators: COORDINATORS,
            seed,
            ..ClusterConfig::new(profile)
        };
        let cluster = SimCluster::in_memory(config);
        let router = sim_broker::admin::router(cluster.clone(), BrokerId(0));
        let broker = Broker::simulated(cluster.clone(), Admin::in_process(router, None), true);
        for topic in TOPICS {
            let path = format!("/admin/v2/scalable/{topic}?numInitialSegments=2");
            broker.admin.must(Method::PUT, &path, None).await?;
        }
        let opening = Opening { scenario: "transactions", seed, asked: &Asked::default() };
        let client = ReferenceFactory { deviant }.start(&broker, opening).await?;
        let options = ClientOptions { service_url: broker.service_url.clone(), ..ClientOptions::default() };
        let object = client.open(options).await?;
        let random = RefCell::new(Random::new(seed));
        Ok(World { broker, cluster, client, object, random, ledger: Rc::default() })
    }

    async fn run(&self) -> anyhow::Result<(Figures, Vec<String>)> {
        self.fill().await.context("no work could be published")?;
        let reader = self.queue(RESULTS, "reader").await?;
        let worker = self.worker().await?;
        let stop = Rc::new(Cell::new(false));
        let reading =
            spawn_local(read(Rc::clone(&self.client), reader, Rc::clone(&self.ledger), Rc::clone(&stop)));
        let batching = (self.below(2) == 0).then_some(Batching::Off);
        let producer = self.producer(RESULTS, batching).await?;
        let mut applications = Vec::new();
        for number in 0..2 + self.below(3) {
            let application = Application {
                client: Rc::clone(&self.client),
                object: self.object,
                producer,
                worker,
                ledger: Rc::clone(&self.ledger),
            };
            applications.push(spawn_local(application.run(number, self.fork())));
        }
        let disturber = Disturber {
            control: self.cluster.control(),
            admin: self.broker.admin.clone(),
            random: self.fork(),
            figures: Figures::default(),
            dead: Vec::new(),
        };
        let mut figures = spawn_local(disturber.run()).await?;
        for application in applications {
            if timeout(PATIENCE, application).await.is_err() {
                return Ok((figures, vec!["an application still waits after half an hour".to_owned()]));
            }
        }
        sleep(TIMEOUTS).await;
        self.finish(worker).await;
        stop.set(true);
        reading.await?;
        let violations = self.judge(worker, &mut figures);
        Ok((figures, violations))
    }

    /// Messages to work on; each is an entry, so that it is acknowledged for itself.
    async fn fill(&self) -> anyhow::Result<()> {
        let producer = self.producer(WORK, Some(Batching::Off)).await?;
        for n in 0..AMOUNT {
            let message = message(&format!("work {n}"), None, &mut self.random.borrow_mut());
            self.client.send(producer, message).await?;
        }
        Ok(())
    }

    async fn producer(&self, topic: &str, batching: Option<Batching>) -> anyhow::Result<ProducerId> {
        let topic = Some(format!("topic://{topic}"));
        let options = ProducerOptions { topic, batching, ..ProducerOptions::default() };
        Ok(self.client.create_producer(self.object, options).await?)
    }

    async fn queue(&self, topic: &str, subscription: &str) -> anyhow::Result<ConsumerId> {
        let (topic, subscription) = (Some(format!("topic://{topic}")), Some(subscription.to_owned()));
        let options = QueueOptions { topic, subscription, ..QueueOptions::default() };
        Ok(self.client.subscribe_queue(self.object, options).await?)
    }

    async fn worker(&self) -> anyhow::Result<Worker> {
        let stream = self.below(2) == 0;
        if !stream {
            return Ok(Worker { consumer: self.queue(WORK, "work").await?, stream });
        }
        let (topic, subscription) = (Some(format!("topic://{WORK}")), Some("work".to_owned()));
        let options = StreamOptions { topic, subscription, ..StreamOptions::default() };
        Ok(Worker { consumer: self.client.subscribe_stream(self.object, options).await?, stream })
    }

    /// Takes and acknowledges all the work that no transaction did.
    async fn finish(&self, worker: Worker) {
        while let Ok(Some(work)) = self.client.receive(worker.consumer, Some(SILENCE_MS)).await {
            self.ledger.borrow_mut().came(&work);
            let done = if worker.stream {
                self.client.acknowledge_cumulative(worker.consumer, work.handle).await
            } else {
                self.client.acknowledge(worker.consumer, work.handle).await
            };
            if done.is_err() {
                break;
            }
        }
    }

    fn judge(&self, worker: Worker, figures: &mut Figures) -> Vec<String> {
        let found = atomicity::violations(&self.cluster.control().journal());
        let ledger = self.ledger.borrow();
        for told in &ledger.transactions {
            match told.end {
                End::Committed => figures.committed += 1,
                End::Aborted => figures.aborted += 1,
                End::Unknown => figures.unknown += 1,
            }
            figures.messages += told.stored.len() as u64;
            figures.acknowledgements += told.done.len() as u64;
        }
        figures.conflicts = ledger.conflicts;
        figures.received = ledger.received.values().map(|n| u64::from(*n)).sum();
        found.violations.into_iter().chain(told_otherwise(&ledger, worker)).collect()
    }

    fn below(&self, n: u64) -> u64 {
        self.random.borrow_mut().below(n)
    }

    fn fork(&self) -> Random {
        Random::new(self.random.borrow_mut().any())
    }
}

/// Receives and acknowledges all results, until it is told to stop and nothing more comes.
async fn read(
    client: Rc<dyn ClientUnderTest>,
    consumer: ConsumerId,
    ledger: Rc<RefCell<Ledger>>,
    stop: Rc<Cell<bool>>,
) {
    loop {
        let wait = if stop.get() { SILENCE_MS } else { 1_000 };
        match client.receive(consumer, Some(wait)).await {
            Ok(Some(message)) => {
                ledger.borrow_mut().came(&message);
                // One that it could not acknowledge comes again.
                let _ = client.acknowledge(consumer, message.handle).await;
            }
            Ok(None) if stop.get() => return,
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

/// Where what came differs from what the applications were told.
fn told_otherwise(ledger: &Ledger, worker: Worker) -> Vec<String> {
    let times = |text: &String| ledger.received.get(text).copied().unwrap_or(0);
    let mut violations = Vec::new();
    for text in ledger.plain.iter().filter(|text| times(text) == 0) {
        violations.push(format!("{text:?} was published and never came"));
    }
    for told in &ledger.transactions {
        let (shown, lost): (Vec<&String>, Vec<&String>) = told.tried.iter().partition(|text| times(text) > 0);
        let wrong = match told.end {
            // Nothing of it failed, or else its commit would have.
            End::Committed => !lost.is_empty(),
            End::Aborted => !shown.is_empty(),
            End::Unknown => !shown.is_empty() && lost.iter().any(|text| told.stored.contains(*text)),
        };
        if wrong {
            violations.push(format!("of a transaction ({:?}) came {shown:?}, and not {lost:?}", told.end));
        }
        // A cumulative acknowledgement of somebody else may cover what this one gave back.
        if told.end == End::Aborted && !worker.stream {
            let gone = told.done.iter().filter(|text| times(text) < 2);
            violations.extend(
                gone.map(|text| {
                    format!("{text:?}, done in a transaction that was aborted, never came again")
                }),
            );
        }
    }
    violations
}
