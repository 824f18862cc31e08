//! The URLs of other brokers in what a broker says to a client.

use stc_proto::Command;

/// Replaces each plain URL by what `local` has for it, and takes away the URLs for TLS, which would lead past the tap.
/// Whether there was any.
pub(super) fn urls(command: &mut Command, local: &mut dyn FnMut(&str) -> Option<String>) -> bool {
    let mut pairs: Vec<(&mut Option<String>, &mut Option<String>)> = Vec::new();
    let mut changed = false;
    match command {
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
                    if let Some(url) = local(&segment.broker_url) {
                        segment.broker_url = url;
                        changed = true;
                    }
                    changed |= segment.broker_url_tls.take().is_some();
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
        if let Some(url) = plain.as_deref().and_then(&mut *local) {
            *plain = Some(url);
            changed = true;
        }
        changed |= tls.take().is_some();
    }
    changed
}
