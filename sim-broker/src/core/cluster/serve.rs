//! Which handler serves which command, and when none does.

use stc_proto::{Command, Frame, pulsar::*};

use super::{Cluster, about};
use crate::core::ids::{ConnId, Millis};

impl Cluster {
    /// A command reaches the broker.
    pub(super) fn serve(&mut self, conn: ConnId, frame: Frame, now: Millis) {
        use Command as C;
        let Some(connected) = self.conns.get(&conn).map(|c| c.connected) else { return };
        let Frame { command, payload } = frame;
        let name = command.name();
        if !self.config.profile.knows(&command) {
            return self.effects.close(conn, format!("{name} is unknown to {}", self.config.profile.name));
        }
        match (&command, connected) {
            (C::Connect(c), false) => return self.connect(conn, c),
            (_, false) => return self.effects.close(conn, format!("{name} before CONNECT")),
            (C::Connect(_), true) => return self.effects.close(conn, "a second CONNECT"),
            (_, true) => {}
        }
        if let Some(refusal) = self.forbidden(conn, &command) {
            return self.refuse(conn, &command, ServerError::AuthorizationError, &refusal);
        }
        match command {
            C::Ping(_) => self.effects.send(conn, CommandPong {}),
            C::Pong(_) => {}
            C::AuthResponse(c) => self.auth_response(conn, c),
            C::Lookup(c) => self.lookup(conn, c, now),
            C::PartitionedMetadata(c) => self.partitioned_metadata(conn, c, now),
            C::Producer(c) => self.producer(conn, c, now),
            C::Send(c) => self.send(conn, c, payload.unwrap_or_default(), now),
            C::CloseProducer(c) => self.close_producer(conn, c),
            C::Subscribe(c) => self.subscribe(conn, c, now),
            C::Flow(c) => self.flow(conn, c, now),
            C::Ack(c) => self.ack(conn, c, now),
            C::RedeliverUnacknowledgedMessages(c) => self.redeliver(conn, c, now),
            C::Unsubscribe(c) => self.unsubscribe(conn, c),
            C::CloseConsumer(c) => self.close_consumer(conn, c, now),
            C::Seek(c) => self.seek(conn, c),
            C::GetLastMessageId(c) => self.last_message_id(conn, c),
            C::ConsumerStats(c) => self.consumer_stats(conn, c),
            C::GetSchema(c) => self.get_schema(conn, c),
            C::GetOrCreateSchema(c) => self.get_or_create_schema(conn, c, now),
            C::GetTopicsOfNamespace(c) => self.topics_of_namespace(conn, &c),
            C::WatchTopicList(c) => self.watch_topic_list(conn, c),
            C::WatchTopicListClose(c) => self.close_topic_list(conn, &c),
            C::ScalableTopicLookup(c) => self.scalable_lookup(conn, c, now),
            C::ScalableTopicClose(c) => self.scalable_close(conn, &c),
            C::WatchTcAssignments(c) => self.watch_coordinators(conn, &c),
            C::WatchTcAssignmentsClose(c) => self.close_coordinator_watch(conn, &c),
            C::TcClientConnectRequest(c) => self.coordinator_connect(conn, c),
            C::ScalableTopicSubscribe(c) => self.scalable_subscribe(conn, c, now),
            C::ScalableTopicUnsubscribe(c) => self.scalable_unsubscribe(conn, c, now),
            C::WatchScalableTopics(c) => self.watch_topic_set(conn, c),
            C::WatchScalableTopicsClose(c) => self.close_topic_set(conn, &c),
            C::NewTxn(c) => self.new_txn(conn, c, now),
            C::AddPartitionToTxn(c) => self.add_partitions(conn, c, now),
            C::AddSubscriptionToTxn(c) => self.add_subscriptions(conn, c, now),
            C::EndTxn(c) => self.end_txn(conn, c, now),
            C::EndTxnOnPartition(c) => self.end_on_partition(conn, c, now),
            C::EndTxnOnSubscription(c) => self.end_on_subscription(conn, c, now),
            _ => self.effects.close(conn, format!("{name} is not a command for a broker")),
        }
    }

    /// Answers a command with an error.
    pub(super) fn refuse(&mut self, conn: ConnId, command: &Command, error: ServerError, message: &str) {
        if let Some(answer) = about::error_answer(command, error, message) {
            self.effects.send(conn, answer);
        }
    }
}
