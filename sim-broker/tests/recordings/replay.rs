//! Puts a recording to the simulated broker.

use std::collections::BTreeMap;

use axum::{Router, body::Body, http::Request};
use serde_json::{Value as Json, json};
use sim_broker::{
    SimCluster,
    core::{BrokerId, ClusterConfig, ConnId, Profile, journal::Direction},
};
use stc_proto::{Frame, pulsar::CommandPong};
use tower::ServiceExt as _;

use crate::row::{Row, is_compared};

/// The clock moves in steps, so that what falls due on the way happens near its time.
const STEP_MS: u64 = 100;

/// How often loads are reported.
const REPORTS_MS: u64 = 10_000;

/// What the simulated broker did.
pub(crate) struct Replayed {
    /// What it sent, by the recorded connection.
    pub(crate) answers: Vec<Answer>,
    /// What it calls what was recorded.
    pub(crate) names: Names,
    /// Admin calls with another status than recorded, in words.
    pub(crate) admin: Vec<String>,
}

/// A frame that it sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) conn: u64,
    pub(crate) kind: String,
    pub(crate) json: Json,
}

/// What the simulated broker numbers otherwise than the recorded one.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Its ledgers by the recorded ones.
    ledgers: BTreeMap<u64, u64>,
    /// The lower halves of its transactions' ids by the recorded ids.
    transactions: BTreeMap<(u64, u64), u64>,
}

/// A receipt: connection, producer id, sequence id.
type Receipt = (u64, u64, u64);

/// A transaction's id as it was recorded, and the lower half of the one that was given.
type Begun = (Option<(u64, u64)>, Option<u64>);

struct Replay {
    cluster: SimCluster,
    router: Router,
    now_ms: u64,
    conns: BTreeMap<u64, ConnId>,
    next_record: u64,
    answers: Vec<Answer>,
    recorded: BTreeMap<Receipt, u64>,
    given: BTreeMap<Receipt, u64>,
    /// The transactions that were begun, by connection and request.
    begun: BTreeMap<(u64, u64), Begun>,
    names: Names,
    admin: Vec<String>,
}

/// Replays one recording on a cluster of its own: one broker, as recorded. `round_ms` is when, in the recording, loads
/// of segments were reported: every 10 s, from the start of the recorded broker on.
pub(crate) async fn run(rows: &[Row], round_ms: u64) -> Replayed {
    let config =
        ClusterConfig { brokers: 1, ..ClusterConfig::new(Profile::built_in("pulsar-5.0.1").unwrap()) };
    let cluster = SimCluster::in_memory(config);
    let mut replay = Replay {
        router: cluster.admin_router(BrokerId(0)),
        cluster,
        now_ms: rows.first().map_or(0, |row| row.t_ms),
        conns: BTreeMap::new(),
        next_record: 0,
        answers: Vec::new(),
        recorded: BTreeMap::new(),
        given: BTreeMap::new(),
        begun: BTreeMap::new(),
        names: Names::default(),
        admin: Vec::new(),
    };
    let round = REPORTS_MS - round_ms % REPORTS_MS + replay.now_ms;
    let off = (round + REPORTS_MS - replay.cluster.now() % REPORTS_MS) % REPORTS_MS;
    replay.cluster.advance_clock(off);
    for row in rows {
        replay.pass(row.t_ms);
        replay.put(row).await;
        replay.take();
    }
    // What was under way when the recording ended.
    replay.pass(replay.now_ms + STEP_MS);
    replay.cluster.shutdown().await;
    Replayed { answers: replay.answers, names: replay.names, admin: replay.admin }
}

impl Replay {
    /// Lets time pass.
    fn pass(&mut self, until_ms: u64) {
        while self.now_ms < until_ms {
            let step = STEP_MS.min(until_ms - self.now_ms);
            self.cluster.advance_clock(step);
            self.now_ms += step;
            self.take();
        }
    }

