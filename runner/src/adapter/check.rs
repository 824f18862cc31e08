//! Whether an adapter keeps to the protocol, whatever its SDK does: each check is about the adapter alone.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};
use sim_broker::core::config::ClusterConfig;
use sim_broker::core::profile::Profile;
use sim_broker::{SimCluster, TcpOptions};
use stc_adapter_protocol::rpc::{FAILED, INTERNAL, METHOD_NOT_FOUND, RpcError, UNSUPPORTED};
use stc_adapter_protocol::{CATEGORIES, Capability, ClientError};

use super::session::{AdapterError, Session, Source};

/// How long an answer may take that depends on nothing.
const TO_ANSWER: Duration = Duration::from_secs(30);

/// Whether the adapter does what one rule asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sound {
    /// It does.
    Yes,
    /// It does not; what it did instead.
    No(String),
    /// It offers too little to tell.
    Untold(String),
}

/// One rule and whether it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The rule.
    pub rule: &'static str,
    /// Whether it is kept.
    pub sound: Sound,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sound {
            Sound::Yes => write!(f, "ok      {}", self.rule),
            Sound::No(what) => write!(f, "NOT OK  {}: {what}", self.rule),
            Sound::Untold(why) => write!(f, "untold  {}: {why}", self.rule),
        }
    }
}

/// Checks the adapter that this command starts. The first check is that it introduces itself.
///
/// # Errors
/// [`AdapterError`]: there is no adapter to check.
pub async fn check(words: Vec<String>) -> Result<Vec<Check>, AdapterError> {
    let session = Session::open_first(&Source::Command(words)).await?;
    let mut checks = vec![Check { rule: "introduces itself", sound: Sound::Yes }];
    let cluster = cluster().await;
    let checker = Checker {
        service_url: cluster
            .as_ref()
            .map_or_else(|| "pulsar://127.0.0.1:1".to_owned(), SimCluster::service_url),
        session,
    };
    checks.push(checker.scenarios().await);
    checks.push(checker.unknown_method().await);
    checks.push(checker.unknown_option().await);
    checks.push(checker.handles().await);
    checks.push(checker.errors().await);
    checks.push(checker.side_by_side().await);
    checks.push(checker.another_scenario().await);
    checks.push(checker.ends());
    if let Some(cluster) = cluster {
        cluster.shutdown().await;
    }
    Ok(checks)
}

async fn cluster() -> Option<SimCluster> {
    let profile = Profile::built_in("spec-1.0").ok()?;
    SimCluster::tcp(ClusterConfig::new(profile), TcpOptions::default()).await.ok()
}

struct Checker {
    session: Session,
    service_url: String,
}

type Answer = Result<Json, RpcError>;

