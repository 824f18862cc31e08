//! Keys of applications: PEM in, data keys wrapped and unwrapped. RSA, and the curves P-256, P-384 and P-521, these by
//! name or by their parameters spelt out, as `openssl ecparam -param_enc explicit` writes them.

use elliptic_curve::{
    AffinePoint, CurveArithmetic, FieldBytesSize,
    sec1::{FromSec1Point, ModulusSize, ToSec1Point},
};
use p256::NistP256;
use p384::NistP384;
use p521::NistP521;
use rsa::{
    pkcs1::DecodeRsaPrivateKey,
    pkcs8::{
        DecodePrivateKey, DecodePublicKey, ObjectIdentifier,
        der::{Decode, Reader, SliceReader, Tag, Tagged, asn1::AnyRef},
    },
    rand_core::TryCryptoRng,
};
use rustls::pki_types::pem::{self, SectionKind};
use sha1::Sha1;

use super::{KeyError, ecies};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");

const PRIME_256: &str = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
const PRIME_384: &str =
    "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff";

/// A key that wraps data keys.
#[derive(Debug)]
pub(crate) enum PublicKey {
    Rsa(Box<rsa::PublicKey>),
    P256(Box<elliptic_curve::PublicKey<NistP256>>),
    P384(Box<elliptic_curve::PublicKey<NistP384>>),
    P521(Box<elliptic_curve::PublicKey<NistP521>>),
}

/// A key that unwraps data keys.
#[derive(Debug)]
pub(crate) enum PrivateKey {
    Rsa(Box<rsa::PrivateKey>),
    P256(Box<elliptic_curve::SecretKey<NistP256>>),
    P384(Box<elliptic_curve::SecretKey<NistP384>>),
    P521(Box<elliptic_curve::SecretKey<NistP521>>),
}

impl PublicKey {
    /// Reads the first public key of a PEM text.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let (_, der) = section(text, &[SectionKind::PublicKey])?;
        let [algorithm, key, ..] = sequence(&der)?[..] else { return Err(KeyError::Malformed) };
        match items(algorithm.value())?[..] {
            [oid, ..] if is(&oid, RSA) => rsa::PublicKey::from_public_key_der(&der)
                .map(|key| PublicKey::Rsa(Box::new(key)))
                .map_err(|_| KeyError::Malformed),
            [oid, parameters] if is(&oid, EC) => {
                // A bit string tells first how many bits of its last byte are unused: none.
                let point = key.value().split_first().ok_or(KeyError::Malformed)?.1;
                Ok(match Curve::of(&parameters)? {
                    Curve::P256 => PublicKey::P256(Box::new(public_point(point)?)),
                    Curve::P384 => PublicKey::P384(Box::new(public_point(point)?)),
                    Curve::P521 => PublicKey::P521(Box::new(public_point(point)?)),
                })
            }
            _ => Err(KeyError::Kind),
        }
    }

    /// Wraps a data key for the owner of this key.
    pub(crate) fn wrap(&self, rng: &mut impl TryCryptoRng, data_key: &[u8]) -> Result<Vec<u8>, KeyError> {
        match self {
            PublicKey::Rsa(key) => {
                key.oaep_encrypt_with_rng::<Sha1, _>(rng, data_key).map_err(|_| KeyError::Wrapped)
            }
            PublicKey::P256(key) => ecies::wrap(key, rng, data_key),
            PublicKey::P384(key) => ecies::wrap(key, rng, data_key),
            PublicKey::P521(key) => ecies::wrap(key, rng, data_key),
        }
    }
}

