//! The other side: any [`ClientUnderTest`] as an adapter, on a pair of streams.

use std::cell::RefCell;
use std::io::{self, BufReader, Read, Write};
use std::rc::Rc;
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use stc_adapter_protocol::operation as op;
use stc_adapter_protocol::rpc::{
    self, INTERNAL, INVALID_PARAMS, LONGEST_LINE, METHOD_NOT_FOUND, Request, RpcError,
};
use stc_adapter_protocol::{
    ClientError, EndScenario, Initialize, Initialized, Operation as _, StartScenario, for_each_operation,
};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use super::lines::{self, Line};
use crate::client::ClientUnderTest;

/// Makes the client of one scenario.
pub type Make = dyn Fn(&StartScenario) -> Rc<dyn ClientUnderTest>;

/// Serves requests until `input` ends. Requests run side by side, and are answered as they end.
///
/// # Errors
/// When no thread or runtime can be made, or `input` has a line that is no request.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    identity: Initialized,
    make: Box<Make>,
) -> io::Result<()> {
    let (requests, mut incoming) = mpsc::unbounded_channel();
    let (answers, outgoing) = std::sync::mpsc::channel::<String>();
    thread::Builder::new().name("requests".to_owned()).spawn(move || {
        let mut input = BufReader::new(input);
        while let Ok(Line::Text(line)) = lines::read(&mut input, LONGEST_LINE) {
            if requests.send(line).is_err() {
                return;
            }
        }
    })?;
    let writer = thread::Builder::new().name("answers".to_owned()).spawn(move || write(output, &outgoing))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Rc::new(Server { identity, make, client: RefCell::default() });
    let served = LocalSet::new().block_on(&runtime, async {
        while let Some(line) = incoming.recv().await {
            let request = Request::parse(&line).map_err(io::Error::other)?;
            let (server, answers) = (Rc::clone(&server), answers.clone());
            spawn_local(async move {
                let id = request.id;
                // In a task of its own, so that a panic is an answer too.
                let outcome = spawn_local(async move { server.answer(request).await }).await;
                let outcome = outcome.unwrap_or_else(|e| Err(error(INTERNAL, e.to_string())));
                // The writer is gone only when the suite is.
                let _ = answers.send(rpc::response(id, outcome));
            });
        }
        Ok(())
    });
    drop(answers);
    drop(server);
    runtime.shutdown_background();
    let _ = writer.join();
    served
}

fn write(mut output: impl Write, lines: &std::sync::mpsc::Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

struct Server {
    identity: Initialized,
    make: Box<Make>,
    client: RefCell<Option<Rc<dyn ClientUnderTest>>>,
}

fn error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// Reads parameters. What they have that is unknown here, a later version of the suite asks for: it is not offered.
fn params<T: DeserializeOwned>(json: Json) -> Result<T, RpcError> {
    serde_json::from_value(json).map_err(|e| {
        let problem = e.to_string();
        if problem.starts_with("unknown field") || problem.starts_with("unknown variant") {
            ClientError::Unsupported(problem).into()
        } else {
            error(INVALID_PARAMS, problem)
        }
    })
}

fn result<T: Serialize>(value: &T) -> Result<Json, RpcError> {
    serde_json::to_value(value).map_err(|e| error(INTERNAL, e.to_string()))
}

/// Calls the function of the trait that a line of the table names.
macro_rules! dispatch {
    ($(
        $(#[doc = $about:literal])*
        $method:literal $function:ident $Name:ident [$($needs:ident)?]
        { $($field:ident: $type:ty),* } -> $result:ty;
    )*) => {
        async fn operate(
            client: Rc<dyn ClientUnderTest>,
            method: &str,
            json: Json,
        ) -> Result<Json, RpcError> {
            match method {
                $($method => {
                    let op::$Name { $($field),* } = params(json)?;
                    result(&client.$function($($field),*).await.map_err(RpcError::from)?)
                })*
                _ => Err(error(METHOD_NOT_FOUND, format!("there is no method {method:?}"))),
            }
        }
    };
}

for_each_operation!(dispatch);

impl Server {
    async fn answer(&self, request: Request) -> Result<Json, RpcError> {
        let Request { method, params: json, .. } = request;
        match method.as_str() {
            Initialize::METHOD => {
                let Initialize { .. } = params(json)?;
                result(&self.identity)
            }
            StartScenario::METHOD => {
                let client = (self.make)(&params(json)?);
                self.client.replace(Some(client));
                Ok(Json::Null)
            }
            EndScenario::METHOD => {
                let EndScenario {} = params(json)?;
                let client = self.client.take();
                if let Some(client) = client {
                    client.stop().await.map_err(RpcError::from)?;
                }
                Ok(Json::Null)
            }
            _ => {
                let client = self.client.borrow().clone();
                let client = client.ok_or_else(|| error(INTERNAL, "no scenario has begun"))?;
                operate(client, &method, json).await
            }
        }
    }
}
