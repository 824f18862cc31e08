//! The data key wrapped for an elliptic curve key, as Bouncy Castle's `ECIES` does it, which is what Pulsar's clients use:
//! an ephemeral key agreement, KDF2 with SHA-1, the data key under the XOR of the derived stream, HMAC-SHA-1 over it.
//!
//! ```text
//! ephemeral point, uncompressed | data key ^ stream | HMAC (20)
//! ```

use elliptic_curve::{
    AffinePoint, CurveArithmetic, FieldBytesSize, Generate, PublicKey, SecretKey,
    ecdh::diffie_hellman,
    sec1::{FromSec1Point, ModulusSize, ToSec1Point},
};
use hmac::{Hmac, KeyInit, Mac};
use rsa::rand_core::TryCryptoRng;
use sha1::{Digest, Sha1};

use super::KeyError;

/// Bytes of the key of the HMAC.
const MAC_KEY: usize = 16;
/// Bytes of the HMAC itself.
const MAC: usize = 20;

/// Wraps `data` for the owner of `public`.
pub(super) fn wrap<C, R>(public: &PublicKey<C>, rng: &mut R, data: &[u8]) -> Result<Vec<u8>, KeyError>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
    R: TryCryptoRng,
{
    let ephemeral = SecretKey::<C>::try_generate_from_rng(rng).map_err(|_| KeyError::Randomness)?;
    let mut out = ephemeral.public_key().to_sec1_point(false).as_bytes().to_vec();
    let stream = derive(&out, &ephemeral, public, data.len());
    let (mac_key, pad) = stream.split_at(MAC_KEY);
    let wrapped: Vec<u8> = data.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect();
    let mac = authenticator(mac_key, &wrapped)?.finalize().into_bytes();
    out.extend(wrapped);
    out.extend(mac);
    Ok(out)
}

/// Gives back what was wrapped for `private`.
pub(super) fn unwrap<C>(private: &SecretKey<C>, wrapped: &[u8]) -> Result<Vec<u8>, KeyError>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    let length = private.public_key().to_sec1_point(false).as_bytes().len();
    let (point, rest) = wrapped.split_at_checked(length).ok_or(KeyError::Wrapped)?;
    let (data, mac) = rest.split_at_checked(rest.len().saturating_sub(MAC)).ok_or(KeyError::Wrapped)?;
    let public = PublicKey::<C>::from_sec1_bytes(point).map_err(|_| KeyError::Wrapped)?;
    let stream = derive(point, private, &public, data.len());
    let (mac_key, pad) = stream.split_at(MAC_KEY);
    authenticator(mac_key, data)?.verify_slice(mac).map_err(|_| KeyError::Wrapped)?;
    Ok(data.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect())
}

/// KDF2 over the ephemeral point and the shared secret: the key of the HMAC, then the stream for `length` bytes.
fn derive<C>(point: &[u8], private: &SecretKey<C>, public: &PublicKey<C>, length: usize) -> Vec<u8>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    let shared = diffie_hellman(private.to_nonzero_scalar(), public.as_affine());
    let wanted = MAC_KEY + length;
    let blocks = (1u32..).map(|counter| {
        let hash = Sha1::new().chain_update(point).chain_update(shared.raw_secret_bytes());
        hash.chain_update(counter.to_be_bytes()).finalize()
    });
    blocks.take(wanted.div_ceil(MAC)).flatten().take(wanted).collect()
}

fn authenticator(key: &[u8], data: &[u8]) -> Result<Hmac<Sha1>, KeyError> {
    let mac = Hmac::<Sha1>::new_from_slice(key).map_err(|_| KeyError::Wrapped)?;
    // The bit length of the encoding parameter, which is absent.
    Ok(mac.chain_update(data).chain_update([0; 8]))
}
