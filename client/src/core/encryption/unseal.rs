//! A consumer's half: data keys unwrapped with the application's keys, and payloads opened with them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use stc_proto::pulsar::{EncryptionKeys, MessageMetadata};

use super::{
    KeyError, NONCE,
    keys::PrivateKey,
    policy::{ConsumerCryptoFailure, ConsumerEncryption},
    random::Random,
};
use crate::core::error::{Category, Error};

/// How many data keys are remembered: those of a good number of producers, each with its last ones.
const REMEMBERED: usize = 128;

/// Opens the payloads that a consumer gets.
#[derive(Debug, Default)]
pub(crate) struct Unsealer {
    policy: Option<ConsumerEncryption>,
    /// Unwrapped data keys by their wrapped form, those used first in front.
    known: VecDeque<(Bytes, LessSafeKey)>,
}

impl Unsealer {
    /// Without a policy nothing can be opened.
    pub(crate) fn new(policy: Option<ConsumerEncryption>) -> Self {
        Unsealer { policy, known: VecDeque::new() }
    }

    /// What happens to a message that cannot be opened.
    pub(crate) fn on_failure(&self) -> ConsumerCryptoFailure {
        self.policy.as_ref().map(|policy| policy.on_failure).unwrap_or_default()
    }

    /// Opens a payload with the first of its keys that fits.
    pub(crate) fn open(&mut self, payload: &Bytes, metadata: &MessageMetadata) -> Result<Bytes, Error> {
        let crypto = |why: String| Error::new(Category::Crypto, why);
        let Some(policy) = &self.policy else {
            return Err(crypto("the message is encrypted, and the consumer has no keys".into()));
        };
        let nonce =
            metadata.encryption_param.as_deref().and_then(|nonce| <[u8; NONCE]>::try_from(nonce).ok());
        let nonce = nonce.ok_or_else(|| crypto("the message's nonce has not 12 bytes".into()))?;
        let mut failures = Vec::new();
        for wrapped in &metadata.encryption_keys {
            let known = self.known.iter().find(|(value, _)| *value == wrapped.value);
            let opened = match known {
                Some((_, key)) => opened(key, nonce, payload).map_err(|error| error.to_string()),
                None => data_key(policy, wrapped).and_then(|key| {
                    let result = opened(&key, nonce, payload).map_err(|error| error.to_string());
                    self.known.push_back((wrapped.value.clone(), key));
                    self.known.drain(..self.known.len().saturating_sub(REMEMBERED));
                    result
                }),
            };
            match opened {
                Ok(payload) => return Ok(payload),
                Err(error) => failures.push(format!("{:?}: {error}", wrapped.key)),
            }
        }
        Err(crypto(format!("the message cannot be decrypted with its keys: {}", failures.join("; "))))
    }
}

fn data_key(policy: &ConsumerEncryption, wrapped: &EncryptionKeys) -> Result<LessSafeKey, String> {
    let pairs = wrapped.metadata.iter().map(|pair| (pair.key.clone(), pair.value.clone()));
    let metadata: BTreeMap<String, String> = pairs.collect();
    let key = policy.provider.private_key(&wrapped.key, &metadata).map_err(|error| error.to_string())?;
    let unwrapped = PrivateKey::from_pem(&key.pem).and_then(|key| key.unwrap(&mut Random, &wrapped.value));
    let plain = unwrapped.map_err(|error| error.to_string())?;
    let key = UnboundKey::new(&AES_256_GCM, &plain).map_err(|_| KeyError::Wrapped.to_string())?;
    Ok(LessSafeKey::new(key))
}

fn opened(key: &LessSafeKey, nonce: [u8; NONCE], payload: &Bytes) -> Result<Bytes, KeyError> {
    let mut buffer = payload.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    let length = key.open_in_place(nonce, Aad::empty(), &mut buffer).map_err(|_| KeyError::Sealed)?.len();
    buffer.truncate(length);
    Ok(buffer.into())
}

#[cfg(test)]
mod tests {
    use super::super::{
        policy::{ProducerCryptoFailure, ProducerEncryption, StaticKeys},
        seal::Sealer,
    };
    use super::*;

