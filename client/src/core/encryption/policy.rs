//! What the application says about encryption: where keys come from, and what happens when one cannot be had or used.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    sync::Arc,
};

use stc_proto::pulsar::{EncryptionKeys, MessageMetadata};

use crate::core::{
    deviant::{Deviance, Deviant},
    error::{Category, Error},
};

/// A key as PEM text, and what its owner wants to find again in the messages' metadata, such as its version
/// (client-api §3.1).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EncryptionKey {
    /// The PEM text.
    pub pem: Vec<u8>,
    /// Goes along with each entry, in the clear.
    pub metadata: BTreeMap<String, String>,
}

// Keys stay out of logs.
impl Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

/// Knows the public keys that producers encrypt for (client-api §3.1).
pub trait PublicKeyProvider: Send + Sync {
    /// The public key of this name, as X.509 `PUBLIC KEY`. Asked when the producer is created and whenever it makes a new
    /// data key, every four hours.
    ///
    /// # Errors
    /// When there is no such key; see [`ProducerCryptoFailure`].
    fn public_key(&self, name: &str) -> Result<EncryptionKey, Error>;
}

/// Knows the private keys that consumers decrypt with (client-api §4.1).
pub trait PrivateKeyProvider: Send + Sync {
    /// The private key of this name, as PKCS #8, PKCS #1 or SEC 1. `metadata` is what the public key's provider said.
    ///
    /// # Errors
    /// When there is no such key. That is no failure as long as one of the message's other keys is there.
    fn private_key(&self, name: &str, metadata: &BTreeMap<String, String>) -> Result<EncryptionKey, Error>;
}

/// Keys in memory, by name: a provider of both kinds (client-api §3.1, §4.1).
#[derive(Debug, Clone, Default)]
pub struct StaticKeys {
    public: BTreeMap<String, EncryptionKey>,
    private: BTreeMap<String, EncryptionKey>,
}

impl StaticKeys {
    /// No keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this public key.
    #[must_use]
    pub fn public(mut self, name: impl Into<String>, pem: impl Into<Vec<u8>>) -> Self {
        self.public.insert(name.into(), EncryptionKey { pem: pem.into(), metadata: BTreeMap::new() });
        self
    }

    /// With this private key.
    #[must_use]
    pub fn private(mut self, name: impl Into<String>, pem: impl Into<Vec<u8>>) -> Self {
        self.private.insert(name.into(), EncryptionKey { pem: pem.into(), metadata: BTreeMap::new() });
        self
    }
}

fn named(keys: &BTreeMap<String, EncryptionKey>, kind: &str, name: &str) -> Result<EncryptionKey, Error> {
    let none = || Error::new(Category::Crypto, format!("there is no {kind} key {name:?}"));
    keys.get(name).cloned().ok_or_else(none)
}

impl PublicKeyProvider for StaticKeys {
    fn public_key(&self, name: &str) -> Result<EncryptionKey, Error> {
        named(&self.public, "public", name)
    }
}

impl PrivateKeyProvider for StaticKeys {
    fn private_key(&self, name: &str, _: &BTreeMap<String, String>) -> Result<EncryptionKey, Error> {
        named(&self.private, "private", name)
    }
}

/// What a producer does with a message that it cannot encrypt (client-api §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProducerCryptoFailure {
    /// The send fails with [`Category::Crypto`], and so does the creation of a producer whose keys are not to be had.
    #[default]
    Fail,
    /// The message goes in the clear.
    SendUnencrypted,
}

/// What a consumer does with a message that it cannot decrypt (client-api §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsumerCryptoFailure {
    /// The receive fails with [`Category::Crypto`]. The message stays unacknowledged.
    #[default]
    Fail,
    /// The message is acknowledged unseen.
    Discard,
    /// The message is delivered as it is, see [`Message::encryption`](crate::Message::encryption).
    Consume,
}

