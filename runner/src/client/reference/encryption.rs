//! Encryption policies of the reference client.

use stc_client::StaticKeys;

use crate::client::{
    ConsumerCryptoFailure, ConsumerEncryption, Key, ProducerCryptoFailure, ProducerEncryption,
};

/// How a producer encrypts.
pub(super) fn for_producer(encryption: ProducerEncryption) -> stc_client::ProducerEncryption {
    let add = |keys: StaticKeys, key: Key| keys.public(key.name, key.pem);
    let keys = encryption.keys.into_iter().fold(StaticKeys::new(), add);
    stc_client::ProducerEncryption::new(keys, encryption.recipients).on_failure(match encryption.on_failure {
        ProducerCryptoFailure::Fail => stc_client::ProducerCryptoFailure::Fail,
        ProducerCryptoFailure::SendUnencrypted => stc_client::ProducerCryptoFailure::SendUnencrypted,
    })
}

/// How a consumer decrypts.
pub(super) fn for_consumer(encryption: ConsumerEncryption) -> stc_client::ConsumerEncryption {
    let add = |keys: StaticKeys, key: Key| keys.private(key.name, key.pem);
    let keys = encryption.keys.into_iter().fold(StaticKeys::new(), add);
    stc_client::ConsumerEncryption::new(keys).on_failure(match encryption.on_failure {
        ConsumerCryptoFailure::Fail => stc_client::ConsumerCryptoFailure::Fail,
        ConsumerCryptoFailure::Discard => stc_client::ConsumerCryptoFailure::Discard,
        ConsumerCryptoFailure::Consume => stc_client::ConsumerCryptoFailure::Consume,
    })
}
