//! Tokens and permissions: who is let in, who may do what, and what changes of either do.

use std::time::Duration;

use sim_broker::{
    SimCluster,
    core::{Action, Security},
};
use stc_proto::{Command, pulsar::*};

use crate::{expect, support::*};

const NAMESPACE: &str = "public/default";
const TOPIC: &str = "topic://public/default/t";

/// Tokens `<name>-token` for admin (superuser), alice (produces), bob (consumes), carol (both) and nobody.
fn secured() -> SimCluster {
    let names = ["admin", "alice", "bob", "carol", "nobody"];
    let security = Security::with_tokens(names.map(|name| (format!("{name}-token"), name)))
        .superuser("admin")
        .grant(NAMESPACE, "alice", [Action::Produce])
        .grant(NAMESPACE, "bob", [Action::Consume])
        .grant(NAMESPACE, "carol", [Action::Produce, Action::Consume]);
    cluster_as("spec-1.0", |c| c.security = Some(security))
}

fn connect_with(method: Option<&str>, data: Option<&[u8]>) -> CommandConnect {
    CommandConnect {
        auth_method_name: method.map(str::to_owned),
        auth_data: data.map(|d| d.to_vec().into()),
        ..connect()
    }
}

async fn log_in(cluster: &SimCluster, name: &str, broker: usize, refreshes: bool) -> Client {
    let mut client = Client::open(cluster, &cluster.broker_urls()[broker]);
    let token = format!("{name}-token");
    let flags = FeatureFlags { supports_auth_refresh: refreshes.then_some(true), ..Default::default() };
    let command =
        CommandConnect { feature_flags: Some(flags), ..connect_with(Some("token"), Some(token.as_bytes())) };
    client.send(command).await;
    expect!(client, Connected);
    client
}

async fn as_user(cluster: &SimCluster, name: &str) -> Client {
    log_in(cluster, name, 0, false).await
}

/// A connection of this user to whoever serves a segment.
async fn at_owner(cluster: &SimCluster, name: &str, segment: &str) -> Client {
    let url = as_user(cluster, "admin").await.lookup(segment).await.broker_service_url.unwrap();
    let broker = cluster.broker_urls().iter().position(|known| *known == url).unwrap();
    log_in(cluster, name, broker, false).await
}

