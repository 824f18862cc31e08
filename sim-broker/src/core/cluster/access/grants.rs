//! Changes of permissions. Who loses one is closed where it used it, as Pulsar does; DAG watches go on.

use std::collections::BTreeSet;

use stc_proto::TopicName;

use super::Cluster;
use crate::core::{
    cluster::admin::AdminError,
    ids::{ConsumerKey, Millis, ProducerKey},
    security::{Action, Permissions, Right},
};

impl Cluster {
    /// What each principal may do in a namespace. 404 when there is no such namespace.
    pub fn permissions(&self, tenant: &str, namespace: &str) -> Result<&Permissions, AdminError> {
        Ok(&self.namespace(tenant, namespace)?.permissions)
    }

    /// Sets what a principal may do in a namespace. 404 when there is no such namespace.
    pub fn grant(
        &mut self,
        tenant: &str,
        namespace: &str,
        principal: &str,
        actions: BTreeSet<Action>,
        now: Millis,
    ) -> Result<(), AdminError> {
        let name = format!("{tenant}/{namespace}");
        let Some(entry) = self.namespaces.get_mut(&name) else {
            return Err(AdminError::new(404, "Topic's namespace does not exist"));
        };
        let list: Vec<String> = actions.iter().map(|a| format!("{a:?}").to_lowercase()).collect();
        entry.permissions.insert(principal.to_owned(), actions);
        self.note(now, format!("{principal} may [{}] in {name}", list.join(", ")));
        self.evict(principal, &name, now);
        Ok(())
    }

    /// Takes every permission in a namespace from a principal. 404 when there is no such namespace.
    pub fn revoke(
        &mut self,
        tenant: &str,
        namespace: &str,
        principal: &str,
        now: Millis,
    ) -> Result<(), AdminError> {
        let name = format!("{tenant}/{namespace}");
        let Some(entry) = self.namespaces.get_mut(&name) else { return Err(AdminError::new(404, "")) };
        entry.permissions.remove(principal);
        self.note(now, format!("{principal} may nothing in {name}"));
        self.evict(principal, &name, now);
        Ok(())
    }

    /// Closes the producers and consumers of a principal that lost the right to them.
    fn evict(&mut self, principal: &str, namespace: &str, now: Millis) {
        let may = |action| self.may(principal, namespace, Right::Act(action));
        let (may_produce, may_consume) = (may(Action::Produce), may(Action::Consume));
        let inside = |topic: &TopicName| topic.namespace() == namespace;
        let mut producers: Vec<(ProducerKey, TopicName)> = Vec::new();
        let mut consumers: Vec<(ConsumerKey, TopicName)> = Vec::new();
        for (conn, c) in &self.conns {
            if c.identity.as_ref().is_none_or(|i| i.principal != principal) {
                continue;
            }
            let of = c.producers.iter().filter(|(_, t)| !may_produce && inside(t));
            producers.extend(of.map(|(id, t)| (ProducerKey { conn: *conn, id: *id }, t.clone())));
            let of = c.consumers.iter().filter(|(_, t)| !may_consume && inside(t));
            consumers.extend(of.map(|(id, t)| (ConsumerKey { conn: *conn, id: *id }, t.clone())));
        }
        for (key, topic) in producers {
            self.on_topic(&topic, |t, effects| t.close_producer(key, effects));
        }
        for (key, topic) in consumers {
            self.on_topic(&topic, |t, effects| t.close_consumer(key, now, effects));
        }
        self.settle(now);
    }
}
