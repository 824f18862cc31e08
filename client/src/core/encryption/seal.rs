//! A producer's half: the data key and its wrapped forms, and payloads under it.

use bytes::Bytes;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use stc_proto::{
    Entry,
    pulsar::{EncryptionKeys, KeyValue, MessageMetadata},
};

use super::{
    DATA_KEY, KeyError, NONCE,
    keys::PublicKey,
    policy::{ProducerCryptoFailure, ProducerEncryption},
    random::Random,
};
use crate::core::{
    Millis,
    error::{Category, Error},
};

/// How long a data key is used, in milliseconds: as long as released clients do.
const LIFE: Millis = 4 * 60 * 60 * 1000;

/// Seals the payloads of a producer.
#[derive(Debug)]
pub(crate) struct Sealer {
    policy: ProducerEncryption,
    key: Option<DataKey>,
}

#[derive(Debug)]
struct DataKey {
    key: LessSafeKey,
    wrapped: Vec<EncryptionKeys>,
    until: Millis,
}

impl Sealer {
    pub(crate) fn new(policy: ProducerEncryption) -> Self {
        Sealer { policy, key: None }
    }

    /// Makes the first data key, so that keys that cannot be had are noticed before the first send.
    pub(crate) fn prepare(&mut self, now: Millis) -> Result<(), Error> {
        let made = self.data_key(now).map(drop);
        if self.policy.on_failure == ProducerCryptoFailure::Fail { made } else { Ok(()) }
    }

    /// How many bytes an entry grows by when it is sealed; none before there is a data key.
    pub(crate) fn overhead(&self) -> usize {
        let Some(key) = &self.key else { return 0 };
        let metadata = MessageMetadata {
            encryption_keys: key.wrapped.clone(),
            encryption_param: Some(Bytes::from_static(&[0; NONCE])),
            ..Default::default()
        };
        Entry::new(metadata, Bytes::new()).to_bytes().len() + AES_256_GCM.tag_len()
    }

    /// Seals a payload and tells the metadata how.
    pub(crate) fn seal(
        &mut self,
        payload: Bytes,
        metadata: &mut MessageMetadata,
        now: Millis,
    ) -> Result<Bytes, Error> {
        match self.sealed(&payload, metadata, now) {
            Err(error) if self.policy.on_failure == ProducerCryptoFailure::SendUnencrypted => {
                tracing::warn!(%error, "sending a message in the clear");
                Ok(payload)
            }
            result => result,
        }
    }

    fn sealed(
        &mut self,
        payload: &Bytes,
        metadata: &mut MessageMetadata,
        now: Millis,
    ) -> Result<Bytes, Error> {
        let key = self.data_key(now)?;
        let failed = |_| crypto("sealing a payload", KeyError::Randomness);
        let mut nonce = [0; NONCE];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut sealed = payload.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        key.key.seal_in_place_append_tag(unique, Aad::empty(), &mut sealed).map_err(failed)?;
        metadata.encryption_keys = key.wrapped.clone();
        metadata.encryption_param = Some(Bytes::copy_from_slice(&nonce));
        Ok(sealed.into())
    }

    fn data_key(&mut self, now: Millis) -> Result<&DataKey, Error> {
        let key = match self.key.take().filter(|key| now < key.until) {
            Some(key) => key,
            None => self.new_key(now)?,
        };
        Ok(self.key.insert(key))
    }

    fn new_key(&self, now: Millis) -> Result<DataKey, Error> {
        let mut plain = [0; DATA_KEY];
        let failed = |_| crypto("making a data key", KeyError::Randomness);
        SystemRandom::new().fill(&mut plain).map_err(failed)?;
        let wrap = |name: &String| {
            let key = self.policy.provider.public_key(name)?;
            let public = PublicKey::from_pem(&key.pem);
            let wrapped = public.and_then(|public| public.wrap(&mut Random, &plain));
            Ok(EncryptionKeys {
                key: name.clone(),
                value: wrapped.map_err(|error| crypto(&format!("the public key {name:?}"), error))?.into(),
                metadata: key.metadata.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
            })
        };
        let wrapped = self.policy.names.iter().map(wrap).collect::<Result<_, Error>>()?;
        let key = UnboundKey::new(&AES_256_GCM, &plain).map_err(failed)?;
        Ok(DataKey { key: LessSafeKey::new(key), wrapped, until: now.saturating_add(LIFE) })
    }
}

fn crypto(what: &str, error: KeyError) -> Error {
    Error::new(Category::Crypto, format!("{what}: {error}"))
}
