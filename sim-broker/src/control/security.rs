//! Tokens and permissions, changed while a cluster runs.

use std::collections::BTreeSet;

use super::Control;
use crate::core::{Action, cluster::admin::AdminError};

impl Control {
    /// Makes a token valid, for this principal. Counts only in a cluster with
    /// [`security`](crate::core::ClusterConfig::security).
    pub fn allow_token(&self, token: &str, principal: &str) {
        self.cluster.with(|c, now| c.allow_token(token, principal, now));
    }

    /// Makes a token invalid. Connections that came with it get AUTH_CHALLENGE and have 60 s to answer with a valid
    /// token of the same principal; those of clients that do not announce `supports_auth_refresh` close at once.
    /// `false` when the token was not valid.
    pub fn expire_token(&self, token: &str) -> bool {
        self.cluster.with(|c, now| c.expire_token(token, now))
    }

    /// Sets what a principal may do in a namespace. Its producers and consumers there that it may have no longer are
    /// closed. 404 when there is no such namespace.
    pub fn grant(
        &self,
        tenant: &str,
        namespace: &str,
        principal: &str,
        actions: impl IntoIterator<Item = Action>,
    ) -> Result<(), AdminError> {
        let actions: BTreeSet<Action> = actions.into_iter().collect();
        self.cluster.with(|c, now| c.grant(tenant, namespace, principal, actions, now))
    }

    /// Takes every permission in a namespace from a principal; its producers and consumers there are closed. 404 when
    /// there is no such namespace.
    pub fn revoke(&self, tenant: &str, namespace: &str, principal: &str) -> Result<(), AdminError> {
        self.cluster.with(|c, now| c.revoke(tenant, namespace, principal, now))
    }
}
