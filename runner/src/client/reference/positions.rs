//! Positions of the reference client: checkpoint consumers, checkpoints and message identifiers as bytes.
//!
//! Identifiers and checkpoints are values without a client behind them, so the deviations of their bytes and of their
//! order have their place here.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use stc_client::CheckpointConsumer;

use super::encryption::for_consumer;
use super::{Consumer, ReferenceClient, failed, id, received, schema};
use crate::client::{
    Boundary, Checkpoint, CheckpointOptions, ClientError, ClientId, ConsumerId, MessageId, Order, Received,
    StartPosition, Value,
};

/// A checkpoint consumer and the count of what it gave.
pub(super) struct Reader {
    consumer: CheckpointConsumer<Value>,
    next: Cell<u64>,
}

impl Reader {
    pub(super) async fn receive(&self, wait_ms: Option<u64>) -> Result<Option<Received>, ClientError> {
        let message = match wait_ms {
            Some(wait) => self.consumer.receive_timeout(Duration::from_millis(wait)).await,
            None => self.consumer.receive().await.map(Some),
        };
        let message = message.map_err(failed)?;
        let handle = self.next.get();
        self.next.set(handle + 1);
        message.map(|message| received(handle, &message)).transpose()
    }

    pub(super) fn checkpoint(&self) -> stc_client::Checkpoint {
        self.consumer.checkpoint()
    }

    pub(super) async fn close(&self) -> Result<(), ClientError> {
        self.consumer.close().await.map_err(failed)
    }
}

impl ReferenceClient {
    pub(super) async fn create_reader(
        &self,
        client: ClientId,
        options: CheckpointOptions,
    ) -> Result<ConsumerId, ClientError> {
        let mut builder = self.client(client)?.checkpoint_consumer(schema(&options.schema).map_err(failed)?);
        builder = match options.start {
            None => builder,
            Some(StartPosition::Boundary(Boundary::Earliest)) => {
                builder.start(stc_client::Checkpoint::earliest())
            }
            Some(StartPosition::Boundary(Boundary::Latest)) => {
                builder.start(stc_client::Checkpoint::latest())
            }
            Some(StartPosition::Checkpoint(checkpoint)) => {
                builder.start(stc_client::Checkpoint::from_bytes(&checkpoint.bytes).map_err(failed)?)
            }
        };
        if let Some(topic) = options.topic {
            builder = builder.topic(topic);
        }
        if let Some(group) = options.group {
            builder = builder.group(group);
        }
        if let Some(name) = options.name {
            builder = builder.name(name);
        }
        if let Some(size) = options.receiver_queue {
            builder = builder.receiver_queue_size(size);
        }
        if let Some(encryption) = options.encryption {
            builder = builder.encryption(for_consumer(encryption));
        }
        let consumer = builder.create().await.map_err(failed)?;
        Ok(self.keep(Consumer::Checkpoint(Rc::new(Reader { consumer, next: Cell::new(0) }))))
    }

    pub(super) fn serialized(&self, checkpoint: &stc_client::Checkpoint) -> Checkpoint {
        #[cfg_attr(not(feature = "deviants"), expect(unused_mut, reason = "a deviant changes them"))]
        let mut bytes = checkpoint.to_bytes();
        #[cfg(feature = "deviants")]
        if self.is(stc_client::Deviant::TornCheckpointBytes) {
            bytes.pop();
        }
        Checkpoint { bytes }
    }

    pub(super) fn boundary(&self, boundary: Boundary) -> MessageId {
        #[cfg(feature = "deviants")]
        let boundary = match boundary {
            Boundary::Latest if self.is(stc_client::Deviant::LatestIdIsEarliest) => Boundary::Earliest,
            other => other,
        };
        id(&match boundary {
            Boundary::Earliest => stc_client::MessageId::earliest(),
            Boundary::Latest => stc_client::MessageId::latest(),
        })
    }

    pub(super) fn restored(&self, bytes: &[u8]) -> Result<stc_client::MessageId, ClientError> {
        #[cfg(feature = "deviants")]
        if self.is(stc_client::Deviant::IdBytesRefused) && bytes.len() > 2 {
            return stc_client::MessageId::from_bytes(&[]).map_err(failed);
        }
        stc_client::MessageId::from_bytes(bytes).map_err(failed)
    }

    pub(super) fn compared(&self, one: &MessageId, other: &MessageId) -> Result<Order, ClientError> {
        let order = self.restored(&one.bytes)?.cmp(&self.restored(&other.bytes)?);
        #[cfg(feature = "deviants")]
        if self.is(stc_client::Deviant::AllIdsEqual) {
            return Ok(Order::Same);
        }
        Ok(order.into())
    }

    #[cfg(feature = "deviants")]
    fn is(&self, deviant: stc_client::Deviant) -> bool {
        self.deviant == Some(deviant)
    }
}