impl Checker {
    async fn ask(&self, method: &str, params: Json) -> Result<Answer, String> {
        let answer = self.session.connection.call_raw(method, params);
        match tokio::time::timeout(TO_ANSWER, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("{method} is not answered within {} s", TO_ANSWER.as_secs())),
        }
    }

    async fn open(&self) -> Result<Answer, String> {
        self.ask("openClient", json!({ "options": { "serviceUrl": self.service_url } })).await
    }

    async fn scenarios(&self) -> Check {
        let rule = "begins and ends scenarios, and begins again";
        for method in ["startScenario", "endScenario", "startScenario"] {
            let params =
                if method == "startScenario" { json!({ "scenario": "check", "seed": 1 }) } else { json!({}) };
            match self.ask(method, params).await {
                Ok(Ok(Json::Null)) => {}
                other => return Check { rule, sound: Sound::No(format!("{method} gave {}", shown(&other))) },
            }
        }
        Check { rule, sound: Sound::Yes }
    }

    async fn unknown_method(&self) -> Check {
        let rule = "calls an unknown method unsupported (-32001, or -32601)";
        let sound = match self.ask("noSuchMethod", json!({})).await {
            Ok(Err(RpcError { code: UNSUPPORTED | METHOD_NOT_FOUND, .. })) => Sound::Yes,
            other => Sound::No(format!("it answered {}", shown(&other))),
        };
        Check { rule, sound }
    }

    async fn unknown_option(&self) -> Check {
        let rule = "calls an option that it does not know unsupported, and ignores none";
        let options = json!({ "serviceUrl": self.service_url, "noSuchOption": 1 });
        let sound = match self.ask("openClient", json!({ "options": options })).await {
            Ok(Err(RpcError { code: UNSUPPORTED, .. })) => Sound::Yes,
            Ok(Err(RpcError { code: METHOD_NOT_FOUND, .. })) => {
                Sound::Untold("openClient is unsupported".to_owned())
            }
            other => Sound::No(format!("openClient with an unknown option gave {}", shown(&other))),
        };
        Check { rule, sound }
    }

    async fn handles(&self) -> Check {
        let rule = "gives each object a number of its own";
        let sound = match (self.open().await, self.open().await) {
            (Ok(Ok(one)), Ok(Ok(other))) => match (one.as_u64(), other.as_u64()) {
                (Some(a), Some(b)) if a != b => Sound::Yes,
                _ => Sound::No(format!("two clients are {one} and {other}")),
            },
            (Ok(Err(RpcError { code: UNSUPPORTED | METHOD_NOT_FOUND, .. })), _) => {
                Sound::Untold("openClient is unsupported".to_owned())
            }
            (one, _) => Sound::No(format!("openClient gave {}", shown(&one))),
        };
        Check { rule, sound }
    }

    /// The name of a topic is empty: every SDK refuses that, and the adapter says how.
    async fn errors(&self) -> Check {
        let rule = "tells a failure of the SDK with category, message and how it came (-32000)";
        let Ok(Ok(client)) = self.open().await else {
            return Check { rule, sound: Sound::Untold("there is no client".to_owned()) };
        };
        let options = json!({ "topic": "", "access": "shared", "schema": "text" });
        let sound = match self.ask("createProducer", json!({ "client": client, "options": options })).await {
            Ok(Err(error)) if error.code == FAILED => match error.clone().into_client_error("createProducer")
            {
                ClientError::Failed(error) if CATEGORIES.contains(&error.category.as_str()) => Sound::Yes,
                ClientError::Failed(error) => {
                    Sound::No(format!("{:?} is no category of the protocol", error.category))
                }
                other => Sound::No(other.to_string()),
            },
            Ok(Err(RpcError { code: UNSUPPORTED | METHOD_NOT_FOUND, .. })) => {
                Sound::Untold("createProducer is unsupported".to_owned())
            }
            Ok(Err(RpcError { code: INTERNAL, message, .. })) => {
                Sound::No(format!("an error of the SDK came out as a fault of the adapter: {message}"))
            }
            other => Sound::No(format!("createProducer on a topic without a name gave {}", shown(&other))),
        };
        Check { rule, sound }
    }

    async fn side_by_side(&self) -> Check {
        let rule = "answers other requests while a receive waits";
        let offers = |c| self.session.offers.contains(&c);
        let (method, options) = if offers(Capability::QueueConsumer) {
            ("subscribeQueue", json!({ "initialPosition": "earliest", "schema": "text" }))
        } else if offers(Capability::StreamConsumer) {
            ("subscribeStream", json!({ "initialPosition": "earliest", "schema": "text" }))
        } else {
            return Check { rule, sound: Sound::Untold("the SDK offers no consumer".to_owned()) };
        };
        let mut options = options;
        if let Some(options) = options.as_object_mut() {
            options.insert("topic".to_owned(), "topic://public/default/check".into());
            options.insert("subscription".to_owned(), "check".into());
        }
        let Ok(Ok(client)) = self.open().await else {
            return Check { rule, sound: Sound::Untold("there is no client".to_owned()) };
        };
        let consumer = match self.ask(method, json!({ "client": client, "options": options })).await {
            Ok(Ok(consumer)) => consumer,
            other => return Check { rule, sound: Sound::Untold(format!("{method} gave {}", shown(&other))) },
        };
        let waiting =
            self.session.connection.call_raw("receive", json!({ "consumer": consumer, "waitMs": null }));
        let sound = tokio::select! {
            answer = waiting => Sound::No(format!("receive from an empty topic gave {}", shown(&answer))),
            other = self.open() => match other {
                Ok(_) => Sound::Yes,
                Err(reason) => Sound::No(reason),
            },
        };
        Check { rule, sound }
    }

    async fn another_scenario(&self) -> Check {
        let rule = "ends a scenario with everything open and a receive under way";
        let sound = match self.ask("endScenario", json!({})).await {
            Ok(Ok(Json::Null)) => Sound::Yes,
            other => Sound::No(format!("endScenario gave {}", shown(&other))),
        };
        Check { rule, sound }
    }

    /// Consumes the session.
    fn ends(self) -> Check {
        let rule = "ends when its standard input does";
        let sound =
            if self.session.end() { Sound::Yes } else { Sound::No("it goes on, and was killed".to_owned()) };
        Check { rule, sound }
    }
}

fn shown(answer: &Result<Answer, String>) -> String {
    match answer {
        Ok(Ok(result)) => format!("the result {result}"),
        Ok(Err(error)) => format!("error {}: {}", error.code, error.message),
        Err(reason) => reason.clone(),
    }
}
