//! Ports for brokers that are about to start.

/// Ports on which a broker is about to listen.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// For clients.
    pub service: u16,
    /// Of the admin REST.
    pub admin: u16,
}

impl Ports {
    /// Free ones, other than those of any other call in this process.
    ///
    /// # Errors
    /// When none is free.
    pub fn free() -> anyhow::Result<Self> {
        let [service, admin] = xtask::real_broker::free_ports()?;
        Ok(Ports { service, admin })
    }

    /// Where the admin REST will be.
    #[must_use]
    pub fn admin_url(self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    /// Where clients will connect.
    #[must_use]
    pub fn service_url(self) -> String {
        format!("pulsar://127.0.0.1:{}", self.service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ports_differ() {
        let (a, b) = (Ports::free().unwrap(), Ports::free().unwrap());
        let ports = std::collections::BTreeSet::from([a.service, a.admin, b.service, b.admin]);
        assert_eq!(ports.len(), 4, "{a:?} {b:?}");
    }
}
