//! Who may connect, and do what.
//!
//! | Module | Owns |
//! |---|---|
//! | this one | authentication: CONNECT, challenges and their answers |
//! | `rights` | authorization: what a principal may do in a namespace |
//! | `grants` | changes of permissions |

mod grants;
mod rights;

use stc_proto::pulsar::*;

pub use self::rights::AdminNeed;
use super::{Cluster, about::error_for, flow::Due};
use crate::core::{
    ids::{ConnId, Millis},
    topic::UNSOLICITED,
};

/// The only method there is.
const METHOD: &str = "token";

/// What a challenge carries when it asks for fresh credentials.
const REFRESH: &[u8] = b"PulsarAuthRefresh";

/// How long a client may take to answer a challenge, in ms.
const CHALLENGE_MS: Millis = 60_000;

/// Who a client is.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    principal: String,
    token: String,
    /// Whether the client answers challenges.
    refreshes: bool,
    /// The client's protocol version.
    protocol_version: i32,
    /// How often it was challenged.
    challenges: u64,
    /// Whether a challenge is unanswered.
    challenged: bool,
}

/// The credentials are wrong, or missing.
#[derive(Debug)]
pub(super) struct BadCredentials;

impl Cluster {
    /// Who a CONNECT comes from; `None` in a cluster without authentication.
    pub(super) fn authenticate(&self, command: &CommandConnect) -> Result<Option<Identity>, BadCredentials> {
        if self.config.security.is_none() {
            return Ok(None);
        }
        let token = match command.auth_method_name.as_deref() {
            Some(METHOD) => std::str::from_utf8(command.auth_data()).map_err(|_| BadCredentials)?,
            _ => return Err(BadCredentials),
        };
        let principal = self.principal(token).ok_or(BadCredentials)?;
        Ok(Some(Identity {
            principal: principal.to_owned(),
            token: token.to_owned(),
            refreshes: command.feature_flags.as_ref().is_some_and(|f| f.supports_auth_refresh()),
            protocol_version: command.protocol_version(),
            challenges: 0,
            challenged: false,
        }))
    }

    /// The principal that a valid token stands for.
    pub fn principal(&self, token: &str) -> Option<&str> {
        self.tokens.get(token).map(String::as_str)
    }

    /// Tells a client that its credentials are wrong, and closes its connection.
    pub(super) fn fail_authentication(&mut self, conn: ConnId) {
        let error = ServerError::AuthenticationError;
        self.effects.send(conn, error_for(UNSOLICITED, error, "Failed to authenticate"));
        self.effects.close(conn, "the credentials are wrong or missing");
    }

    /// Makes a token valid.
    pub fn allow_token(&mut self, token: &str, principal: &str, now: Millis) {
        self.tokens.insert(token.to_owned(), principal.to_owned());
        self.note(now, format!("a token of {principal} is valid"));
    }

    /// Makes a token invalid. Connections that came with it are asked for a fresh one at once (Pulsar looks once a
    /// minute); those of clients that do not answer challenges close. `false` when the token was not valid.
    pub fn expire_token(&mut self, token: &str, now: Millis) -> bool {
        let Some(principal) = self.tokens.remove(token) else { return false };
        self.note(now, format!("a token of {principal} expired"));
        for (id, conn) in &mut self.conns {
            let Some(identity) = conn.identity.as_mut().filter(|i| i.token == token) else { continue };
            if !identity.refreshes {
                self.effects.close(*id, "the token expired, and the client does not answer challenges");
                continue;
            }
            identity.challenges += 1;
            identity.challenged = true;
            let protocol_version = identity.protocol_version.min(self.config.profile.protocol_version);
            self.effects.send(
                *id,
                CommandAuthChallenge {
                    server_version: None,
                    challenge: Some(AuthData {
                        auth_method_name: Some(METHOD.to_owned()),
                        auth_data: Some(REFRESH.into()),
                    }),
                    protocol_version: Some(protocol_version),
                },
            );
            self.agenda.add(now + CHALLENGE_MS, Due::Challenge(*id, identity.challenges));
        }
        self.settle(now);
        true
    }

    /// The time to answer the n-th challenge is over.
    pub(super) fn challenge_due(&mut self, conn: ConnId, n: u64) {
        let identity = self.conns.get(&conn).and_then(|c| c.identity.as_ref());
        if identity.is_some_and(|i| i.challenged && i.challenges == n) {
            self.effects.close(conn, "a challenge was not answered within 60 s");
        }
    }

    /// AUTH_RESPONSE. Ignored in a cluster without authentication: nobody asked for it.
    pub(super) fn auth_response(&mut self, conn: ConnId, command: CommandAuthResponse) {
        let Some(identity) = self.conns.get_mut(&conn).and_then(|c| c.identity.as_mut()) else { return };
        let Some(AuthData { auth_method_name: Some(_), auth_data: Some(data) }) = command.response else {
            return self.effects.close(conn, "AUTH_RESPONSE without a method or data");
        };
        let token = std::str::from_utf8(&data).ok();
        match token.and_then(|token| self.tokens.get_key_value(token)) {
            None => self.fail_authentication(conn),
            Some((_, principal)) if *principal != identity.principal => {
                self.effects.close(conn, "the principal changed with an AUTH_RESPONSE");
            }
            Some((token, _)) => {
                identity.token.clone_from(token);
                identity.challenged = false;
            }
        }
    }
}
