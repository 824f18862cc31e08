//! Broker addresses and service URLs.

use std::fmt;

use crate::core::error::{Category, Error};

/// Where a broker listens (wire-protocol §4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokerAddress {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether the URL asks for TLS (`pulsar+ssl://`).
    pub tls: bool,
}

impl BrokerAddress {
    /// Reads `pulsar://host:port` or `pulsar+ssl://host:port`; without a port 6650 and 6651 are meant.
    ///
    /// # Errors
    /// `InvalidServiceUrl` for anything else.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let (tls, rest) = scheme(url)?;
        Self::parse_host(url, tls, rest)
    }

    fn parse_host(url: &str, tls: bool, text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::new(Category::InvalidServiceUrl, format!("{url:?}: {why}"));
        let text = text.strip_suffix('/').unwrap_or(text);
        let (host, port) = match text.strip_prefix('[') {
            Some(v6) => {
                let (host, rest) = v6.split_once(']').ok_or_else(|| bad("a bracket is not closed"))?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').unwrap_or("x")) };
                (host, port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
            return Err(bad("it has no valid host"));
        }
        let port = match port {
            None => 6650 + u16::from(tls),
            Some(port) => port.parse().map_err(|_| bad("the port is not a number from 0 to 65535"))?,
        };
        Ok(BrokerAddress { host: host.to_owned(), port, tls })
    }

    /// `host:port`, as a connection through a proxy names its target.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The address as a URL.
impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "pulsar+ssl" } else { "pulsar" }, self.authority())
    }
}

fn scheme(url: &str) -> Result<(bool, &str), Error> {
    match url.split_once("://") {
        Some(("pulsar", rest)) => Ok((false, rest)),
        Some(("pulsar+ssl", rest)) => Ok((true, rest)),
        _ => Err(Error::new(
            Category::InvalidServiceUrl,
            format!("{url:?} does not start with pulsar:// or pulsar+ssl://"),
        )),
    }
}

/// Reads a service URL: one scheme, and one or more brokers separated by commas.
pub(crate) fn parse_service_url(url: &str) -> Result<Vec<BrokerAddress>, Error> {
    let (tls, rest) = scheme(url)?;
    rest.split(',').map(|host| BrokerAddress::parse_host(url, tls, host.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_written() {
        for (url, canonical) in [
            ("pulsar://localhost:6650", "pulsar://localhost:6650"),
            ("pulsar://broker", "pulsar://broker:6650"),
            ("pulsar+ssl://broker/", "pulsar+ssl://broker:6651"),
            ("pulsar://[::1]:7000", "pulsar://[::1]:7000"),
        ] {
            assert_eq!(BrokerAddress::parse(url).unwrap().to_string(), canonical);
        }
        let many = parse_service_url("pulsar://a:1,b:2").unwrap();
        assert_eq!(
            many.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["pulsar://a:1", "pulsar://b:2"]
        );
    }

    #[test]
    fn malformed_urls_are_named_so() {
        for url in
            ["", "http://x", "pulsar://", "pulsar://a:b", "pulsar://a:70000", "pulsar://a,", "pulsar://[::1"]
        {
            let error = parse_service_url(url).unwrap_err();
            assert_eq!(error.category(), Category::InvalidServiceUrl, "{url}");
        }
    }
}
