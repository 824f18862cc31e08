//! Steps about who the client is and whom it trusts: tokens, permissions, TLS.

use std::collections::BTreeMap;

use cucumber::{gherkin, given, then, when};
use sim_broker::core::journal::Event;
use sim_broker::core::security::{Action, Security};
use stc_proto::Command;

use super::journal::marked;
use super::params::{ClientName, number, options};
use crate::judge::{Step, Trouble};
use crate::target::{SUITE, token};
use crate::world::World;

/// What a client can break that does not show the right credentials.
const CREDENTIALS: [&str; 2] = ["WIRE-10.2", "COMPAT-5.1"];

/// Nothing is served without a token, and each principal may do in `public/default` what its row says: `produce`,
/// `consume`, both, or `nothing`. The token of a principal is its name and `-token`.
#[given("a cluster that asks for tokens")]
fn tokens(world: &mut World, step: &gherkin::Step) -> Step {
    let rows = options(step)?;
    let principals = rows.iter().map(|(name, _)| name.as_str()).chain([SUITE]);
    let mut security =
        Security::with_tokens(principals.map(|name| (token(name), name.to_owned()))).superuser(SUITE);
    for (name, actions) in &rows {
        for action in actions.split(", ").filter(|action| *action != "nothing") {
            let action =
                Action::parse(action).ok_or_else(|| Trouble(format!("there is no action {action:?}")))?;
            security = security.grant("public/default", name, [action]);
        }
    }
    world.set_up(|setup| setup.security = Some(security))
}

/// Each broker has a second port, for TLS, with a certificate of the cluster's own.
#[given("a cluster that speaks TLS too")]
fn tls(world: &mut World) -> Step {
    world.set_up(|setup| setup.tls = true)
}

/// A client object with options: token, `tls` (`yes`: it connects by TLS and trusts the cluster), memory limit (bytes),
/// transaction timeout (s, for clients that have one for all their transactions).
#[given(expr = "{client} with")]
async fn client_with(world: &mut World, name: ClientName, step: &gherkin::Step) -> Step {
    let broker = world.broker().await;
    let mut made = world.client_options().await;
    for (name, value) in options(step)? {
        match name.as_str() {
            "token" => made.token = Some(value),
            "tls" => {
                let tls = broker.tls.clone().ok_or_else(|| Trouble::new("the cluster does not speak TLS"))?;
                made.service_url = tls.service_url;
                made.tls_trust_pem = Some(tls.trust_pem);
            }
            // In s.
            "transaction timeout" => {
                made.transaction_timeout_ms = Some(number::<u64>(&name, &value)?.saturating_mul(1_000));
            }
            "memory limit" => made.memory_limit = Some(number(&name, &value)?),
            other => return Err(Trouble(format!("a client has no option {other:?}"))),
        }
    }
    let opened = world.open_client(made).await;
    let id = world.expect(&CREDENTIALS, opened, "building a client");
    world.clients.insert(name.0, id);
    Ok(())
}

/// The application gives the client another token.
#[when(expr = "{client} gets the token {string}")]
async fn renew(world: &mut World, name: ClientName, token: String) -> Step {
    let id = world.client_object(&name.0).await;
    let client = world.client().await;
    let renewed = world.within(client.renew_token(id, token)).await;
    world.expect(&CREDENTIALS, renewed, "giving the client another token");
    Ok(())
}

/// The brokers take a second token of a principal.
#[when(expr = "the token {string} of {word} becomes valid")]
async fn becomes_valid(world: &mut World, token: String, principal: String) -> Step {
    world.control().await?.allow_token(&token, &principal);
    Ok(())
}

/// A token is not valid any more. Who came with it is asked for another one.
#[when(expr = "the token {string} expires")]
async fn expires(world: &mut World, token: String) -> Step {
    let was_valid = world.control().await?.expire_token(&token);
    if was_valid { Ok(()) } else { Err(Trouble(format!("{token:?} was no valid token"))) }
}

/// Each AUTH_CHALLENGE was answered on its connection, with this token.
#[then(expr = "every question for credentials was answered with the token {string}")]
async fn answered(world: &mut World, token: String) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let mut open: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, conn, command) in wire.from_brokers() {
        if matches!(command, Command::AuthChallenge(_)) {
            *open.entry(conn.0).or_default() += 1;
        }
    }
    if open.is_empty() {
        return Err(Trouble::new("no broker asked for credentials: the scenario shows nothing"));
    }
    for (_, conn, command) in wire.from_clients() {
        let Command::AuthResponse(answer) = command else { continue };
        let shown = answer.response.as_ref().and_then(|r| r.auth_data.clone()).unwrap_or_default();
        world.judge(&CREDENTIALS, shown == token.as_bytes(), || {
            "a broker that asked for fresh credentials was shown others".to_owned()
        });
        if let Some(left) = open.get_mut(&conn.0) {
            *left = left.saturating_sub(1);
        }
    }
    let unanswered: usize = open.values().sum();
    world.judge(&CREDENTIALS, unanswered == 0, || {
        format!("{unanswered} questions of brokers for fresh credentials were not answered")
    });
    Ok(())
}

/// Each CONNECT after the mark shows this token, as the method `token` has it.
#[then(expr = "every connection since the mark was opened with the token {string}")]
async fn opened_with(world: &mut World, token: String) -> Step {
    world.observe().await;
    let mark = marked(world)?;
    let wire = world.wire()?;
    let mut opened = 0;
    for (record, _, command) in wire.from_clients() {
        let Command::Connect(connect) = command else { continue };
        if record.n <= mark {
            continue;
        }
        opened += 1;
        let method = connect.auth_method_name.as_deref();
        let shown = connect.auth_data.as_deref();
        world.judge(&CREDENTIALS, method == Some("token") && shown == Some(token.as_bytes()), || {
            format!(
                "CONNECT shows other credentials than the client's present ones, by the method {method:?}"
            )
        });
    }
    if opened > 0 { Ok(()) } else { Err(Trouble::new("no connection was opened since the mark")) }
}

/// Every connection speaks TLS, and there is more than one.
#[then("every connection of the client is over TLS")]
async fn over_tls(world: &mut World) -> Step {
    world.observe().await;
    let wire = world.wire()?;
    let mut brokers = std::collections::BTreeSet::new();
    for record in wire.records() {
        let Event::TcpOpen { tls, .. } = record.event else { continue };
        world.judge(&CREDENTIALS, tls, || {
            format!("a connection without TLS went to broker {:?}", record.broker.map(|b| b.0))
        });
        brokers.insert(record.broker);
    }
    if brokers.len() > 1 {
        Ok(())
    } else {
        Err(Trouble::new("the client did not connect to several brokers"))
    }
}
