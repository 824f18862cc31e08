//! Producers of the reference client.

use std::time::Duration;

use stc_client::{ProducerBuilder, QueueFull};

use super::encryption::for_producer;
use crate::client::{AccessMode, Batching, Chunking, Compression, ProducerOptions, Value};

/// Gives the builder everything that the application configures, except the schema.
pub(super) fn configured(
    mut builder: ProducerBuilder<Value>,
    options: ProducerOptions,
) -> ProducerBuilder<Value> {
    builder = builder.access_mode(access(options.access));
    if let Some(limit) = options.max_pending {
        builder = builder.max_pending(limit as usize);
    }
    if let Some(waits) = options.block_if_queue_full {
        builder = builder.queue_full(if waits { QueueFull::Wait } else { QueueFull::Fail });
    }
    for (name, value) in options.properties {
        builder = builder.property(name, value);
    }
    if let Some(topic) = options.topic {
        builder = builder.topic(topic);
    }
    if let Some(name) = options.name {
        builder = builder.name(name);
    }
    if let Some(sequence_id) = options.initial_sequence_id {
        builder = builder.initial_sequence_id(sequence_id);
    }
    if let Some(timeout) = options.send_timeout_ms {
        builder = builder.send_timeout(Duration::from_millis(timeout));
    }
    if let Some(codec) = options.compression {
        builder = builder.compression(compression(codec));
    }
    if let Some(encryption) = options.encryption {
        builder = builder.encryption(for_producer(encryption));
    }
    builder = match options.chunking {
        None => builder,
        Some(Chunking::Off) => builder.chunking(false),
        Some(Chunking::On { max_bytes: None }) => builder.chunking(true),
        Some(Chunking::On { max_bytes: Some(bytes) }) => builder.chunk_size(bytes as usize),
    };
    match options.batching {
        None => builder,
        Some(Batching::Off) => builder.batching(false),
        Some(Batching::On { max_messages, max_bytes, max_delay_ms }) => {
            let builder = builder
                .batching(true)
                .batching_max_messages(max_messages as usize)
                .batching_max_delay(Duration::from_millis(max_delay_ms));
            match max_bytes {
                Some(bytes) => builder.batching_max_bytes(bytes as usize),
                None => builder,
            }
        }
    }
}

fn access(mode: AccessMode) -> stc_client::AccessMode {
    match mode {
        AccessMode::Shared => stc_client::AccessMode::Shared,
        AccessMode::Exclusive => stc_client::AccessMode::Exclusive,
        AccessMode::ExclusiveWithFencing => stc_client::AccessMode::ExclusiveWithFencing,
        AccessMode::WaitForExclusive => stc_client::AccessMode::WaitForExclusive,
    }
}

fn compression(codec: Compression) -> stc_client::Compression {
    match codec {
        Compression::None => stc_client::Compression::None,
        Compression::Lz4 => stc_client::Compression::Lz4,
        Compression::Zlib => stc_client::Compression::Zlib,
        Compression::Zstd => stc_client::Compression::Zstd,
        Compression::Snappy => stc_client::Compression::Snappy,
    }
}
