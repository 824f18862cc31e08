//! Queue consumers of the reference client.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use stc_client::{DeadLetterPolicy, Message, QueueConsumer, Transaction};

use super::encryption::for_consumer;
use super::{Consumer, ReferenceClient, failed, received, schema, unknown};
use crate::client::{
    ClientError, ClientId, ConsumerId, Described, InitialPosition, QueueOptions, Received, Value,
};

pub(super) struct Queue {
    consumer: QueueConsumer<Value>,
    topic: String,
    name: Option<String>,
    /// Messages that the application has, by handle.
    given: RefCell<BTreeMap<u64, stc_client::MessageId>>,
    next: Cell<u64>,
}

impl ReferenceClient {
    pub(super) async fn open_queue(
        &self,
        client: ClientId,
        options: QueueOptions,
    ) -> Result<ConsumerId, ClientError> {
        let mut builder = self.client(client)?.queue_consumer(schema(&options.schema).map_err(failed)?);
        builder = builder.initial_position(match options.initial_position {
            InitialPosition::Earliest => stc_client::InitialPosition::Earliest,
            InitialPosition::Latest => stc_client::InitialPosition::Latest,
        });
        if let Some(topic) = options.topic {
            builder = builder.topic(topic);
        }
        if let Some(subscription) = options.subscription {
            builder = builder.subscription(subscription);
        }
        if let Some(name) = &options.name {
            builder = builder.name(name);
        }
        if let Some(size) = options.receiver_queue {
            builder = builder.receiver_queue_size(size);
        }
        if let Some(delay) = options.redelivery_delay_ms {
            builder = builder.redelivery_delay(Duration::from_millis(delay));
        }
        if let Some(letters) = options.dead_letters {
            let policy = DeadLetterPolicy::new(letters.max_redeliveries);
            builder = builder.dead_letter_policy(match letters.topic {
                Some(topic) => policy.topic(topic),
                None => policy,
            });
        }
        if let Some(encryption) = options.encryption {
            builder = builder.encryption(for_consumer(encryption));
        }
        let consumer = builder.subscribe().await.map_err(failed)?;
        Ok(self.keep(Consumer::Queue(Rc::new(Queue {
            topic: consumer.topic().to_owned(),
            consumer,
            name: options.name,
            given: RefCell::default(),
            next: Cell::new(0),
        }))))
    }
}

impl Queue {
    pub(super) fn describe(&self) -> Described {
        Described { topic: self.topic.clone(), name: self.name.clone() }
    }

    pub(super) async fn receive(&self, wait_ms: Option<u64>) -> Result<Option<Received>, ClientError> {
        let message = match wait_ms {
            Some(wait) => self.consumer.receive_timeout(Duration::from_millis(wait)).await,
            None => self.consumer.receive().await.map(Some),
        };
        message.map_err(failed)?.map(|m| self.give(m)).transpose()
    }

    pub(super) async fn receive_many(&self, max: u32, wait_ms: u64) -> Result<Vec<Received>, ClientError> {
        let messages = self.consumer.receive_multi(max as usize, Duration::from_millis(wait_ms)).await;
        messages.map_err(failed)?.into_iter().map(|m| self.give(m)).collect()
    }

    pub(super) async fn acknowledge(&self, id: &stc_client::MessageId) -> Result<(), ClientError> {
        self.consumer.acknowledge(id).await.map_err(failed)
    }

    pub(super) async fn acknowledge_in(&self, handle: u64, within: &Transaction) -> Result<(), ClientError> {
        self.consumer.acknowledge_in(&self.given(handle)?, within).await.map_err(failed)
    }

    pub(super) async fn negative_acknowledge(&self, handle: u64) -> Result<(), ClientError> {
        self.consumer.negative_acknowledge(&self.given(handle)?).await.map_err(failed)
    }

    pub(super) async fn close(&self) -> Result<(), ClientError> {
        self.consumer.close().await.map_err(failed)
    }

    fn give(&self, message: Message<Value>) -> Result<Received, ClientError> {
        let handle = self.next.get();
        self.next.set(handle + 1);
        self.given.borrow_mut().insert(handle, message.id().clone());
        received(handle, &message)
    }

    pub(super) fn given(&self, handle: u64) -> Result<stc_client::MessageId, ClientError> {
        self.given.borrow().get(&handle).cloned().ok_or_else(|| unknown("message"))
    }
}
