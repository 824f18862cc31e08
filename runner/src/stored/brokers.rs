//! Connections of the suite's own to the brokers that serve topics, found by the classic lookup.

use std::collections::BTreeMap;

use sim_broker::SimCluster;
use stc_proto::pulsar::CommandLookupTopic;
use stc_proto::pulsar::command_lookup_topic_response::LookupType;
use stc_proto::{Command, TopicName};

use super::link::{Link, unexpected};
use crate::judge::Trouble;
use crate::target::Broker;

/// How often a lookup may be redirected.
const REDIRECTS: usize = 10;

/// The brokers of one cluster, and the connections to them.
pub(super) struct Brokers {
    /// `host:port` of the brokers of the service URL.
    service: Vec<String>,
    /// The cluster in this process that the addresses belong to, if they do.
    cluster: Option<SimCluster>,
    /// Connections by address and, behind a proxy, broker.
    links: BTreeMap<(String, Option<String>), Link>,
}

impl Brokers {
    /// Those of a scenario.
    pub(super) fn of(broker: &Broker) -> Result<Brokers, Trouble> {
        Ok(Brokers { cluster: broker.cluster.clone(), ..Brokers::elsewhere(&broker.own_url)? })
    }

    /// Those behind a service URL.
    pub(super) fn elsewhere(service_url: &str) -> Result<Brokers, Trouble> {
        Ok(Brokers { service: addresses(service_url)?, cluster: None, links: BTreeMap::new() })
    }

    /// A connection to the broker that serves a topic.
    pub(super) async fn serving(&mut self, topic: &TopicName) -> Result<&mut Link, Trouble> {
        let place = self.lookup(topic).await?;
        self.link(place).await
    }

    /// Where a topic is served: the address to connect to, and the broker behind it if that is a proxy.
    async fn lookup(&mut self, topic: &TopicName) -> Result<(String, Option<String>), Trouble> {
        let service = self.service.first().cloned().ok_or_else(|| Trouble::new("no service URL"))?;
        let (mut ask, mut authoritative) = ((service.clone(), None), false);
        for _ in 0..REDIRECTS {
            let link = self.link(ask.clone()).await?;
            let request_id = link.request_id();
            let lookup = CommandLookupTopic {
                topic: topic.to_string(),
                request_id,
                authoritative: Some(authoritative),
                ..CommandLookupTopic::default()
            };
            link.send(lookup).await?;
            let answer = match link.answer().await? {
                Command::LookupResponse(answer) => answer,
                other => return Err(unexpected("LOOKUP", &other)),
            };
            let broker = answer.broker_service_url.as_deref().map(addresses).transpose()?;
            let broker = broker.and_then(|hosts| hosts.into_iter().next());
            let proxied = answer.proxy_through_service_url == Some(true);
            let place = match broker {
                Some(broker) if !proxied || broker == service => (broker, None),
                Some(broker) => (service.clone(), Some(broker)),
                None => {
                    let message = answer.message.unwrap_or_default();
                    return Err(Trouble(format!("LOOKUP of {topic} failed: {message}")));
                }
            };
            match answer.response.and_then(|r| LookupType::try_from(r).ok()) {
                Some(LookupType::Connect) => return Ok(place),
                Some(LookupType::Redirect) => {
                    (ask, authoritative) = (place, answer.authoritative.unwrap_or(false));
                }
                Some(LookupType::Failed) | None => {
                    return Err(Trouble(format!("LOOKUP of {topic} failed: {:?}", answer.message)));
                }
            }
        }
        Err(Trouble(format!("LOOKUP of {topic} was redirected {REDIRECTS} times")))
    }

    async fn link(&mut self, place: (String, Option<String>)) -> Result<&mut Link, Trouble> {
        use std::collections::btree_map::Entry as Slot;
        Ok(match self.links.entry(place) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => {
                let (address, through) = slot.key();
                let link = match &self.cluster {
                    Some(cluster) => {
                        let stream = cluster.connect(&format!("pulsar://{address}"))?;
                        Link::over(Box::new(stream), through.as_deref()).await?
                    }
                    None => Link::open(address, through.as_deref()).await?,
                };
                slot.insert(link)
            }
        })
    }
}

/// `host:port` of each broker that a service URL names.
fn addresses(service_url: &str) -> Result<Vec<String>, Trouble> {
    let hosts = service_url.strip_prefix("pulsar://").ok_or_else(|| {
        Trouble(format!("stored messages are read from a pulsar:// URL, and this is {service_url:?}"))
    })?;
    Ok(hosts.trim_end_matches('/').split(',').map(str::to_owned).collect())
}
