//! Stream consumers of the reference client.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use stc_client::{StreamConsumer, StreamConsumerBuilder, Transaction};

use super::encryption::for_consumer;
use super::{Consumer, ReferenceClient, failed, received, schema, unknown};
use crate::client::{ClientError, ClientId, ConsumerId, InitialPosition, Received, StreamOptions, Value};

pub(super) struct Stream {
    consumer: StreamConsumer<Value>,
    /// Messages that the application has, by handle.
    given: RefCell<BTreeMap<u64, stc_client::MessageId>>,
    next: Cell<u64>,
}

impl ReferenceClient {
    pub(super) async fn open_stream(
        &self,
        client: ClientId,
        options: StreamOptions,
        what: impl FnOnce(StreamConsumerBuilder<Value>) -> StreamConsumerBuilder<Value>,
    ) -> Result<ConsumerId, ClientError> {
        let builder = self.client(client)?.stream_consumer(schema(&options.schema).map_err(failed)?);
        let mut builder = what(builder).initial_position(match options.initial_position {
            InitialPosition::Earliest => stc_client::InitialPosition::Earliest,
            InitialPosition::Latest => stc_client::InitialPosition::Latest,
        });
        builder = builder
            .read_compacted(options.read_compacted)
            .replicate_subscription_state(options.replicate_state);
        if let Some(topic) = options.topic {
            builder = builder.topic(topic);
        }
        if let Some(subscription) = options.subscription {
            builder = builder.subscription(subscription);
        }
        if let Some(name) = options.name {
            builder = builder.name(name);
        }
        if let Some(size) = options.receiver_queue {
            builder = builder.receiver_queue_size(size);
        }
        if let Some(time) = options.ack_group_time_ms {
            builder = builder.acknowledgment_group_time(Duration::from_millis(time));
        }
        for (key, value) in options.properties {
            builder = builder.subscription_property(key, value);
        }
        if let Some(encryption) = options.encryption {
            builder = builder.encryption(for_consumer(encryption));
        }
        let consumer = builder.subscribe().await.map_err(failed)?;
        let stream = Stream { consumer, given: RefCell::default(), next: Cell::new(0) };
        Ok(self.keep(Consumer::Stream(Rc::new(stream))))
    }
}

impl Stream {
    pub(super) async fn receive(&self, wait_ms: Option<u64>) -> Result<Option<Received>, ClientError> {
        let message = match wait_ms {
            Some(wait) => self.consumer.receive_timeout(Duration::from_millis(wait)).await,
            None => self.consumer.receive().await.map(Some),
        };
        let Some(message) = message.map_err(failed)? else { return Ok(None) };
        let handle = self.next.get();
        self.next.set(handle + 1);
        self.given.borrow_mut().insert(handle, message.id().clone());
        received(handle, &message).map(Some)
    }

    pub(super) async fn acknowledge(&self, handle: u64) -> Result<(), ClientError> {
        let id = self.given.borrow().get(&handle).cloned().ok_or_else(|| unknown("message"))?;
        self.consumer.acknowledge_cumulative(&id).await.map_err(failed)
    }

    pub(super) async fn acknowledge_in(&self, handle: u64, within: &Transaction) -> Result<(), ClientError> {
        let id = self.given.borrow().get(&handle).cloned().ok_or_else(|| unknown("message"))?;
        self.consumer.acknowledge_cumulative_in(&id, within).await.map_err(failed)
    }

    pub(super) async fn close(&self) -> Result<(), ClientError> {
        self.consumer.close().await.map_err(failed)
    }
}