impl PrivateKey {
    /// Reads the first private key of a PEM text: PKCS #8, PKCS #1 or SEC 1.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        use SectionKind::{EcPrivateKey, PrivateKey as Pkcs8, RsaPrivateKey};
        let (kind, der) = section(text, &[Pkcs8, RsaPrivateKey, EcPrivateKey])?;
        match kind {
            RsaPrivateKey => rsa::PrivateKey::from_pkcs1_der(&der)
                .map(|key| PrivateKey::Rsa(Box::new(key)))
                .map_err(|_| KeyError::Malformed),
            EcPrivateKey => Self::from_sec1(&der, None),
            _ => {
                let [_, algorithm, key, ..] = sequence(&der)?[..] else { return Err(KeyError::Malformed) };
                match items(algorithm.value())?[..] {
                    [oid, ..] if is(&oid, RSA) => rsa::PrivateKey::from_pkcs8_der(&der)
                        .map(|key| PrivateKey::Rsa(Box::new(key)))
                        .map_err(|_| KeyError::Malformed),
                    [oid, parameters] if is(&oid, EC) => {
                        Self::from_sec1(key.value(), Some(Curve::of(&parameters)?))
                    }
                    _ => Err(KeyError::Kind),
                }
            }
        }
    }

    /// The curve is told around the key, or in it.
    fn from_sec1(der: &[u8], curve: Option<Curve>) -> Result<Self, KeyError> {
        let fields = sequence(der)?;
        let [_, scalar, ..] = fields[..] else { return Err(KeyError::Malformed) };
        let told = fields
            .iter()
            .find(|field| matches!(field.tag(), Tag::ContextSpecific { number, .. } if number.value() == 0));
        let curve = match (curve, told) {
            (Some(curve), _) => curve,
            (None, Some(told)) => {
                Curve::of(&AnyRef::from_der(told.value()).map_err(|_| KeyError::Malformed)?)?
            }
            (None, None) => return Err(KeyError::Curve),
        };
        Ok(match curve {
            Curve::P256 => PrivateKey::P256(Box::new(secret_scalar(scalar.value())?)),
            Curve::P384 => PrivateKey::P384(Box::new(secret_scalar(scalar.value())?)),
            Curve::P521 => PrivateKey::P521(Box::new(secret_scalar(scalar.value())?)),
        })
    }

    /// Gives back a data key that was wrapped for this key.
    pub(crate) fn unwrap(&self, rng: &mut impl TryCryptoRng, wrapped: &[u8]) -> Result<Vec<u8>, KeyError> {
        match self {
            PrivateKey::Rsa(key) => {
                key.oaep_decrypt_with_rng::<Sha1, _>(rng, wrapped).map_err(|_| KeyError::Wrapped)
            }
            PrivateKey::P256(key) => ecies::unwrap(key, wrapped),
            PrivateKey::P384(key) => ecies::unwrap(key, wrapped),
            PrivateKey::P521(key) => ecies::unwrap(key, wrapped),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// The curve that a name or spelt-out parameters mean.
    fn of(parameters: &AnyRef<'_>) -> Result<Self, KeyError> {
        if let Ok(name) = parameters.decode_as::<ObjectIdentifier>() {
            return match name.to_string().as_str() {
                "1.2.840.10045.3.1.7" => Ok(Curve::P256),
                "1.3.132.0.34" => Ok(Curve::P384),
                "1.3.132.0.35" => Ok(Curve::P521),
                _ => Err(KeyError::Curve),
            };
        }
        // version, field: (its kind, the prime), …: among the curves here, the prime tells which one it is.
        let [_, field, ..] = items(parameters.value())?[..] else { return Err(KeyError::Curve) };
        let [_, prime] = items(field.value())?[..] else { return Err(KeyError::Curve) };
        let digits = prime.value().iter().skip_while(|byte| **byte == 0);
        let prime: String = digits.map(|byte| format!("{byte:02x}")).collect();
        match prime.as_str() {
            PRIME_256 => Ok(Curve::P256),
            PRIME_384 => Ok(Curve::P384),
            _ if prime
                .strip_prefix("01")
                .is_some_and(|rest| rest.len() == 130 && rest.bytes().all(|b| b == b'f')) =>
            {
                Ok(Curve::P521)
            }
            _ => Err(KeyError::Curve),
        }
    }
}

fn public_point<C>(point: &[u8]) -> Result<elliptic_curve::PublicKey<C>, KeyError>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    elliptic_curve::PublicKey::from_sec1_bytes(point).map_err(|_| KeyError::Malformed)
}

fn secret_scalar<C: CurveArithmetic>(scalar: &[u8]) -> Result<elliptic_curve::SecretKey<C>, KeyError> {
    elliptic_curve::SecretKey::from_slice(scalar).map_err(|_| KeyError::Malformed)
}