    fn keys() -> StaticKeys {
        StaticKeys::new()
            .public("rsa", include_bytes!("../../../../features/keys/rsa-public.pem").as_slice())
            .private("rsa", include_bytes!("../../../../features/keys/rsa-private.pem").as_slice())
            .public("ec", include_bytes!("../../../../features/keys/p256-public.pem").as_slice())
            .private("ec", include_bytes!("../../../../features/keys/p256-private.pem").as_slice())
            .public("only-public", include_bytes!("../../../../features/keys/p384-public.pem").as_slice())
    }

    fn sealed(names: &[&str], now: u64, sealer: Option<&mut Sealer>) -> (Bytes, MessageMetadata) {
        let mut own = Sealer::new(ProducerEncryption::new(keys(), names.iter().copied()));
        let mut metadata = MessageMetadata::default();
        let payload = sealer.unwrap_or(&mut own).seal(Bytes::from_static(b"secret"), &mut metadata, now);
        (payload.unwrap(), metadata)
    }

    fn unsealer() -> Unsealer {
        Unsealer::new(Some(ConsumerEncryption::new(keys())))
    }

    #[test]
    fn any_of_the_keys_opens_a_message() {
        for names in [["rsa", "only-public"], ["only-public", "ec"]] {
            let (payload, metadata) = sealed(&names, 0, None);
            assert_eq!(payload.len(), 6 + 16, "ciphertext and tag");
            assert!(!payload.windows(6).any(|window| window == b"secret"));
            assert_eq!(unsealer().open(&payload, &metadata).unwrap(), "secret");
        }
        let (payload, metadata) = sealed(&["only-public"], 0, None);
        let error = unsealer().open(&payload, &metadata).unwrap_err();
        assert_eq!(error.category(), Category::Crypto);
        assert!(error.to_string().contains("only-public"), "{error}");
    }

    #[test]
    fn a_changed_payload_or_nonce_is_refused() {
        let (payload, metadata) = sealed(&["rsa"], 0, None);
        for at in 0..payload.len() {
            let mut bad = payload.to_vec();
            bad[at] ^= 1;
            assert!(unsealer().open(&bad.into(), &metadata).is_err());
        }
        let nonces = [None, Some(Bytes::from_static(b"short")), Some(Bytes::from_static(&[0; 12]))];
        for nonce in nonces {
            let metadata = MessageMetadata { encryption_param: nonce, ..metadata.clone() };
            assert!(unsealer().open(&payload, &metadata).is_err());
        }
    }

    #[test]
    fn a_data_key_serves_four_hours_and_a_nonce_once() {
        let mut sealer = Sealer::new(ProducerEncryption::new(keys(), ["rsa"]));
        let of = |sealed: &(Bytes, MessageMetadata)| sealed.1.encryption_keys[0].value.clone();
        let first = sealed(&[], 5, Some(&mut sealer));
        let second = sealed(&[], 4 * 3_600_000 + 4, Some(&mut sealer));
        let third = sealed(&[], 4 * 3_600_000 + 5, Some(&mut sealer));
        assert_eq!(of(&first), of(&second));
        assert_ne!(of(&second), of(&third));
        assert_ne!(first.1.encryption_param, second.1.encryption_param);
        let mut unsealer = unsealer();
        for (payload, metadata) in [first, second, third] {
            assert_eq!(unsealer.open(&payload, &metadata).unwrap(), "secret");
        }
        assert_eq!(unsealer.known.len(), 2, "each data key is unwrapped once");
    }

    #[test]
    fn a_key_that_cannot_be_had_fails_or_sends_in_the_clear() {
        let policy = ProducerEncryption::new(keys(), ["missing"]);
        let mut metadata = MessageMetadata::default();
        let mut fails = Sealer::new(policy.clone());
        assert_eq!(fails.prepare(0).unwrap_err().category(), Category::Crypto);
        let payload = Bytes::from_static(b"secret");
        assert!(fails.seal(payload.clone(), &mut metadata, 0).is_err());
        let mut lax = Sealer::new(policy.on_failure(ProducerCryptoFailure::SendUnencrypted));
        assert!(lax.prepare(0).is_ok());
        assert_eq!(lax.seal(payload.clone(), &mut metadata, 0).unwrap(), payload);
        assert!(metadata.encryption_keys.is_empty() && metadata.encryption_param.is_none());
    }
}
