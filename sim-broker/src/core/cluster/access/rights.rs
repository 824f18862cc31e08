//! Authorization: what a command needs, and what a principal has.

use stc_proto::{
    Command, TopicName,
    pulsar::{CommandLookupTopic, CommandPartitionedTopicMetadata},
};

use super::Cluster;
use crate::core::{
    cluster::{admin::AdminError, coordinators::AssignTopic},
    ids::ConnId,
    security::{Action, Authorization, Right},
};

/// What an admin call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminNeed {
    /// The namespace that it is about (`tenant/namespace`).
    pub namespace: String,
    /// What it needs there.
    pub right: Right,
    /// The HTTP status that refuses it.
    pub denied: u16,
}

const PRODUCE: Right = Right::Act(Action::Produce);
const CONSUME: Right = Right::Act(Action::Consume);

impl Cluster {
    /// The text that refuses a command, when its sender may not do what it asks for. Producers and consumers that
    /// exist were allowed when they came. A topic name that does not parse passes: its handler has the better answer.
    pub(in crate::core::cluster) fn forbidden(&self, conn: ConnId, command: &Command) -> Option<String> {
        use Command as C;
        let identity = self.conns.get(&conn)?.identity.as_ref()?;
        self.authorization()?;
        let (topic, right, to) = match command {
            // Where the coordinators are is no secret: the watch tells everyone.
            C::Lookup(CommandLookupTopic { topic, .. })
            | C::PartitionedMetadata(CommandPartitionedTopicMetadata { topic, .. })
                if TopicName::parse(topic).is_ok_and(|name| AssignTopic::of(&name).is_some()) =>
            {
                return None;
            }
            C::EndTxnOnPartition(_) | C::EndTxnOnSubscription(_) => {
                let superuser = self.may(&identity.principal, "", Right::Superuser);
                return (!superuser)
                    .then(|| "Client is not authorized to end parts of transactions".to_owned());
            }
            C::Lookup(c) => (&c.topic, Right::Any, "Lookup"),
            C::PartitionedMetadata(c) => (&c.topic, Right::Any, "Get Partition Metadata"),
            C::ScalableTopicLookup(c) => (&c.topic, Right::Any, "ScalableTopicLookup"),
            C::ScalableTopicSubscribe(c) => (&c.topic, CONSUME, "ScalableTopicSubscribe"),
            C::Producer(c) => (&c.topic, PRODUCE, "Produce"),
            C::Subscribe(c) => (&c.topic, CONSUME, "subscribe"),
            C::GetSchema(c) => (&c.topic, Right::Any, "get the schema"),
            C::GetOrCreateSchema(c) => (&c.topic, PRODUCE, "add a schema"),
            C::GetTopicsOfNamespace(c) => (&c.namespace, Right::Any, "GetTopicsOfNamespace"),
            C::WatchTopicList(c) => (&c.namespace, Right::Any, "watchTopicList"),
            C::WatchScalableTopics(c) => (&c.namespace, Right::Any, "WatchScalableTopics"),
            _ => return None,
        };
        let name = match command {
            C::GetTopicsOfNamespace(_) | C::WatchTopicList(_) | C::WatchScalableTopics(_) => None,
            _ => Some(TopicName::parse(topic).ok()?),
        };
        let namespace = name.as_ref().map_or(topic.as_str(), TopicName::namespace);
        let allowed = self.may(&identity.principal, namespace, right);
        (!allowed).then(|| format!("Client is not authorized to {to}"))
    }

    /// Whether a principal may do something in a namespace (`tenant/namespace`). In a cluster without authorization
    /// everyone may; in one with it, nobody but a superuser may do anything in a namespace that does not exist.
    pub fn may(&self, principal: &str, namespace: &str, right: Right) -> bool {
        let Some(authorization) = self.authorization() else { return true };
        if authorization.superusers.contains(principal) {
            return true;
        }
        let granted = self.namespaces.get(namespace).and_then(|n| n.permissions.get(principal));
        granted.is_some_and(|actions| match right {
            Right::Act(action) => actions.contains(&action),
            Right::Any => !actions.is_empty(),
            Right::Superuser => false,
        })
    }

    /// Whether an admin call may act; `call` describes it. 401 when the token is missing or invalid. In a cluster without
    /// authentication everyone may call.
    pub fn check_admin(&self, token: Option<&str>, need: &AdminNeed, call: &str) -> Result<(), AdminError> {
        if self.config.security.is_none() {
            return Ok(());
        }
        match token.and_then(|token| self.principal(token)) {
            None => Err(AdminError::new(401, "Authentication required")),
            Some(principal) if !self.may(principal, &need.namespace, need.right) => {
                Err(AdminError::new(need.denied, format!("{principal} is not authorized to {call}")))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn authorization(&self) -> Option<&Authorization> {
        self.config.security.as_ref()?.authorization.as_ref()
    }
}
