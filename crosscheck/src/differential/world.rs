//! Carries out the steps of a sequence on one side and notes what is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value as Json, json};
use stc_client::{AccessMode, Checkpoint, Error, InitialPosition, Producer, PulsarClient, StringSchema};
use stc_runner::target::admin::{AdminError, Method};
use tokio::time::{Instant, timeout};

use super::chance;
use super::compare;
use super::observe;
use super::op::{Kind, Nonsense, Op, Pick};
use super::readers::{Consumer, Reader, Readers};
use super::side::{Cutter, Side, Ticks, send_timeout};
use super::trace::{Part, Place, Seen, Step, Trace};

/// Virtual time in which everything comes to rest, with several polls of a controller one after the other.
pub(super) const REST: Duration = Duration::from_secs(15);
/// How long a client may take to close: it cannot when its topic is gone under it.
const CLOSING: Duration = Duration::from_secs(15);

/// Why a sequence could not be carried out.
#[derive(Debug)]
pub struct Broken(pub String);

impl From<AdminError> for Broken {
    fn from(error: AdminError) -> Self {
        Broken(error.to_string())
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Broken(error.to_string())
    }
}

/// What is to be run.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// What the names of topics begin with.
    pub prefix: &'a str,
    /// The steps.
    pub ops: &'a [Op],
    /// How long a step waits for what is due.
    pub patience: Duration,
    /// What is due. With it, every step waits until that is seen, and the run ends at the first step that differs.
    /// Without, every step waits until nothing moves any more, which is for virtual time only.
    pub due: Option<&'a Trace>,
}

/// Runs a sequence.
///
/// # Errors
/// When the side cannot be reached.
pub async fn run(side: &Side, plan: &Plan<'_>) -> Result<Trace, Broken> {
    let mut world = World::new(side, plan)?;
    let mut trace = Trace::new();
    for (number, op) in plan.ops.iter().enumerate() {
        let goes_on = match plan.due {
            Some(due) => world.follow(number, op, due, &mut trace).await?,
            None => world.lead(number, op, &mut trace).await?,
        };
        if !goes_on {
            break;
        }
    }
    world.leave().await;
    Ok(trace)
}

struct World<'a> {
    side: &'a Side,
    plan: &'a Plan<'a>,
    ticks: Ticks,
    clients: Vec<(PulsarClient, Cutter)>,
    producers: BTreeMap<u8, Producer<String>>,
    readers: Readers,
    saved: BTreeMap<u8, Checkpoint>,
    /// How many messages were sent.
    sent: u64,
    /// The time of each `Produce`.
    produced: Vec<u64>,
    topics: BTreeSet<u8>,
    /// The active segments of each topic, by range, as last seen.
    active: BTreeMap<u8, Vec<u64>>,
    /// What was seen last.
    last: Seen,
    /// The topic of each producer.
    produced_to: BTreeMap<u8, u8>,
    /// The topics that were deleted while somebody was attached.
    orphaned: BTreeSet<u8>,
}

impl<'a> World<'a> {
    fn new(side: &'a Side, plan: &'a Plan<'a>) -> Result<Self, Broken> {
        let ticks = side.ticks();
        let clients =
            (0..2).map(|seed| side.client(seed, ticks.clone())).collect::<Result<Vec<_>, Error>>()?;
        Ok(World {
            side,
            plan,
            ticks,
            clients,
            producers: BTreeMap::new(),
            readers: Readers::default(),
            saved: BTreeMap::new(),
            sent: 0,
            produced: Vec::new(),
            topics: plan.ops.iter().filter_map(topic_of).collect(),
            active: BTreeMap::new(),
            last: Seen::new(),
            produced_to: BTreeMap::new(),
            orphaned: BTreeSet::new(),
        })
    }

