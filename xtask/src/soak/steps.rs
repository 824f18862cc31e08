//! What happens to the topic and the brokers while the Java client's producer and consumers go on.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sim_broker::control::DropSelector;
use sim_broker::core::BrokerId;
use sim_broker::core::journal::{Event, Record};
use sim_broker::net::SimCluster;
use stc_runner::output::say;
use stc_runner::target::admin::{Admin, Method};
use stc_runner::target::layout;
use tokio::runtime::Runtime;

use super::driver::Driver;
use super::log::{Group, Log};

/// How long one wait may take before the run counts as stuck. Not a measure of anything: what is waited for comes
/// within a few seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How many more messages are sent before the next thing happens.
const BETWEEN: usize = 60;

/// A run under way.
pub struct Course<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) driver: Driver,
    pub(super) admin: Admin,
    /// Local name of the topic with its namespace, `public/soak/NAME`.
    pub(super) topic: String,
    /// The simulated cluster; a broker elsewhere is spared what only that can do.
    pub(super) cluster: Option<&'a SimCluster>,
    pub(super) began: Instant,
}

impl Course<'_> {
    /// All of it, in order.
    ///
    /// # Errors
    /// What did not happen, or did not come in time.
    pub fn run(&mut self) -> anyhow::Result<()> {
        self.begin()?;
        self.layout_changes()?;
        self.membership()?;
        if let Some(cluster) = self.cluster {
            self.failures(cluster)?;
        }
        self.checkpoint()?;
        self.end()
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.open("stream", "s1", Group::Stream, "late")?;
        self.open("queue", "q1", Group::Queue, "late")?;
        self.open("checkpoint", "c1", Group::Checkpoint, "")?;
        self.open("group", "g1", Group::Shared, "")?;
        self.driver.tell("start")?;
        self.go_on("one consumer of each kind")
    }

    fn layout_changes(&mut self) -> anyhow::Result<()> {
        let first = self.active()?.first().copied().context("no active segment")?;
        self.post(&format!("split/{first}"))?;
        self.go_on(&format!("segment {first} split"))?;
        let last = self.active()?.last().copied().context("no active segment")?;
        self.post(&format!("rebucket/{last}?bucketCount=6"))?;
        self.go_on(&format!("segment {last} has six entry buckets"))?;
        let [a, b, ..] = self.active()?[..] else { bail!("fewer than two active segments") };
        self.post(&format!("merge/{a}/{b}"))?;
        self.go_on(&format!("segments {a} and {b} merged"))?;
        // Two changes in a row: the second generation comes while the first is unread.
        let [.., last] = self.active()?[..] else { bail!("no active segment") };
        self.post(&format!("split/{last}"))?;
        let [.., last] = self.active()?[..] else { bail!("no active segment") };
        self.post(&format!("split/{last}"))?;
        self.go_on("two splits in a row")
    }

    fn membership(&mut self) -> anyhow::Result<()> {
        self.open("stream", "s2", Group::Stream, "each")?;
        self.open("queue", "q2", Group::Queue, "nack")?;
        self.open("group", "g2", Group::Shared, "")?;
        self.go_on("a second stream, queue and grouped checkpoint consumer joined")?;
        let last = self.active()?.last().copied().context("no active segment")?;
        self.post(&format!("rebucket/{last}?bucketCount=8"))?;
        for name in ["s3", "s4", "s5"] {
            self.open("stream", name, Group::Stream, "late")?;
        }
        self.go_on("more stream consumers than segments")?;
        // These hold what they receive. A stream consumer that does so keeps whoever is to follow it waiting, for as
        // long as it stays; after the split that is everyone who reads the children.
        self.open("stream", "s-holds", Group::Stream, "none")?;
        self.open("queue", "q-holds", Group::Queue, "none")?;
        self.go_on("one stream and one queue consumer that acknowledge nothing")?;
        let last = self.active()?.last().copied().context("no active segment")?;
        self.post(&format!("split/{last}"))?;
        self.more("what the holders share is split")?;
        self.close("s-holds")?;
        self.close("q-holds")?;
        self.close("g2")?;
        self.go_on(&format!("segment {last} split, then the holders left, and a member of the group"))
    }

    fn failures(&mut self, cluster: &SimCluster) -> anyhow::Result<()> {
        let control = cluster.control();
        let topic = self.name();
        let leader = self.leader(cluster)?;
        let brokers = u32::try_from(cluster.broker_urls().len())?;
        let next = BrokerId((leader.0 + 1) % brokers);
        control.move_controller(&topic, next)?;
        self.open("stream", "s6", Group::Stream, "each")?;
        self.go_on(&format!("the controller went from {leader} to {next}"))?;

        self.kill(cluster, next)?;
        self.go_on(&format!("{next} died, with the controller and what it owned"))?;
        control.revive_broker(next)?;
        let first = self.active()?.first().copied().context("no active segment")?;
        self.post(&format!("split/{first}"))?;
        self.close("s2")?;
        self.go_on(&format!("{next} came back, segment {first} split, a consumer left"))?;

        let leader = self.leader(cluster)?;
        // The one that came back serves little yet.
        let others = (1..brokers).map(|n| BrokerId((leader.0 + n) % brokers));
        let other = others.max_by_key(|other| *other != next).context("no other broker")?;
        self.kill(cluster, other)?;
        let [a, b, ..] = self.active()?[..] else { bail!("fewer than two active segments") };
        self.taken_over(cluster)?;
        self.sent(self.driver.look(Log::sending), "a broker died")?;
        self.post(&format!("merge/{a}/{b}"))?;
        self.go_on(&format!("{other} died, then segments {a} and {b} merged"))?;
        control.revive_broker(other)?;

        self.driver.tell("crash s5")?;
        self.driver.wait("s5 is gone", |log| log.is_closed("s5"))?;
        self.go_on("a stream consumer vanished without a word")?;
        let dropped = control.drop_connections(DropSelector::default());
        if dropped == 0 {
            bail!("there was no connection to break");
        }
        self.go_on(&format!("all {dropped} connections broke"))?;
        control.unload_broker(leader)?;
        self.go_on(&format!("{leader} gave away what it owned"))
    }

    fn checkpoint(&mut self) -> anyhow::Result<()> {
        self.driver.tell("position c1")?;
        self.driver.wait("c1 left with its checkpoint", |log| log.is_closed("c1"))?;
        let position = self.driver.look(|log| log.position("c1").map(str::to_owned));
        let position = position.context("c1 told no checkpoint")?;
        let last = self.active()?.last().copied().context("no active segment")?;
        self.post(&format!("split/{last}"))?;
        self.driver.enrol("c2", Group::Checkpoint);
        self.driver.tell(&format!("checkpoint c2 {position}"))?;
        self.driver.wait("c2 is open", |log| log.is_opened("c2"))?;
        self.go_on("the checkpoint consumer went on from its checkpoint after another split")
    }

    fn end(&mut self) -> anyhow::Result<()> {
        self.driver.tell("stop")?;
        self.driver.wait("the producer stopped", |log| log.stops() == 1)?;
        self.caught_up()?;
        let all = |log: &Log, group| log.acknowledged(group) == log.sending();
        self.driver.wait("all is acknowledged", |log| all(log, Group::Stream) && all(log, Group::Queue))?;
        for name in ["s1", "s2", "s3", "s4", "s6", "q1", "q2", "c2", "g1"] {
            let there = |log: &Log| log.is_opened(name) && !log.is_closed(name);
            if self.driver.look(there) {
                self.close(name)?;
            }
        }
        self.nothing_left()?;
        self.note("everyone left, with everything acknowledged");
        // What was acknowledged must not come again, and what is new must.
        self.open("stream", "s-last", Group::Stream, "each")?;
        self.open("queue", "q-last", Group::Queue, "each")?;
        let mut restored = String::from("checkpoint c-last");
        if let Some(position) = self.driver.look(|log| log.position("c2").map(str::to_owned)) {
            restored = format!("{restored} {position}");
        }
        self.driver.enrol("c-last", Group::Checkpoint);
        self.driver.tell(&restored)?;
        self.open("group", "g-last", Group::Shared, "")?;
        self.driver.tell("last")?;
        self.driver.wait("the last messages are sent", |log| log.stops() == 2)?;
        self.caught_up()?;
        self.driver.wait("the last messages are acknowledged", |log| {
            all(log, Group::Stream) && all(log, Group::Queue)
        })?;
        for name in ["s-last", "q-last", "c-last", "g-last"] {
            self.close(name)?;
        }
        self.nothing_left()?;
        self.note("whoever came after them got what came after them");
        Ok(())
    }

    /// Where everybody stands, for a run that is stuck.
    pub fn situation(&self) -> String {
        let registered = self.cluster.and_then(|cluster| cluster.control().registered(&self.name()).ok());
        let assigned: Vec<String> = registered
            .unwrap_or_default()
            .iter()
            .map(|r| {
                let (group, session) =
                    (&r.group.subscription, if r.session.is_some() { "" } else { " (away)" });
                let segments: Vec<u64> = r.shares.iter().map(|share| share.segment).collect();
                format!("{group}/{}{session} is to read {segments:?}", r.consumer)
            })
            .collect();
        let stats = self.call(Method::GET, "/stats").unwrap_or_else(|error| error.to_string());
        format!("{}\n{stats}", assigned.join("\n"))
    }

    /// The topic's name, `topic://…`.
    pub fn name(&self) -> String {
        format!("topic://{}", self.topic)
    }

    fn open(&mut self, kind: &str, name: &str, group: Group, habit: &str) -> anyhow::Result<()> {
        self.driver.enrol(name, group);
        let line = format!("{kind} {name} {} {habit}", format!("{group:?}").to_lowercase());
        let line = if kind == "checkpoint" { format!("{kind} {name}") } else { line };
        self.driver.tell(line.trim_end())?;
        self.driver.wait(&format!("{name} is open"), |log| log.is_opened(name))
    }

    fn close(&mut self, name: &str) -> anyhow::Result<()> {
        let command = if name.starts_with('c') { "position" } else { "close" };
        self.driver.tell(&format!("{command} {name}"))?;
        self.driver.wait(&format!("{name} left"), |log| log.is_closed(name))
    }

    /// Lets more messages flow; returns how many were sent then.
    fn more(&self, what: &str) -> anyhow::Result<usize> {
        let goal = self.driver.look(Log::sending) + BETWEEN;
        self.driver.wait(&format!("more is sent ({what})"), |log| log.sending() >= goal)?;
        Ok(goal)
    }

    /// Lets more messages flow, and waits until they have their results and everyone received as many.
    fn go_on(&self, what: &str) -> anyhow::Result<()> {
        let goal = self.more(what)?;
        self.sent(goal, what)?;
        for group in Group::ALL {
            self.driver
                .wait(&format!("{group:?} received it ({what})"), |log| log.received(group) >= goal)?;
        }
        self.note(what);
        Ok(())
    }

    /// Waits until the first sends, so many of them, have their results. What a broker stored and did not confirm before
    /// its connection broke is sent to its segment again, which knows the sequence ids that it has. After a change of the
    /// layout it would go to the successor, which does not know them, and be stored twice.
    fn sent(&self, first: usize, what: &str) -> anyhow::Result<()> {
        self.driver.wait(&format!("{first} messages are sent ({what})"), |log| log.is_sent(first))
    }

    fn note(&self, what: &str) {
        say(format_args!("{:6.2} s  {what}", self.began.elapsed().as_secs_f64()));
    }

    fn caught_up(&self) -> anyhow::Result<()> {
        for group in Group::ALL {
            self.driver
                .wait(&format!("{group:?} received all"), |log| log.received(group) == log.sending())?;
        }
        Ok(())
    }

    fn call(&self, method: Method, path: &str) -> anyhow::Result<String> {
        let path = format!("/admin/v2/scalable/{}{path}", self.topic);
        Ok(self.runtime.block_on(self.admin.must(method, &path, None))?)
    }

    fn post(&self, path: &str) -> anyhow::Result<()> {
        self.call(Method::POST, &format!("/{path}")).map(drop)
    }

    /// The active segments in the order of their ranges.
    fn active(&self) -> anyhow::Result<Vec<u64>> {
        let layout = layout::parse(&self.call(Method::GET, "")?).map_err(anyhow::Error::msg)?;
        let mut active: Vec<_> = layout.active().map(|s| (s.range.start(), s.id)).collect();
        active.sort_unstable();
        Ok(active.into_iter().map(|(_, id)| id).collect())
    }

    /// Waits until the subscriptions have no message that is not acknowledged: the brokers count an acknowledgement
    /// when they stored it, which may be after they closed the consumer.
    fn nothing_left(&self) -> anyhow::Result<()> {
        until("the subscriptions have nothing left", || {
            let stats: serde_json::Value = serde_json::from_str(&self.call(Method::GET, "/stats")?)?;
            let at = |group: &str| format!("/subscriptions/{group}/msgBacklog");
            let backlog = |group: &str| stats.pointer(&at(group)).and_then(serde_json::Value::as_i64);
            Ok(backlog("stream") == Some(0) && backlog("queue") == Some(0))
        })
    }

    fn leader(&self, cluster: &SimCluster) -> anyhow::Result<BrokerId> {
        let name = self.name();
        let stats = cluster.control().current_dag(&name)?;
        let url = stats.controller_broker_url.context("nobody leads the topic")?;
        let at = cluster.broker_urls().iter().position(|known| *known == url);
        Ok(BrokerId(u32::try_from(at.context("the leader is no broker")?)?))
    }

    /// Kills a broker that somebody is connected to: a death that nobody notices would prove nothing.
    fn kill(&self, cluster: &SimCluster, broker: BrokerId) -> anyhow::Result<()> {
        let before = cluster.read(|c| c.journal().next_number());
        cluster.control().kill_broker(broker)?;
        let broke =
            |record: &Record| record.broker == Some(broker) && matches!(record.event, Event::TcpClose { .. });
        if !cluster.control().journal_from(before).iter().any(broke) {
            bail!("nobody was connected to {broker} when it died");
        }
        Ok(())
    }

    /// Waits until others serve what a dead broker owned: layout changes are refused until then.
    fn taken_over(&self, cluster: &SimCluster) -> anyhow::Result<()> {
        until("others own what the dead broker owned", || {
            Ok(cluster.read(|c| c.owners().iter().all(|(_, owner)| owner.is_some())))
        })
    }
}

/// Looks again and again until something holds that nobody tells of.
fn until(what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        if Instant::now() > end {
            bail!("not within {PATIENCE:?}: {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