/// The first section of one of these kinds; others, such as the parameters that OpenSSL writes in front, are passed over.
fn section(mut text: &[u8], kinds: &[SectionKind]) -> Result<(SectionKind, Vec<u8>), KeyError> {
    loop {
        match pem::from_buf(&mut text) {
            Ok(Some(found)) if kinds.contains(&found.0) => return Ok(found),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return Err(KeyError::Pem),
        }
    }
}

/// The fields of a DER sequence.
fn sequence(der: &[u8]) -> Result<Vec<AnyRef<'_>>, KeyError> {
    items(AnyRef::from_der(der).map_err(|_| KeyError::Malformed)?.value())
}

/// The values in the content of a DER sequence.
fn items(content: &[u8]) -> Result<Vec<AnyRef<'_>>, KeyError> {
    let read = || -> rsa::pkcs8::der::Result<Vec<AnyRef<'_>>> {
        let mut reader = SliceReader::new(content)?;
        let mut items = Vec::new();
        while !reader.is_finished() {
            items.push(reader.decode()?);
        }
        Ok(items)
    };
    read().map_err(|_| KeyError::Malformed)
}

fn is(value: &AnyRef<'_>, oid: ObjectIdentifier) -> bool {
    value.decode_as::<ObjectIdentifier>().is_ok_and(|found| found == oid)
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    struct Pair {
        public: &'static [u8],
        private: &'static [u8],
        /// The bytes 0 to 31, wrapped by Pulsar's Java client 5.0.1 with Bouncy Castle.
        wrapped: &'static str,
    }

    macro_rules! pair {
        ($name:literal) => {
            Pair {
                public: include_bytes!(concat!("../../../../features/keys/", $name, "-public.pem")),
                private: include_bytes!(concat!("../../../../features/keys/", $name, "-private.pem")),
                wrapped: include_str!(concat!("data/", $name, "-wrapped.hex")),
            }
        };
    }

    const PAIRS: [Pair; 4] = [pair!("rsa"), pair!("p256"), pair!("p384"), pair!("p521")];

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.trim().len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn data_keys_that_the_java_client_wrapped_are_unwrapped() {
        for pair in PAIRS {
            let key = PrivateKey::from_pem(pair.private).unwrap();
            let data_key = key.unwrap(&mut Random, &bytes(pair.wrapped)).unwrap();
            assert_eq!(data_key, (0..32).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn what_is_wrapped_is_unwrapped_by_its_key_alone() {
        let privates = PAIRS.map(|pair| PrivateKey::from_pem(pair.private).unwrap());
        for (at, pair) in PAIRS.into_iter().enumerate() {
            let wrapped = PublicKey::from_pem(pair.public).unwrap().wrap(&mut Random, b"data key").unwrap();
            for (other, private) in privates.iter().enumerate() {
                let data_key = private.unwrap(&mut Random, &wrapped);
                assert_eq!(data_key.is_ok_and(|key| key == b"data key"), other == at);
            }
        }
    }

    #[test]
    fn a_wrapped_key_with_any_bit_turned_is_refused() {
        for pair in PAIRS {
            let private = PrivateKey::from_pem(pair.private).unwrap();
            let good = bytes(pair.wrapped);
            for at in [0, 1, good.len() / 2, good.len() - 30, good.len() - 1] {
                let mut bad = good.clone();
                bad[at] ^= 4;
                assert!(private.unwrap(&mut Random, &bad).is_err(), "byte {at}");
            }
            assert!(private.unwrap(&mut Random, &[]).is_err());
        }
    }

    #[test]
    fn keys_of_the_wrong_kind_or_cut_short_are_refused() {
        for pair in PAIRS {
            assert!(PublicKey::from_pem(pair.private).is_err());
            assert!(PrivateKey::from_pem(pair.public).is_err());
            for text in [pair.public, pair.private] {
                let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
                let cut = [&lines[..lines.len() - 2], &lines[lines.len() - 1..]].concat().concat();
                assert!(PublicKey::from_pem(&cut).is_err() && PrivateKey::from_pem(&cut).is_err());
            }
        }
        assert_eq!(PublicKey::from_pem(b"").err(), Some(KeyError::Pem));
    }
}
