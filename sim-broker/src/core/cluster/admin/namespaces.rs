//! Admin calls on tenants and namespaces.

use stc_proto::{TopicName, name::Domain};

use super::AdminError;
use crate::core::{
    cluster::{AutoTopicCreation, Cluster, Namespace},
    ids::Millis,
};

impl Cluster {
    /// The names of the clusters: this one.
    pub fn cluster_names(&self) -> Vec<String> {
        vec!["standalone".to_owned()]
    }

    /// The tenants, sorted.
    pub fn tenants(&self) -> Vec<String> {
        self.tenants.iter().cloned().collect()
    }

    /// Makes a tenant. 409 when it exists, 412 for a bad name.
    pub fn create_tenant(&mut self, tenant: &str, now: Millis) -> Result<(), AdminError> {
        check_names(tenant, "default")?;
        if !self.tenants.insert(tenant.to_owned()) {
            return Err(AdminError::new(409, "Tenant already exist"));
        }
        self.note(now, format!("create tenant {tenant}"));
        Ok(())
    }

    /// Deletes an empty tenant. 404 when there is none, 409 when it has namespaces.
    pub fn delete_tenant(&mut self, tenant: &str, now: Millis) -> Result<(), AdminError> {
        let namespaces = self.namespaces(tenant).map_err(|_| AdminError::new(404, "Tenant doesn't exist"))?;
        if !namespaces.is_empty() {
            return Err(AdminError::new(409, "The tenant still has active namespaces"));
        }
        self.tenants.remove(tenant);
        self.note(now, format!("delete tenant {tenant}"));
        Ok(())
    }

    /// The namespaces of a tenant as `tenant/namespace`, sorted. 404 when there is no such tenant.
    pub fn namespaces(&self, tenant: &str) -> Result<Vec<String>, AdminError> {
        if !self.tenants.contains(tenant) {
            return Err(AdminError::new(404, "Tenant not found"));
        }
        let of_tenant = |name: &&String| name.split_once('/').is_some_and(|(t, _)| t == tenant);
        Ok(self.namespaces.keys().filter(of_tenant).cloned().collect())
    }

    /// Makes a namespace. 404 when there is no such tenant, 409 when it exists, 412 for a bad name.
    pub fn create_namespace(&mut self, tenant: &str, namespace: &str, now: Millis) -> Result<(), AdminError> {
        check_names(tenant, namespace)?;
        if !self.tenants.contains(tenant) {
            return Err(AdminError::new(404, "Tenant does not exist"));
        }
        if self.namespaces.contains_key(&format!("{tenant}/{namespace}")) {
            return Err(AdminError::new(409, "Namespace already exists"));
        }
        self.create_namespace_entry(tenant, namespace);
        self.note(now, format!("create namespace {tenant}/{namespace}"));
        Ok(())
    }

    /// Deletes a namespace. 404 when there is none, 409 when it has topics and `force` is not set.
    pub fn delete_namespace(
        &mut self,
        tenant: &str,
        namespace: &str,
        force: bool,
        now: Millis,
    ) -> Result<(), AdminError> {
        let name = format!("{tenant}/{namespace}");
        if !self.namespaces.contains_key(&name) {
            return Err(AdminError::new(404, format!("Namespace {name} does not exist.")));
        }
        let scalable: Vec<TopicName> =
            self.scalable.keys().filter(|topic| topic.namespace() == name).cloned().collect();
        let stored: Vec<TopicName> =
            self.stored.keys().filter(|topic| topic.namespace() == name).cloned().collect();
        let empty = scalable.is_empty() && stored.is_empty();
        if !force && !empty {
            return Err(AdminError::new(409, "Cannot delete non empty namespace"));
        }
        for topic in scalable {
            self.scalable.remove(&topic);
            self.topic_set_changed(&topic, now);
        }
        for topic in stored {
            self.delete_stored(&topic);
        }
        self.partitioned.retain(|topic, _| topic.namespace() != name);
        self.namespaces.remove(&name);
        self.note(now, format!("delete namespace {name}"));
        self.settle(now);
        Ok(())
    }

    /// A namespace and its policies. 404 when there is none.
    pub fn namespace(&self, tenant: &str, namespace: &str) -> Result<&Namespace, AdminError> {
        let entry = self.namespaces.get(&format!("{tenant}/{namespace}"));
        entry.ok_or_else(|| AdminError::new(404, "Namespace does not exist"))
    }

    /// Switches deduplication; `None` restores the default, which is off. Topics that exist follow at once. 404 when
    /// there is no such namespace.
    pub fn set_deduplication(
        &mut self,
        tenant: &str,
        namespace: &str,
        enabled: impl Into<Option<bool>>,
        now: Millis,
    ) -> Result<(), AdminError> {
        let enabled = enabled.into();
        self.namespace_mut(tenant, namespace)?.deduplication = enabled;
        let enabled = enabled.unwrap_or(false);
        let name = format!("{tenant}/{namespace}");
        for (topic, stored) in &mut self.stored {
            if topic.namespace() == name {
                stored.topic.config_mut().deduplication = enabled;
            }
        }
        self.note(now, format!("set deduplication of {name} to {enabled}"));
        Ok(())
    }

    /// Sets which topics come into being when a client names them; `None` restores the default. 404 when there is no
    /// such namespace, 412 when partitioned topics would get no partition.
    pub fn set_auto_topic_creation(
        &mut self,
        tenant: &str,
        namespace: &str,
        policy: Option<AutoTopicCreation>,
        now: Millis,
    ) -> Result<(), AdminError> {
        if policy.as_ref().is_some_and(|p| p.default_partitions == 0) {
            return Err(AdminError::new(412, "Invalid configuration for autoTopicCreationOverride"));
        }
        let allowed = policy.as_ref().is_none_or(|p| p.allowed);
        self.namespace_mut(tenant, namespace)?.auto_topic_creation = policy;
        self.note(now, format!("set auto topic creation of {tenant}/{namespace} to {allowed}"));
        Ok(())
    }

    fn namespace_mut(&mut self, tenant: &str, namespace: &str) -> Result<&mut Namespace, AdminError> {
        let entry = self.namespaces.get_mut(&format!("{tenant}/{namespace}"));
        entry.ok_or_else(|| AdminError::new(404, "Namespace does not exist"))
    }
}

/// A tenant and a namespace are named as in a topic name.
fn check_names(tenant: &str, namespace: &str) -> Result<(), AdminError> {
    TopicName::new(Domain::Persistent, tenant, namespace, "x")
        .map(|_| ())
        .map_err(|e| AdminError::new(412, format!("Invalid name: {}", e.reason)))
}
