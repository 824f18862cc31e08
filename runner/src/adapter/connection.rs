//! Requests under way on one pair of streams. The streams have threads of their own, because a session outlives the
//! runtimes of the scenarios that it serves.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value as Json, json};
use stc_adapter_protocol::rpc::{self, LONGEST_LINE, Response, RpcError};
use stc_adapter_protocol::{ClientError, Operation};
use tokio::sync::oneshot;

use super::lines::{self, Line};
use super::notes::Notes;

/// How much of a line that nobody understands a report shows, in characters.
const SHOWN: usize = 120;

type Answer = Result<Result<Json, RpcError>, ClientError>;

/// One pair of streams to an adapter.
pub(super) struct Connection {
    /// Lines for the thread that writes. `None` once the stream is to be closed.
    outgoing: Option<Sender<String>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Why nothing more comes.
    gone: Option<ClientError>,
}

impl Connection {
    /// Takes over the streams. `ended` says in a sentence how an adapter ended that closed its stream.
    pub(super) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        ended: impl FnOnce() -> String + Send + 'static,
    ) -> io::Result<Connection> {
        let state: Arc<Mutex<State>> = Arc::default();
        let (outgoing, lines) = mpsc::channel();
        thread::Builder::new().name("adapter-writer".to_owned()).spawn(move || write(output, &lines))?;
        let reader_state = Arc::clone(&state);
        thread::Builder::new()
            .name("adapter-reader".to_owned())
            .spawn(move || read(input, &reader_state, ended))?;
        Ok(Connection { outgoing: Some(outgoing), state })
    }

    /// Whether nothing more comes.
    pub(super) fn is_gone(&self) -> bool {
        lock(&self.state).gone.is_some()
    }

    /// Asks, and waits for the answer; both are noted. Whoever gives up waiting drops the future; a late answer is thrown
    /// away.
    pub(super) async fn call<O: Operation>(
        &self,
        params: &O,
        notes: Option<&Notes>,
    ) -> Result<O::Result, ClientError> {
        let (id, answer) = self.ask(|id| {
            if let Some(notes) = notes {
                notes.asked(id, params);
            }
            rpc::request(id, params)
        })?;
        let outcome = match answer.await.unwrap_or_else(|_| Err(unread())) {
            Ok(Ok(result)) => serde_json::from_value(result).map_err(|e| {
                ClientError::Breach(format!("it answered {} with what it cannot be: {e}", O::METHOD))
            }),
            Ok(Err(error)) => Err(error.into_client_error(O::METHOD)),
            Err(gone) => Err(gone),
        };
        if let Some(notes) = notes {
            notes.answered::<O>(id, &outcome);
        }
        outcome
    }

    /// Asks for what the protocol may not have. The answer as it came.
    pub(super) async fn call_raw(
        &self,
        method: &str,
        params: Json,
    ) -> Result<Result<Json, RpcError>, String> {
        let line =
            |id| Ok(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        let (_, answer) = self.ask(line).map_err(|e| e.to_string())?;
        answer.await.unwrap_or_else(|_| Err(unread())).map_err(|e| e.to_string())
    }

    /// Writes a request. Its id, and where the answer comes.
    fn ask(
        &self,
        line: impl FnOnce(u64) -> serde_json::Result<String>,
    ) -> Result<(u64, oneshot::Receiver<Answer>), ClientError> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = lock(&self.state);
            if let Some(gone) = &state.gone {
                return Err(gone.clone());
            }
            state.last_id += 1;
            let id = state.last_id;
            state.waiting.insert(id, sender);
            id
        };
        let line = line(id).map_err(|e| ClientError::Gone(e.to_string()))?;
        // A writer that ended has an adapter that does not read any more; its reader sees the end.
        let _ = self.outgoing.as_ref().map(|outgoing| outgoing.send(line));
        Ok((id, receiver))
    }

    /// Closes the stream to the adapter, which is to end then.
    pub(super) fn close(&mut self) {
        self.outgoing = None;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(mut output: impl Write, lines: &Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

fn unread() -> ClientError {
    ClientError::Gone("nobody reads the adapter's answers any more".to_owned())
}

/// Reads answers until the adapter ends or says something that is none.
fn read(input: impl Read, state: &Mutex<State>, ended: impl FnOnce() -> String) {
    let mut input = BufReader::new(input);
    let gone = loop {
        match lines::read(&mut input, LONGEST_LINE) {
            Ok(Line::Text(line)) => {
                if let Err(problem) = answer(&line, state) {
                    break ClientError::Breach(format!("it wrote {}; {problem}", shown(&line)));
                }
            }
            Ok(Line::TooLong(start)) => {
                let told = format!("a line of more than {LONGEST_LINE} bytes that begins {}", shown(&start));
                break ClientError::Breach(told);
            }
            Ok(Line::End) => break ClientError::Gone(ended()),
            Err(e) => break ClientError::Gone(format!("the adapter's answers cannot be read: {e}")),
        }
    };
    let mut state = lock(state);
    for (_, sender) in std::mem::take(&mut state.waiting) {
        let _ = sender.send(Err(gone.clone()));
    }
    state.gone = Some(gone);
}

/// Hands an answer to whoever waits for it.
fn answer(line: &str, state: &Mutex<State>) -> Result<(), String> {
    let Response { id, outcome } = Response::parse(line).map_err(|e| e.to_string())?;
    let sender = lock(state).waiting.remove(&id).ok_or_else(|| format!("no request {id} is waiting"))?;
    // Nobody may be interested any more.
    let _ = sender.send(Ok(outcome));
    Ok(())
}

fn shown(line: &str) -> String {
    let mut start: String = line.chars().take(SHOWN).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    format!("{start:?}")
}
