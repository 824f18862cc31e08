//! Who may do what, as configuration: tokens, superusers, permissions on namespaces.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Token authentication, and perhaps authorization. Without it a cluster lets everyone do everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// The principal that each token stands for. A token is any text: it is compared, not read.
    pub tokens: BTreeMap<String, String>,
    /// Who may do what; `None` lets everyone with a token do everything.
    pub authorization: Option<Authorization>,
}

/// Who may do what. Permissions on namespaces can change while the cluster runs, through the admin REST.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorization {
    /// Principals that may do everything.
    pub superusers: BTreeSet<String>,
    /// The permissions that a namespace (`tenant/namespace`) has from its creation on.
    pub grants: BTreeMap<String, Permissions>,
}

/// What each principal may do in a namespace.
pub type Permissions = BTreeMap<String, BTreeSet<Action>>;

/// What a principal may do in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Produce to its topics.
    Produce,
    /// Consume from its topics, and manage subscriptions.
    Consume,
}

impl Action {
    /// The action of this name, as the admin REST and the command line write it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "produce" => Some(Action::Produce),
            "consume" => Some(Action::Consume),
            _ => None,
        }
    }
}

/// What an operation needs in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// One action.
    Act(Action),
    /// Any action, as for looking something up.
    Any,
    /// Nothing less than a superuser.
    Superuser,
}

impl Security {
    /// Authentication by these tokens (each with its principal), without authorization.
    pub fn with_tokens<T: Into<String>, P: Into<String>>(tokens: impl IntoIterator<Item = (T, P)>) -> Self {
        let tokens = tokens.into_iter().map(|(token, principal)| (token.into(), principal.into())).collect();
        Security { tokens, authorization: None }
    }

    /// Switches authorization on, with this superuser.
    #[must_use]
    pub fn superuser(mut self, principal: impl Into<String>) -> Self {
        self.authorization.get_or_insert_default().superusers.insert(principal.into());
        self
    }

    /// Switches authorization on, and lets a principal act in a namespace (`tenant/namespace`).
    #[must_use]
    pub fn grant(
        mut self,
        namespace: impl Into<String>,
        principal: impl Into<String>,
        actions: impl IntoIterator<Item = Action>,
    ) -> Self {
        let grants = &mut self.authorization.get_or_insert_default().grants;
        grants.entry(namespace.into()).or_default().entry(principal.into()).or_default().extend(actions);
        self
    }
}
