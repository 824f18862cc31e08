//! The consumers of the blocking client.

use std::{sync::Arc, time::Duration};

use super::{Engine, Transaction};
use crate::{Checkpoint, Error, Message, MessageId};

/// Receives the messages of a topic (client-api §4.2); the blocking form of [`crate::QueueConsumer`].
#[derive(Debug)]
pub struct QueueConsumer<T> {
    pub(super) engine: Arc<Engine>,
    pub(super) consumer: crate::QueueConsumer<T>,
}

impl<T> Clone for QueueConsumer<T> {
    fn clone(&self) -> Self {
        QueueConsumer { engine: self.engine.clone(), consumer: self.consumer.clone() }
    }
}

impl<T: Send + 'static> QueueConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        self.consumer.topic()
    }

    /// The subscription's name.
    pub fn subscription(&self) -> &str {
        self.consumer.subscription()
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// As for [`crate::QueueConsumer::receive`], and `Interrupted`.
    pub fn receive(&self) -> Result<Message<T>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive().await })
    }

    /// Waits for a message, but not longer than this; `None` when the time is over.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_timeout(limit).await })
    }

    /// Receives up to `max` messages; returns earlier, with fewer or none, when `limit` is over.
    ///
    /// # Errors
    /// As for [`QueueConsumer::receive`].
    pub fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_multi(max, limit).await })
    }

    /// Acknowledges one message (client-api §4.2).
    ///
    /// # Errors
    /// As for [`crate::QueueConsumer::acknowledge`], and `Interrupted`.
    pub fn acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        let (consumer, id) = (self.consumer.clone(), id.clone());
        self.engine.wait(async move { consumer.acknowledge(&id).await })
    }

    /// Acknowledges one message within a transaction (client-api §4.2, §6).
    ///
    /// # Errors
    /// As for [`crate::QueueConsumer::acknowledge_in`], and `Interrupted`.
    pub fn acknowledge_in(&self, id: &MessageId, transaction: &Transaction) -> Result<(), Error> {
        let (consumer, id, within) = (self.consumer.clone(), id.clone(), transaction.transaction.clone());
        self.engine.wait(async move { consumer.acknowledge_in(&id, &within).await })
    }

    /// Has one message delivered again, after the redelivery delay (client-api §4.2).
    ///
    /// # Errors
    /// As for [`QueueConsumer::acknowledge`].
    pub fn negative_acknowledge(&self, id: &MessageId) -> Result<(), Error> {
        let (consumer, id) = (self.consumer.clone(), id.clone());
        self.engine.wait(async move { consumer.negative_acknowledge(&id).await })
    }

    /// Releases everything; acknowledges nothing (client-api §4.2). Closing again succeeds.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.close().await })
    }
}

/// Receives the messages of a topic (client-api §4.1); the blocking form of [`crate::StreamConsumer`].
#[derive(Debug)]
pub struct StreamConsumer<T> {
    pub(super) engine: Arc<Engine>,
    pub(super) consumer: crate::StreamConsumer<T>,
}

impl<T> Clone for StreamConsumer<T> {
    fn clone(&self) -> Self {
        StreamConsumer { engine: self.engine.clone(), consumer: self.consumer.clone() }
    }
}

impl<T: Send + 'static> StreamConsumer<T> {
    /// The canonical name of the topic; `None` when the consumer has a namespace.
    pub fn topic(&self) -> Option<&str> {
        self.consumer.topic()
    }

    /// The namespace as `tenant/namespace`; `None` when the consumer has a topic.
    pub fn namespace(&self) -> Option<&str> {
        self.consumer.namespace()
    }

    /// The subscription's name.
    pub fn subscription(&self) -> &str {
        self.consumer.subscription()
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// As for [`crate::StreamConsumer::receive`], and `Interrupted`.
    pub fn receive(&self) -> Result<Message<T>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive().await })
    }

    /// Waits for a message, but not longer than this; `None` when the time is over.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_timeout(limit).await })
    }

    /// Receives up to `max` messages; returns earlier, with fewer or none, when `limit` is over.
    ///
    /// # Errors
    /// As for [`StreamConsumer::receive`].
    pub fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_multi(max, limit).await })
    }

    /// Acknowledges a message and everything that this consumer had received before it (client-api §4.1).
    ///
    /// # Errors
    /// As for [`crate::StreamConsumer::acknowledge_cumulative`], and `Interrupted`.
    pub fn acknowledge_cumulative(&self, id: &MessageId) -> Result<(), Error> {
        let (consumer, id) = (self.consumer.clone(), id.clone());
        self.engine.wait(async move { consumer.acknowledge_cumulative(&id).await })
    }

    /// Acknowledges a message and everything that this consumer had received before it within a transaction (client-api
    /// §4.1, §6).
    ///
    /// # Errors
    /// As for [`crate::StreamConsumer::acknowledge_cumulative_in`], and `Interrupted`.
    pub fn acknowledge_cumulative_in(&self, id: &MessageId, transaction: &Transaction) -> Result<(), Error> {
        let (consumer, id, within) = (self.consumer.clone(), id.clone(), transaction.transaction.clone());
        self.engine.wait(async move { consumer.acknowledge_cumulative_in(&id, &within).await })
    }

    /// Leaves the subscription and releases everything; acknowledges nothing (client-api §4.1). Closing again succeeds.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.close().await })
    }
}

/// Receives the messages of a topic (client-api §4.3); the blocking form of [`crate::CheckpointConsumer`].
#[derive(Debug)]
pub struct CheckpointConsumer<T> {
    pub(super) engine: Arc<Engine>,
    pub(super) consumer: crate::CheckpointConsumer<T>,
}

impl<T> Clone for CheckpointConsumer<T> {
    fn clone(&self) -> Self {
        CheckpointConsumer { engine: self.engine.clone(), consumer: self.consumer.clone() }
    }
}

impl<T: Send + 'static> CheckpointConsumer<T> {
    /// The canonical name of the topic.
    pub fn topic(&self) -> &str {
        self.consumer.topic()
    }

    /// Waits for a message (client-api §4).
    ///
    /// # Errors
    /// As for [`crate::CheckpointConsumer::receive`], and `Interrupted`.
    pub fn receive(&self) -> Result<Message<T>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive().await })
    }

    /// Waits for a message, but not longer than this; `None` when the time is over.
    ///
    /// # Errors
    /// As for [`CheckpointConsumer::receive`].
    pub fn receive_timeout(&self, limit: Duration) -> Result<Option<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_timeout(limit).await })
    }

    /// Receives up to `max` messages; returns earlier, with fewer or none, when `limit` is over.
    ///
    /// # Errors
    /// As for [`CheckpointConsumer::receive`].
    pub fn receive_multi(&self, max: usize, limit: Duration) -> Result<Vec<Message<T>>, Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.receive_multi(max, limit).await })
    }

    /// Captures the position (client-api §4.3): everything that was received up to now. Waits for nothing.
    pub fn checkpoint(&self) -> Checkpoint {
        self.consumer.checkpoint()
    }

    /// Leaves the group, if there is one, and releases everything (client-api §4.3). Closing again succeeds.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn close(&self) -> Result<(), Error> {
        let consumer = self.consumer.clone();
        self.engine.wait(async move { consumer.close().await })
    }
}