    async fn put(&mut self, row: &Row) {
        match row.kind.as_str() {
            "TCP_OPEN" => {
                let conn = self.cluster.with(|c, now| c.open(BrokerId(0), "recording", false, now));
                self.conns.insert(row.conn, conn.unwrap());
            }
            "TCP_CLOSE" => self.close(row.conn),
            "TAP_KILL" => {
                for conn in row.fields["conns"].as_array().unwrap() {
                    self.close(conn.as_u64().unwrap());
                }
            }
            "MARK" => {
                if let Some(call) = row.admin() {
                    let request = Request::builder()
                        .method(call.method.as_str())
                        .uri(&call.path)
                        .header("content-type", "application/json")
                        .body(Body::from(call.body.clone()))
                        .unwrap();
                    let status = self.router.clone().oneshot(request).await.unwrap().status().as_u16();
                    if status != call.status {
                        self.admin
                            .push(format!("{} {}: {status} for {}", call.method, call.path, call.status));
                    }
                }
            }
            "SEND_RECEIPT" if row.dir == "B->C" => {
                if let Some((receipt, ledger)) = receipt(row.conn, &row.fields) {
                    self.recorded.insert(receipt, ledger);
                    self.learn(receipt);
                }
            }
            "NEW_TXN_RESPONSE" => {
                if let Some((request, id)) = transaction(&row.fields) {
                    self.begun.entry((row.conn, request)).or_default().0 = Some(id);
                    self.learn_transaction((row.conn, request));
                }
            }
            _ if row.is_request() => {
                let Some(conn) = self.conns.get(&row.conn).copied() else { return };
                let (mut fields, mut metadata) = (row.fields.clone(), row.metadata.clone());
                self.names.translate(&mut fields);
                metadata.iter_mut().for_each(|metadata| self.names.translate(metadata));
                let frame = row.frame(&fields, metadata.as_ref());
                self.cluster.with(|c, now| c.receive(conn, Ok(frame), now));
            }
            _ => {}
        }
    }

    fn close(&mut self, conn: u64) {
        if let Some(conn) = self.conns.remove(&conn) {
            self.cluster.with(|c, now| c.closed(conn, "as recorded", now));
        }
    }

    /// Takes what the broker sent since the last time. Pings are answered.
    fn take(&mut self) {
        let records = self.cluster.control().journal_from(self.next_record);
        self.next_record = records.last().map_or(self.next_record, |record| record.n + 1);
        for record in records.iter().filter(|record| record.direction == Direction::ToClient) {
            let Some(frame) = record.frame() else { continue };
            let Some((conn, id)) = self.conns.iter().find(|(_, id)| Some(**id) == record.conn) else {
                continue;
            };
            let (conn, id) = (*conn, *id);
            let kind = frame.command.name();
            if kind == "PING" {
                let pong = Frame::from(CommandPong {});
                self.cluster.with(|c, now| c.receive(id, Ok(pong), now));
            }
            if !is_compared(kind) {
                continue;
            }
            let json = record.to_json();
            if kind == "SEND_RECEIPT"
                && let Some((receipt, ledger)) = receipt(conn, &json["fields"])
            {
                self.given.insert(receipt, ledger);
                self.learn(receipt);
            }
            if kind == "NEW_TXN_RESPONSE"
                && let Some((request, (_, low))) = transaction(&json["fields"])
            {
                self.begun.entry((conn, request)).or_default().1 = Some(low);
                self.learn_transaction((conn, request));
            }
            self.answers.push(Answer { conn, kind: kind.to_owned(), json });
        }
    }

    /// A message that both brokers stored tells which ledger is which.
    fn learn(&mut self, receipt: Receipt) {
        if let (Some(recorded), Some(given)) = (self.recorded.get(&receipt), self.given.get(&receipt)) {
            self.names.ledgers.insert(*recorded, *given);
        }
    }

    /// A request that both answered tells which transaction is which.
    fn learn_transaction(&mut self, request: (u64, u64)) {
        if let Some((Some(recorded), Some(given))) = self.begun.get(&request) {
            self.names.transactions.insert(*recorded, *given);
        }
    }
}

fn receipt(conn: u64, fields: &Json) -> Option<(Receipt, u64)> {
    let number = |name: &str| fields[name].as_u64();
    let ledger = fields["message_id"]["ledgerId"].as_u64()?;
    Some(((conn, number("producer_id")?, number("sequence_id")?), ledger))
}

/// The request that a transaction answers, and the transaction's id.
fn transaction(fields: &Json) -> Option<(u64, (u64, u64))> {
    let number = |name: &str| fields[name].as_u64();
    Some((number("request_id")?, (number("txnid_most_bits")?, number("txnid_least_bits")?)))
}

impl Names {
    /// Puts what the simulated broker says in place of what was recorded.
    pub(crate) fn translate(&self, json: &mut Json) {
        match json {
            Json::Object(object) => {
                let number = |name: &str| object.get(name).and_then(Json::as_u64);
                let id = number("txnid_most_bits").zip(number("txnid_least_bits"));
                let ledger = number("ledgerId");
                if let Some(given) = id.and_then(|id| self.transactions.get(&id)) {
                    object.insert("txnid_least_bits".into(), json!(given));
                }
                if let Some(given) = ledger.and_then(|ledger| self.ledgers.get(&ledger)) {
                    object.insert("ledgerId".into(), json!(given));
                }
                object.values_mut().for_each(|value| self.translate(value));
            }
            Json::Array(list) => list.iter_mut().for_each(|value| self.translate(value)),
            _ => {}
        }
    }
}
