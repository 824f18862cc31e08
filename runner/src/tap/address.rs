//! Where a broker is: what service URLs and brokers' own answers say.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// A broker's host and port, and whether it is spoken to by TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// `host:port`, an IPv6 host in brackets.
    pub(super) host_port: String,
    pub(super) tls: bool,
    /// What the name stood for when the tap first heard of it.
    resolved: Vec<SocketAddr>,
}

/// The brokers of a service URL, `pulsar://host:port,host:port`.
pub(super) fn service(url: &str) -> Result<Vec<Address>, String> {
    let (tls, hosts) = split(url)?;
    hosts.split(',').map(|host| one(url, tls, host).map(Address::looked_up)).collect()
}

impl Address {
    /// The URL of one broker.
    pub(super) fn parse(url: &str) -> Result<Address, String> {
        let (tls, host) = split(url)?;
        one(url, tls, host)
    }

    /// Where the broker is reached, if that is somewhere else than it says.
    pub(super) fn reached(self, reach: &BTreeMap<String, String>) -> Address {
        match reach.get(&self.host_port) {
            Some(other) => Address { host_port: other.clone(), ..self }.looked_up(),
            None => self,
        }
    }

    /// The host without the port and without brackets.
    pub(super) fn host(&self) -> &str {
        let host = self.host_port.rsplit_once(':').map_or(self.host_port.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// What the name stands for. It may ask a name server, as connecting to it would.
    pub(super) fn resolve(&self) -> Vec<SocketAddr> {
        self.host_port.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    }

    fn looked_up(self) -> Address {
        Address { resolved: self.resolve(), ..self }
    }

    /// Whether another address leads to the same broker: brokers are called by names and by numbers.
    pub(super) fn is_same(&self, other: &Address, resolved: &[SocketAddr]) -> bool {
        self.tls == other.tls
            && (self.host_port == other.host_port || self.resolved.iter().any(|a| resolved.contains(a)))
    }
}

fn split(url: &str) -> Result<(bool, &str), String> {
    let rest = |scheme| url.strip_prefix(scheme).map(|rest| rest.trim_end_matches('/'));
    match (rest("pulsar://"), rest("pulsar+ssl://")) {
        (Some(hosts), _) => Ok((false, hosts)),
        (_, Some(hosts)) => Ok((true, hosts)),
        _ => Err(wrong(url)),
    }
}

fn one(url: &str, tls: bool, host: &str) -> Result<Address, String> {
    let ported = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let host_port = match ported {
        Some(("", _)) => return Err(wrong(url)),
        Some(_) => host.to_owned(),
        None if host.is_empty() || host.contains(['/', ' ']) => return Err(wrong(url)),
        None if host.contains(':') && !host.ends_with(']') => return Err(wrong(url)),
        None => format!("{host}:{}", if tls { 6651 } else { 6650 }),
    };
    Ok(Address { host_port, tls, resolved: Vec::new() })
}

fn wrong(url: &str) -> String {
    format!("{url:?}: it has to look like pulsar://host:port or pulsar+ssl://host:port")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Result<Vec<(String, bool)>, String> {
        service(url).map(|all| all.into_iter().map(|a| (a.host_port, a.tls)).collect())
    }

    #[test]
    fn service_urls_name_one_or_several_brokers() {
        assert_eq!(hosts("pulsar://127.0.0.1:1/").unwrap(), [("127.0.0.1:1".to_owned(), false)]);
        let two = [("127.0.0.1:6651".to_owned(), true), ("[::1]:2".to_owned(), true)];
        assert_eq!(hosts("pulsar+ssl://127.0.0.1,[::1]:2").unwrap(), two);
        for wrong in ["http://a:1", "pulsar://", "pulsar://:6650", "pulsar://a:b", "pulsar://a:1,", "a:1"] {
            assert!(hosts(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Address::parse("pulsar://[::1]:2").unwrap().host(), "::1");
    }

    #[test]
    fn a_broker_is_known_by_each_of_its_names() {
        let known = service("pulsar://127.0.0.1:6650").unwrap().remove(0);
        let same = |url: &str| {
            let other = Address::parse(url).unwrap();
            known.is_same(&other, &other.resolve())
        };
        assert!(same("pulsar://localhost:6650"));
        assert!(!same("pulsar://localhost:6651"));
        assert!(!same("pulsar+ssl://127.0.0.1:6650"));
    }

    #[test]
    fn what_a_broker_calls_itself_can_be_somewhere_else() {
        let reach = BTreeMap::from([("broker-1:6650".to_owned(), "127.0.0.1:7000".to_owned())]);
        let at = |url: &str| Address::parse(url).unwrap().reached(&reach).host_port;
        assert_eq!(at("pulsar://broker-1:6650"), "127.0.0.1:7000");
        assert_eq!(at("pulsar://broker-2:6650"), "broker-2:6650");
    }
}
