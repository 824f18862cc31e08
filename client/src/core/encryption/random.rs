//! The system's random numbers. Keys are the one thing here that no seed repeats: a data key that a seed tells is none.

use ring::rand::{SecureRandom, SystemRandom};
use rsa::rand_core::{TryCryptoRng, TryRng};

use super::KeyError;

/// The system's random numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random;

impl TryRng for Random {
    type Error = KeyError;

    fn try_next_u32(&mut self) -> Result<u32, KeyError> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, KeyError> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), KeyError> {
        SystemRandom::new().fill(bytes).map_err(|_| KeyError::Randomness)
    }
}

impl TryCryptoRng for Random {}