async fn expect_failed(client: &mut Client) {
    let error = expect!(client, Error);
    assert_eq!((error.request_id, error.error()), (u64::MAX, ServerError::AuthenticationError));
    assert_eq!(error.message, "Failed to authenticate");
    client.expect_closed().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_token_connect_fails_and_nothing_behind_it_is_served() {
    let cluster = secured();
    for (method, data) in [
        (None, None),
        (Some("token"), None),
        (Some("token"), Some(&b"wrong"[..])),
        (Some("token"), Some(&b"alice"[..])),
        (Some("token"), Some(&b"\xff\xfe"[..])),
        (Some("none"), None),
        (Some("basic"), Some(&b"alice-token"[..])),
    ] {
        let mut client = Client::open(&cluster, &cluster.service_url());
        client.send(connect_with(method, data)).await;
        // On its way before the client could know.
        client
            .send(CommandScalableTopicLookup { session_id: 1, topic: TOPIC.into(), create_if_missing: None })
            .await;
        expect_failed(&mut client).await;
    }
    assert!(cluster.control().current_dag(TOPIC).is_err(), "the lookup must not have created it");
    assert!(close_reason(&cluster.control()).contains("credentials"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_connect() {
    let cluster = secured();
    let commands: [Command; 6] = [
        CommandLookupTopic { topic: TOPIC.into(), request_id: 1, ..Default::default() }.into(),
        CommandScalableTopicLookup { session_id: 1, topic: TOPIC.into(), create_if_missing: None }.into(),
        producer(1, "persistent://public/default/c", "p", 1).into(),
        subscribe(1, "persistent://public/default/c", "s", 1).into(),
        CommandPing {}.into(),
        // A token brought in the wrong way is none.
        CommandAuthResponse {
            response: Some(AuthData {
                auth_method_name: Some("token".into()),
                auth_data: Some(b"admin-token"[..].into()),
            }),
            ..Default::default()
        }
        .into(),
    ];
    for command in commands {
        let mut client = Client::open(&cluster, &cluster.service_url());
        client.send(command).await;
        client.expect_closed().await;
    }
    assert!(cluster.control().current_dag(TOPIC).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_token_lets_in_and_without_authorization_allows_everything() {
    let security = Security::with_tokens([("secret", "alice")]);
    let cluster = cluster_as("spec-1.0", |c| c.security = Some(security));
    let mut client = Client::open(&cluster, &cluster.service_url());
    client.send(connect_with(Some("token"), Some(b"secret"))).await;
    expect!(client, Connected);
    assert!(client.watch(1, TOPIC).await.dag.is_some());
}

/// The code and message of an answer, if it is an error.
fn error_of(command: &Command) -> Option<(ServerError, String)> {
    let text = |m: &Option<String>| m.clone().unwrap_or_default();
    match command {
        Command::Error(e) => Some((e.error(), e.message.clone())),
        Command::LookupResponse(e) => e.error.map(|_| (e.error(), text(&e.message))),
        Command::PartitionedMetadataResponse(e) => e.error.map(|_| (e.error(), text(&e.message))),
        Command::ScalableTopicUpdate(e) => e.error.map(|_| (e.error(), text(&e.message))),
        Command::ScalableTopicSubscribeResponse(e) => e.error.map(|_| (e.error(), text(&e.message))),
        Command::WatchScalableTopicsUpdate(e) => e.error.map(|_| (e.error(), text(&e.message))),
        Command::GetSchemaResponse(e) => e.error_code.map(|_| (e.error_code(), text(&e.error_message))),
        Command::GetOrCreateSchemaResponse(e) => {
            e.error_code.map(|_| (e.error_code(), text(&e.error_message)))
        }
        _ => None,
    }
}

/// Each command that needs a permission, with who may send it and what the others are told.
fn guarded(segment: &str) -> Vec<(Command, &'static [&'static str], &'static str)> {
    let (topic, namespace) = (TOPIC.to_owned(), NAMESPACE.to_owned());
    let produce: &[&str] = &["admin", "alice", "carol"];
    let consume: &[&str] = &["admin", "bob", "carol"];
    let any: &[&str] = &["admin", "alice", "bob", "carol"];
    let schema = Schema { name: "x".into(), r#type: schema::Type::String as i32, ..Default::default() };
    let plain = || "persistent://public/default/plain".to_owned();
    vec![
        (
            CommandLookupTopic { topic: plain(), request_id: 1, ..Default::default() }.into(),
            any,
            "Client is not authorized to Lookup",
        ),
        (
            CommandPartitionedTopicMetadata { topic: plain(), request_id: 1, ..Default::default() }.into(),
            any,
            "Client is not authorized to Get Partition Metadata",
        ),
        (
            CommandScalableTopicLookup { session_id: 1, topic: topic.clone(), create_if_missing: None }
                .into(),
            any,
            "Client is not authorized to ScalableTopicLookup",
        ),
        (
            CommandScalableTopicSubscribe {
                request_id: 1,
                topic,
                subscription: "s".into(),
                consumer_name: "c".into(),
                consumer_id: 1,
                ..Default::default()
            }
            .into(),
            consume,
            "Client is not authorized to ScalableTopicSubscribe",
        ),
        (
            CommandWatchScalableTopics { watch_id: 1, namespace: namespace.clone(), ..Default::default() }
                .into(),
            any,
            "Client is not authorized to WatchScalableTopics",
        ),
        (producer(1, segment, "", 1).into(), produce, "Client is not authorized to Produce"),
        (subscribe(1, segment, "s", 1).into(), consume, "Client is not authorized to subscribe"),
        (
            CommandGetTopicsOfNamespace { request_id: 1, namespace: namespace.clone(), ..Default::default() }
                .into(),
            any,
            "Client is not authorized to GetTopicsOfNamespace",
        ),
        (
            CommandWatchTopicList {
                request_id: 1,
                watcher_id: 1,
                namespace,
                topics_pattern: "public/default/.*".into(),
                ..Default::default()
            }
            .into(),
            any,
            "Client is not authorized to watchTopicList",
        ),
        (
            CommandGetSchema { request_id: 1, topic: segment.into(), schema_version: None }.into(),
            any,
            "Client is not authorized to get the schema",
        ),
        (
            CommandGetOrCreateSchema { request_id: 1, topic: segment.into(), schema, producer_name: None }
                .into(),
            produce,
            "Client is not authorized to add a schema",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_command_is_refused_in_its_own_form_to_those_who_may_not_send_it() {
    let cluster = secured();
    let segment = segment_of(&cluster, TOPIC).await;
    for (command, allowed, message) in guarded(&segment) {
        for user in ["admin", "alice", "bob", "carol", "nobody"] {
            let mut client = at_owner(&cluster, user, &segment).await;
            client.send(command.clone()).await;
            let answer = client.recv().await.command;
            let refusal = Some((ServerError::AuthorizationError, message.to_owned()));
            let refused = error_of(&answer) == refusal;
            assert_eq!(refused, !allowed.contains(&user), "{user}: {} -> {answer:?}", command.name());
            // The connection goes on either way.
            client.expect_nothing().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_lookup_creates_nothing_and_watches_nothing() {
    let cluster = secured();
    let mut client = as_user(&cluster, "nobody").await;
    let update = client.watch(1, TOPIC).await;
    assert_eq!((update.session_id, update.error()), (1, ServerError::AuthorizationError));
    assert_eq!((update.dag, update.resolved_topic_name), (None, None));
    assert!(cluster.control().current_dag(TOPIC).is_err());
    create(&cluster, TOPIC, 1);
    split(&cluster, TOPIC, 0);
    client.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_tells_superusers_only_that_it_is_missing() {
    let cluster = secured();
    for (user, error) in [("admin", ServerError::TopicNotFound), ("alice", ServerError::AuthorizationError)] {
        let answer = as_user(&cluster, user).await.lookup("persistent://public/nope/t").await;
        assert_eq!(answer.error(), error, "{user}");
    }
    // The better answer to a name that is none.
    let answer = as_user(&cluster, "nobody").await.lookup("persistent://public").await;
    assert_eq!(answer.error(), ServerError::InvalidTopicName);
}

#[tokio::test(start_paused = true)]
async fn grants_in_the_set_up_make_their_namespace_and_survive_a_reset() {
    let security = Security::with_tokens([("alice-token", "alice")]).grant("t/n", "alice", [Action::Produce]);
    let cluster = cluster_as("spec-1.0", |c| c.security = Some(security));
    let name = "persistent://t/n/x";
    for _ in 0..2 {
        assert_eq!(as_user(&cluster, "alice").await.lookup(name).await.error, None);
        cluster.control().expire_token("alice-token");
        cluster.control().reset();
    }
}

#[tokio::test(start_paused = true)]
async fn who_loses_a_permission_is_closed_where_it_was_used_and_nowhere_else() {
    let cluster = secured();
    let control = cluster.control();
    let segment = segment_of(&cluster, TOPIC).await;
    let mut carol = at_owner(&cluster, "carol", &segment).await;
    carol.producer(1, &segment, "p").await;
    carol.subscribe(2, &segment, "s").await;
    let mut alice = at_owner(&cluster, "alice", &segment).await;
    alice.producer(1, &segment, "q").await;

    control.grant("public", "default", "carol", [Action::Consume]).unwrap();
    let close = expect!(carol, CloseProducer);
    assert_eq!((close.producer_id, close.request_id, close.assigned_broker_service_url), (1, u64::MAX, None));
    // A message on its way is lost without harm; the consumer goes on.
    carol.publish(1, 0, "late").await;
    alice.publish_ok(1, 0, "hello").await;
    assert_eq!(carol.message().await.0, "hello");

    control.revoke("public", "default", "carol").unwrap();
    let close = expect!(carol, CloseConsumer);
    assert_eq!((close.consumer_id, close.request_id), (2, u64::MAX));
    assert_eq!(carol.lookup(&segment).await.error(), ServerError::AuthorizationError);
    // What it had goes to the next one.
    let mut bob = at_owner(&cluster, "bob", &segment).await;
    bob.subscribe(1, &segment, "s").await;
    assert_eq!(bob.message().await.0, "hello");
    alice.publish_ok(1, 1, "still here").await;
    assert_eq!(control.stored(TOPIC).unwrap().len(), 2);

    assert_eq!(control.grant("public", "nope", "carol", []).unwrap_err().status, 404);
    assert_eq!(control.revoke("public", "nope", "carol").unwrap_err().status, 404);
}

fn answer_with(token: &str) -> CommandAuthResponse {
    let response = AuthData {
        auth_method_name: Some("token".into()),
        auth_data: Some(token.as_bytes().to_vec().into()),
    };
    CommandAuthResponse { response: Some(response), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_challenged_and_a_fresh_one_of_the_same_principal_goes_on() {
    let cluster = secured();
    let control = cluster.control();
    let mut client = log_in(&cluster, "alice", 0, true).await;
    let mut other = log_in(&cluster, "bob", 0, true).await;
    control.allow_token("alice-fresh", "alice");
    assert!(control.expire_token("alice-token"));
    let challenge = expect!(client, AuthChallenge);
    assert_eq!((challenge.protocol_version(), challenge.server_version), (21, None));
    let data = challenge.challenge.unwrap();
    assert_eq!((data.auth_method_name(), data.auth_data()), ("token", &b"PulsarAuthRefresh"[..]));
    client.send(answer_with("alice-fresh")).await;
    client.expect_nothing().await;
    // The answer counts: no time-out closes it, and the fresh token is the one that can expire.
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        client.expect_nothing().await;
        other.expect_nothing().await;
    }
    assert!(control.expire_token("alice-fresh"));
    expect!(client, AuthChallenge);
    other.expect_nothing().await;
    assert!(!control.expire_token("alice-fresh"), "it is no token any more");
}

#[tokio::test(start_paused = true)]
async fn wrong_answers_to_a_challenge_end_the_connection() {
    let cluster = secured();
    let control = cluster.control();
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(log_in(&cluster, "alice", 0, true).await);
    }
    let mut silent = log_in(&cluster, "alice", 0, true).await;
    let mut old = log_in(&cluster, "alice", 0, false).await;
    control.expire_token("alice-token");
    old.expect_closed().await;
    let [invalid, empty, other] = &mut clients[..] else { panic!("three") };
    for client in [&mut *invalid, &mut *empty, &mut *other, &mut silent] {
        expect!(client, AuthChallenge);
    }
    invalid.send(answer_with("alice-token")).await;
    expect_failed(invalid).await;
    empty.send(CommandAuthResponse::default()).await;
    empty.expect_closed().await;
    other.send(answer_with("bob-token")).await;
    other.expect_closed().await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    silent.expect_nothing().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    silent.expect_closed().await;
    let reasons: Vec<String> = control
        .journal()
        .iter()
        .filter(|r| r.event.name() == "TCP_CLOSE")
        .map(|r| r.to_json()["fields"]["reason"].to_string())
        .collect();
    for part in
        ["does not answer", "wrong or missing", "without a method", "principal changed", "within 60 s"]
    {
        assert!(reasons.iter().any(|r| r.contains(part)), "{part}: {reasons:?}");
    }
}