    /// One operation in virtual time, and before it what it needs.
    async fn lead(&mut self, number: usize, op: &Op, trace: &mut Trace) -> Result<bool, Broken> {
        for (topic, subscription) in chance::to_be_drained(op, &self.readers, &self.last) {
            let Some(consumer) = self.readers.stream_of(topic, subscription) else { continue };
            // A segment that is read to the end makes room for its successors, which are received in the next round.
            loop {
                trace.push(self.part(number, Part::Receive, op, None).await?);
                if !self.readers.holds(consumer) {
                    break;
                }
                trace.push(self.part(number, Part::Acknowledge(consumer), op, None).await?);
            }
        }
        if chance::to_be_received(op, &self.readers) {
            trace.push(self.part(number, Part::Receive, op, None).await?);
        }
        trace.push(self.part(number, Part::Operation, op, None).await?);
        Ok(true)
    }

    /// The same as was done in virtual time; false when something else is seen.
    async fn follow(
        &mut self,
        number: usize,
        op: &Op,
        due: &Trace,
        trace: &mut Trace,
    ) -> Result<bool, Broken> {
        for due in due.iter().filter(|step| step.number == number) {
            let step = self.part(number, due.part, op, Some(due)).await?;
            let differs = compare::unexplained(self.plan.ops, due, &step);
            trace.push(step);
            if differs {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn part(&mut self, number: usize, part: Part, op: &Op, due: Option<&Step>) -> Result<Step, Broken> {
        let empty = Step { number, part, ..Step::default() };
        let draining = match part {
            Part::Operation => {
                if let Some(entry) = chance::avoided(op, &self.readers, &self.orphaned, &self.last) {
                    return Ok(Step { skipped: true, avoided: Some(entry), ..empty });
                }
                None
            }
            Part::Receive => Some(Op::Receive),
            Part::Acknowledge(consumer) => Some(Op::AckAll { consumer }),
        };
        let Some(done) = self.act(draining.as_ref().unwrap_or(op), due).await? else {
            return Ok(Step { skipped: true, ..empty });
        };
        if self.side.cluster().is_some() {
            tokio::time::sleep(REST).await;
        }
        let Some(due) = due else {
            return Ok(Step { seen: self.look(done).await?, ..empty });
        };
        let began = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            let step = Step { seen: self.look(done.clone()).await?, ..empty.clone() };
            // What the call itself brought does not change by waiting.
            let hopeless = compare::differs_at_once(self.plan.ops, due, &done);
            let settled = !compare::unexplained(self.plan.ops, due, &step);
            if hopeless || settled || began.elapsed() > self.plan.patience {
                return Ok(step);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(250));
        }
    }

    async fn look(&mut self, mut seen: Seen) -> Result<Seen, Broken> {
        for topic in &self.topics {
            let active = observe::topic(&self.side.admin, *topic, &self.path(*topic), &mut seen).await?;
            self.active.insert(*topic, active);
        }
        self.last = seen.clone();
        Ok(seen)
    }

    /// `None` when there is nothing to do it with.
    async fn act(&mut self, op: &Op, due: Option<&Step>) -> Result<Option<Seen>, Broken> {
        Ok(match op {
            Op::OpenProducer { producer, client, topic, exclusive, batching, name } => {
                if self.producers.contains_key(producer) {
                    return Ok(None);
                }
                let opened = self.open_producer(*client, *topic, *exclusive, *batching, *name).await?;
                let result = called(&opened);
                if let Ok(opened) = opened {
                    self.producers.insert(*producer, opened);
                    self.produced_to.insert(*producer, *topic);
                }
                Some(result)
            }
            Op::Produce { producer, keys } => self.produce(*producer, keys).await,
            Op::CloseProducer { producer } => match self.producers.remove(producer) {
                Some(producer) => Some(called(&producer.close().await)),
                None => None,
            },
            Op::Subscribe { consumer, client, topic, kind, subscription, earliest } => {
                self.subscribe(*consumer, *client, *topic, *kind, *subscription, *earliest).await?
            }
            Op::Receive => self.readers.receive(due.map(|due| &due.seen), self.plan.patience).await,
            Op::Ack { consumer, nth } => self.readers.acknowledge(*consumer, *nth).await.map(|r| called(&r)),
            Op::AckAll { consumer } => self.readers.acknowledge_all(*consumer).await.map(|r| called(&r)),
            Op::Cumulative { consumer, receive } => {
                self.readers.acknowledge_to(*consumer, *receive).await.map(|r| called(&r))
            }
            Op::AckForeign { consumer, of, nth } => {
                self.readers.acknowledge_foreign(*consumer, *of, *nth).await.map(|r| called(&r))
            }
            Op::Nack { consumer, nth } => self.readers.give_back(*consumer, *nth).await.map(|r| called(&r)),
            Op::SaveCheckpoint { consumer } => {
                self.readers.checkpoint(*consumer).map(|(topic, checkpoint)| {
                    self.saved.insert(topic, checkpoint);
                    Seen::new()
                })
            }
            Op::CloseConsumer { consumer } => match self.readers.remove(*consumer) {
                Some(reader) => Some(called(&reader.consumer.close().await)),
                None => None,
            },
            Op::Cut { client } => self.cut(*client).await,
            Op::Delete { topic, .. } => {
                let producing = self.producers.keys().filter_map(|producer| self.produced_to.get(producer));
                if self.readers.read(*topic) || producing.into_iter().any(|of| of == topic) {
                    self.orphaned.insert(*topic);
                }
                Some(self.administer(op).await?)
            }
            other => Some(self.administer(other).await?),
        })
    }

    async fn open_producer(
        &self,
        client: u8,
        topic: u8,
        exclusive: bool,
        batching: bool,
        name: Option<u8>,
    ) -> Result<Result<Producer<String>, Error>, Broken> {
        let mode = if exclusive { AccessMode::Exclusive } else { AccessMode::Shared };
        let builder = self.client(client)?.producer(StringSchema).topic(self.topic(topic));
        let builder = builder.access_mode(mode).send_timeout(send_timeout());
        // Batches close when the step flushes, so they are the same on both sides.
        let builder = builder.batching(batching).batching_max_delay(Duration::from_secs(60));
        Ok(match name {
            Some(name) => builder.name(format!("n{name}")).create().await,
            None => builder.create().await,
        })
    }

    async fn produce(&mut self, producer: u8, keys: &[Option<u8>]) -> Option<Seen> {
        if !self.producers.contains_key(&producer) {
            return None;
        }
        self.produced.push(self.ticks.tick().await);
        let producer = self.producers.get(&producer)?;
        let mut tickets = Vec::new();
        for key in keys {
            let message = producer.message().value(format!("m{}", self.sent));
            self.sent += 1;
            tickets.push(match key {
                Some(key) => message.key(format!("k{key}")).send_async(),
                None => message.send_async(),
            });
        }
        // A failure is the tickets' as well.
        let _ = producer.flush().await;
        let mut seen = Seen::new();
        for (n, ticket) in tickets.into_iter().enumerate() {
            seen.insert(Place::Send(n), outcome(&ticket.await));
        }
        Some(seen)
    }

    async fn subscribe(
        &mut self,
        number: u8,
        client: u8,
        topic: u8,
        kind: Kind,
        subscription: u8,
        earliest: bool,
    ) -> Result<Option<Seen>, Broken> {
        let start = match kind {
            Kind::Resumed => match self.saved.get(&topic) {
                Some(saved) => saved.clone(),
                None => return Ok(None),
            },
            _ if earliest => Checkpoint::earliest(),
            _ => Checkpoint::latest(),
        };
        if self.readers.has(number) {
            return Ok(None);
        }
        let position = if earliest { InitialPosition::Earliest } else { InitialPosition::Latest };
        let (client, name) = (self.client(client)?, format!("K{number}"));
        let (topic_name, group) = (self.topic(topic), format!("s{subscription}"));
        let opened = match kind {
            Kind::Stream => {
                let builder = client.stream_consumer(StringSchema).topic(topic_name).subscription(group);
                builder.name(name).initial_position(position).subscribe().await.map(Consumer::Stream)
            }
            Kind::Queue => {
                let builder = client.queue_consumer(StringSchema).topic(topic_name).subscription(group);
                builder.name(name).initial_position(position).subscribe().await.map(Consumer::Queue)
            }
            Kind::Checkpoint | Kind::Resumed => {
                let builder = client.checkpoint_consumer(StringSchema).topic(topic_name);
                builder.name(name).start(start).create().await.map(Consumer::Checkpoint)
            }
        };
        let result = called(&opened);
        if let Ok(consumer) = opened {
            self.readers.add(number, Reader::new(consumer, topic, kind, subscription));
        }
        Ok(Some(result))
    }

    async fn cut(&self, client: u8) -> Option<Seen> {
        let (_, cutter) = self.clients.get(usize::from(client))?;
        if !cutter.cut() {
            return None;
        }
        // Whoever had something open connects again; who had not leaves nothing to wait for.
        let again = async {
            while !cutter.is_open() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(REST, again).await;
        Some(Seen::new())
    }

    async fn administer(&self, op: &Op) -> Result<Seen, Broken> {
        let (method, path, body) = self.request(op)?;
        let answer = self.side.admin.call(method, &path, body).await?;
        let mut seen: Seen = [(Place::Status, json!(answer.status))].into();
        // Calls that do not even parse are refused by the web server, in words of its own.
        if answer.status >= 400 && !matches!(op, Op::Nonsense { .. }) {
            seen.insert(Place::Reason, observe::reason(&answer.body));
        }
        Ok(seen)
    }

    fn request(&self, op: &Op) -> Result<(Method, String, Option<Json>), Broken> {
        let on = |topic: &u8, rest: String| format!("{}{rest}", self.path(*topic));
        let post = |path: String| (Method::POST, path, None);
        Ok(match op {
            Op::Create { topic, segments } => {
                (Method::PUT, on(topic, format!("?numInitialSegments={segments}")), Some(json!({})))
            }
            Op::Delete { topic, force } => (Method::DELETE, on(topic, format!("?force={force}")), None),
            Op::Split { topic, segment } => post(on(topic, format!("/split/{}", self.id(*topic, *segment)))),
            Op::Merge { topic, a, b } => {
                post(on(topic, format!("/merge/{}/{}", self.id(*topic, *a), self.id(*topic, *b))))
            }
            Op::Rebucket { topic, segment, buckets } => {
                let count = buckets.map(|count| format!("?bucketCount={count}")).unwrap_or_default();
                post(on(topic, format!("/rebucket/{}{count}", self.id(*topic, *segment))))
            }
            Op::MakeSubscription { topic, subscription, queue } => {
                let kind = if *queue { "QUEUE" } else { "STREAM" };
                (Method::PUT, on(topic, format!("/subscriptions/s{subscription}?type={kind}")), None)
            }
            Op::DeleteSubscription { topic, subscription } => {
                (Method::DELETE, on(topic, format!("/subscriptions/s{subscription}")), None)
            }
            Op::Seek { topic, subscription, produce } => {
                let n = usize::from(*produce).checked_rem(self.produced.len()).unwrap_or(0);
                let time = self.produced.get(n).copied().unwrap_or(0);
                post(on(topic, format!("/subscriptions/s{subscription}/seek?timestamp={time}")))
            }
            Op::SkipAll { topic, subscription } => {
                post(on(topic, format!("/subscriptions/s{subscription}/skip-all")))
            }
            Op::Nonsense { call } => self.nonsense(*call),
            other => return Err(Broken(format!("{other} is no admin call"))),
        })
    }

    fn nonsense(&self, call: Nonsense) -> (Method, String, Option<Json>) {
        let (first, prefix) = (self.path(0), self.plan.prefix);
        let scalable = "/admin/v2/scalable";
        match call {
            Nonsense::CreateInMissingNamespace => {
                (Method::PUT, format!("{scalable}/public/no-{prefix}/x?numInitialSegments=1"), None)
            }
            Nonsense::CreateInMissingTenant => {
                (Method::PUT, format!("{scalable}/no-{prefix}/x/x?numInitialSegments=1"), None)
            }
            Nonsense::CreateWithBadName => {
                (Method::PUT, format!("{scalable}/public/de$fault/x?numInitialSegments=1"), None)
            }
            Nonsense::GetInMissingNamespace => {
                (Method::GET, format!("{scalable}/public/gone-{prefix}/x"), None)
            }
            Nonsense::ListMissingNamespace => (Method::GET, format!("{scalable}/public/gone-{prefix}"), None),
            Nonsense::SegmentIsNoNumber => (Method::POST, format!("{first}/split/two"), None),
            Nonsense::BucketsAreNoNumber => {
                (Method::POST, format!("{first}/rebucket/0?bucketCount=two"), None)
            }
            Nonsense::SegmentsAreNoNumber => (Method::PUT, format!("{first}x?numInitialSegments=two"), None),
            Nonsense::SubscriptionOfNoKind => {
                (Method::PUT, format!("{first}/subscriptions/s0?type=HEAP"), None)
            }
            Nonsense::SeekToNoTime => {
                (Method::POST, format!("{first}/subscriptions/s0/seek?timestamp=noon"), None)
            }
            Nonsense::PolicyIsNoObject => {
                (Method::POST, format!("{first}/autoScalePolicy"), Some(json!([1])))
            }
            Nonsense::SegmentStatsOfNone => (Method::GET, format!("{first}/segments/77/stats"), None),
            Nonsense::ListByBadFilter => {
                (Method::GET, format!("{scalable}/public/default?property=nothing"), None)
            }
        }
    }

    fn id(&self, topic: u8, pick: Pick) -> i64 {
        match pick {
            Pick::Id(id) => id,
            Pick::Active(nth) => {
                let active = self.active.get(&topic).map_or(&[][..], Vec::as_slice);
                let nth = usize::from(nth).checked_rem(active.len()).unwrap_or(0);
                active.get(nth).map_or(0, |id| id.cast_signed())
            }
        }
    }

    fn client(&self, number: u8) -> Result<&PulsarClient, Broken> {
        let client = self.clients.get(usize::from(number)).map(|(client, _)| client);
        client.ok_or_else(|| Broken(format!("there is no client C{number}")))
    }

    fn topic(&self, topic: u8) -> String {
        format!("topic://public/default/{}-t{topic}", self.plan.prefix)
    }

    fn path(&self, topic: u8) -> String {
        format!("/admin/v2/scalable/public/default/{}-t{topic}", self.plan.prefix)
    }

    /// Leaves nothing behind, as far as that goes.
    async fn leave(self) {
        for (client, cutter) in &self.clients {
            let _ = timeout(CLOSING, client.close()).await;
            cutter.cut();
        }
        for topic in &self.topics {
            let _ = self
                .side
                .admin
                .call(Method::DELETE, &format!("{}?force=true", self.path(*topic)), None)
                .await;
        }
    }
}

/// The topic that a step is on.
fn topic_of(op: &Op) -> Option<u8> {
    match op {
        Op::Create { topic, .. }
        | Op::Delete { topic, .. }
        | Op::Split { topic, .. }
        | Op::Merge { topic, .. }
        | Op::Rebucket { topic, .. }
        | Op::MakeSubscription { topic, .. }
        | Op::DeleteSubscription { topic, .. }
        | Op::Seek { topic, .. }
        | Op::SkipAll { topic, .. }
        | Op::OpenProducer { topic, .. }
        | Op::Subscribe { topic, .. } => Some(*topic),
        _ => None,
    }
}

/// How a call of the client ended, as what is seen.
fn called<T>(result: &Result<T, Error>) -> Seen {
    [(Place::Call, outcome(result))].into()
}

/// `ok`, or the category and, where a broker's error is behind it, its code.
fn outcome<T>(result: &Result<T, Error>) -> Json {
    match result {
        Ok(_) => json!("ok"),
        Err(error) => {
            let code = error.message().split(' ').next().unwrap_or_default();
            match stc_proto::pulsar::ServerError::from_str_name(code) {
                Some(_) => json!(format!("{} ({code})", error.category())),
                None => json!(error.category().as_str()),
            }
        }
    }
}
