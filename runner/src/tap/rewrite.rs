//! The URLs of brokers in what a broker says to a client.

use stc_proto::Command;

/// What a client is told of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Urls {
    pub(crate) plain: String,
    /// Only where the tap speaks TLS to clients.
    pub(crate) tls: Option<String>,
}

/// What a client is told of a broker that called itself by these two URLs, plain and for TLS; `None` to leave them.
pub(crate) type Told<'a> = dyn FnMut(Option<&str>, Option<&str>) -> Option<Urls> + 'a;

/// Replaces the URLs of each broker by what `told` has for its plain one and its one for TLS. Whether there was any.
pub(crate) fn urls(command: &mut Command, told: &mut Told<'_>) -> bool {
    let mut pairs: Vec<(&mut Option<String>, &mut Option<String>)> = Vec::new();
    let mut changed = false;
    match command {
        // The client stays at its service URL, and names the broker there when it connects.
        Command::LookupResponse(c) if c.proxy_through_service_url == Some(true) => {}
        Command::LookupResponse(c) => {
            pairs.push((&mut c.broker_service_url, &mut c.broker_service_url_tls));
        }
        Command::TopicMigrated(c) => pairs.push((&mut c.broker_service_url, &mut c.broker_service_url_tls)),
        Command::CloseProducer(c) => {
            pairs.push((&mut c.assigned_broker_service_url, &mut c.assigned_broker_service_url_tls));
        }
        Command::CloseConsumer(c) => {
            pairs.push((&mut c.assigned_broker_service_url, &mut c.assigned_broker_service_url_tls));
        }
        Command::ScalableTopicUpdate(c) => {
            if let Some(dag) = &mut c.dag {
                for segment in &mut dag.segment_brokers {
                    let plain = Some(segment.broker_url.as_str()).filter(|url| !url.is_empty());
                    if let Some(urls) = told(plain, segment.broker_url_tls.as_deref()) {
                        segment.broker_url = urls.plain;
                        segment.broker_url_tls = urls.tls;
                        changed = true;
                    }
                }
                pairs.push((&mut dag.controller_broker_url, &mut dag.controller_broker_url_tls));
            }
        }
        Command::WatchTcAssignmentsUpdate(c) => {
            let assignments = c.snapshot.iter_mut().flat_map(|s| &mut s.assignments);
            pairs.extend(assignments.map(|a| (&mut a.broker_service_url, &mut a.broker_service_url_tls)));
        }
        _ => {}
    }
    for (plain, tls) in pairs {
        if let Some(urls) = told(plain.as_deref(), tls.as_deref()) {
            *plain = Some(urls.plain);
            *tls = urls.tls;
            changed = true;
        }
    }
    changed
}