/// What a message is encrypted with that is delivered undecrypted, see [`ConsumerCryptoFailure::Consume`]
/// (client-api §4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionContext {
    /// For each key: its name, the data key wrapped for it, and what its provider said about it.
    pub keys: Vec<WrappedKey>,
    /// The nonce, 12 bytes for what Pulsar's clients write.
    pub nonce: Vec<u8>,
    /// How the payload was compressed before, by its number in the protocol; 0 for not at all.
    pub compression: i32,
    /// Bytes before that compression.
    pub uncompressed_size: u32,
    /// How many messages the payload is a batch of; `None` for one that is no batch.
    pub batch_size: Option<i32>,
}

/// A data key wrapped for the owner of a key (client-api §4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// The key's name.
    pub name: String,
    /// The data key as it was wrapped.
    pub value: Vec<u8>,
    /// What the provider of the public key said about it.
    pub metadata: BTreeMap<String, String>,
}

impl EncryptionContext {
    pub(crate) fn of(metadata: &MessageMetadata) -> Self {
        EncryptionContext {
            keys: metadata.encryption_keys.iter().map(WrappedKey::of).collect(),
            nonce: metadata.encryption_param().to_vec(),
            compression: metadata.compression.unwrap_or_default(),
            uncompressed_size: metadata.uncompressed_size(),
            batch_size: metadata.num_messages_in_batch,
        }
    }
}

impl WrappedKey {
    fn of(key: &EncryptionKeys) -> Self {
        let pairs = key.metadata.iter().map(|pair| (pair.key.clone(), pair.value.clone()));
        WrappedKey { name: key.key.clone(), value: key.value.to_vec(), metadata: pairs.collect() }
    }
}

/// How a producer encrypts (client-api §3.1).
#[derive(Clone)]
pub struct ProducerEncryption {
    pub(super) provider: Arc<dyn PublicKeyProvider>,
    pub(super) names: Vec<String>,
    pub(super) on_failure: ProducerCryptoFailure,
}

impl ProducerEncryption {
    /// For the owners of these keys: any of them can decrypt.
    pub fn new<N: Into<String>>(
        provider: impl PublicKeyProvider + 'static,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        ProducerEncryption {
            provider: Arc::new(provider),
            names: names.into_iter().map(Into::into).collect(),
            on_failure: ProducerCryptoFailure::default(),
        }
    }

    /// What happens to a message that cannot be encrypted.
    #[must_use]
    pub fn on_failure(mut self, action: ProducerCryptoFailure) -> Self {
        self.on_failure = action;
        self
    }
}

impl ProducerEncryption {
    /// The policy as the deviation in force has it.
    pub(crate) fn deviating(mut self, deviance: Deviance) -> Option<Self> {
        if deviance.is(Deviant::FirstRecipientOnly) {
            self.names.truncate(1);
        }
        if deviance.is(Deviant::ClearWhereKeyIsMissing) {
            self.on_failure = ProducerCryptoFailure::SendUnencrypted;
        }
        if deviance.is(Deviant::FailsWhereClearIsAllowed) {
            self.on_failure = ProducerCryptoFailure::Fail;
        }
        (!deviance.is(Deviant::NotEncrypted)).then_some(self)
    }
}

impl Debug for ProducerEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("ProducerEncryption");
        fields.field("names", &self.names).field("on_failure", &self.on_failure).finish_non_exhaustive()
    }
}

/// How a consumer decrypts (client-api §4.1).
#[derive(Clone)]
pub struct ConsumerEncryption {
    pub(super) provider: Arc<dyn PrivateKeyProvider>,
    pub(super) on_failure: ConsumerCryptoFailure,
}

impl ConsumerEncryption {
    /// With the keys of this provider.
    pub fn new(provider: impl PrivateKeyProvider + 'static) -> Self {
        ConsumerEncryption { provider: Arc::new(provider), on_failure: ConsumerCryptoFailure::default() }
    }

    /// What happens to a message that cannot be decrypted.
    #[must_use]
    pub fn on_failure(mut self, action: ConsumerCryptoFailure) -> Self {
        self.on_failure = action;
        self
    }
}

impl Debug for ConsumerEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerEncryption").field("on_failure", &self.on_failure).finish_non_exhaustive()
    }
}
