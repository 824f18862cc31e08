//! Payloads under keys that brokers do not have, as Pulsar's clients encrypt them (client-api §3.1, §4.1).
//!
//! A payload is sealed with AES-256-GCM under a data key of the producer. The data key is wrapped for each public key that
//! the application names, and goes along in the entry's metadata. Compression comes before.
//!
//! | Metadata | Holds |
//! |---|---|
//! | `encryption_keys` | for each key: its name, the data key wrapped for it, what its provider said about it |
//! | `encryption_param` | the nonce, 12 bytes |
//!
//! | Module | Owns |
//! |---|---|
//! | [`policy`] | what the application says: where keys come from, what to do when one fails |
//! | [`keys`] | the application's keys |
//! | [`ecies`] | wrapping for keys on elliptic curves |
//! | [`random`] | the system's random numbers |
//! | [`seal`] | a producer's half |
//! | [`unseal`] | a consumer's half |

mod ecies;
mod keys;
pub(crate) mod policy;
mod random;
pub(crate) mod seal;
pub(crate) mod unseal;

/// Bytes of the nonce.
const NONCE: usize = 12;
/// Bytes of a data key.
const DATA_KEY: usize = 32;

/// Why a key, a wrapped data key or a payload cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the key is not PEM of the needed kind")]
    Pem,
    #[error("the key is malformed")]
    Malformed,
    #[error("the key is neither an RSA nor an elliptic curve key")]
    Kind,
    #[error("the key's curve is none of P-256, P-384 and P-521")]
    Curve,
    #[error("the data key was not wrapped for this key")]
    Wrapped,
    #[error("the payload was not sealed with this data key")]
    Sealed,
    #[error("the system has no random numbers")]
    Randomness,
}
