//! Addresses for TLS. Brokers name each address twice, for connections with TLS and without; a client that speaks TLS
//! uses the former only (client-behavior §9).

use stc_proto::Command;

/// Puts the addresses for TLS in the place of those without, so that what reads the command further on needs to know
/// of one kind only. An address that is not offered for TLS is left out: it is then looked up.
pub(crate) fn use_tls_addresses(command: &mut Command) {
    match command {
        Command::LookupResponse(answer) => {
            answer.broker_service_url = answer.broker_service_url_tls.take();
        }
        Command::CloseProducer(close) => {
            close.assigned_broker_service_url = close.assigned_broker_service_url_tls.take();
        }
        Command::CloseConsumer(close) => {
            close.assigned_broker_service_url = close.assigned_broker_service_url_tls.take();
        }
        Command::TopicMigrated(moved) => moved.broker_service_url = moved.broker_service_url_tls.take(),
        Command::ScalableTopicUpdate(update) => {
            if let Some(dag) = &mut update.dag {
                dag.controller_broker_url = dag.controller_broker_url_tls.take();
                dag.segment_brokers.retain_mut(|broker| match broker.broker_url_tls.take() {
                    Some(url) => {
                        broker.broker_url = url;
                        true
                    }
                    None => false,
                });
            }
        }
        Command::WatchTcAssignmentsUpdate(update) => {
            for coordinator in update.snapshot.iter_mut().flat_map(|snapshot| &mut snapshot.assignments) {
                coordinator.broker_service_url = coordinator.broker_service_url_tls.take();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use stc_proto::pulsar::*;

    use super::*;

    #[test]
    fn layouts_name_only_brokers_that_speak_tls() {
        let broker = |segment_id, tls: Option<&str>| SegmentBrokerAddress {
            segment_id,
            broker_url: "pulsar://a:1".into(),
            broker_url_tls: tls.map(Into::into),
        };
        let dag = ScalableTopicDag {
            segment_brokers: vec![broker(0, Some("pulsar+ssl://a:2")), broker(1, None)],
            controller_broker_url: Some("pulsar://a:1".into()),
            controller_broker_url_tls: None,
            ..Default::default()
        };
        let mut command = Command::from(CommandScalableTopicUpdate { dag: Some(dag), ..Default::default() });
        use_tls_addresses(&mut command);
        let Command::ScalableTopicUpdate(CommandScalableTopicUpdate { dag: Some(dag), .. }) = command else {
            panic!("another command");
        };
        let urls: Vec<_> =
            dag.segment_brokers.iter().map(|b| (b.segment_id, b.broker_url.as_str())).collect();
        assert_eq!(urls, [(0, "pulsar+ssl://a:2")]);
        assert_eq!(dag.controller_broker_url, None);
    }

    #[test]
    fn closes_and_lookups_send_to_tls() {
        let close = CommandCloseProducer {
            assigned_broker_service_url: Some("pulsar://a:1".into()),
            assigned_broker_service_url_tls: Some("pulsar+ssl://a:2".into()),
            ..Default::default()
        };
        let mut close = Command::from(close);
        use_tls_addresses(&mut close);
        assert!(matches!(close, Command::CloseProducer(c)
            if c.assigned_broker_service_url.as_deref() == Some("pulsar+ssl://a:2")));
        let answer = CommandLookupTopicResponse {
            broker_service_url: Some("pulsar://a:1".into()),
            ..Default::default()
        };
        let mut answer = Command::from(answer);
        use_tls_addresses(&mut answer);
        assert!(matches!(answer, Command::LookupResponse(a) if a.broker_service_url.is_none()));
    }
}
