//! Key hashing: one Murmur3 hash for each key, split into two independent halves (client-behavior §2,
//! key-shared §2). Also the hash of a set of topics.

/// The raw (unmasked) 32-bit Murmur3 hash, seed 0, of a key's UTF-8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub u32);

impl KeyHash {
    /// Hashes a key.
    pub fn of(key: &str) -> Self {
        Self::of_bytes(key.as_bytes())
    }

    /// Hashes a key given as bytes (ordering keys and base64-encoded keys are bytes).
    pub fn of_bytes(mut key: &[u8]) -> Self {
        // Reading from a slice cannot fail.
        KeyHash(murmur3::murmur3_32(&mut key, 0).unwrap_or_default())
    }

    /// The high half: the key's place on the segment ring, `0x0000..=0xFFFF`.
    pub fn segment(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The low half: the key's entry-bucket hash, `0x0000..=0xFFFF`.
    pub fn bucket(self) -> u16 {
        self.0 as u16
    }

    /// The classic routing over `n` partitions or legacy segments: the hash without its sign bit, modulo `n`. The
    /// result is in `0..n`; 0 when `n` is 0.
    pub fn legacy(self, n: u32) -> u32 {
        (self.0 & 0x7FFF_FFFF).checked_rem(n).unwrap_or(0)
    }
}

/// The hash of a set of topics that a namespace watch carries when it is opened again (wire-protocol §7): CRC32C of the
/// full names, sorted by their UTF-16 code units and joined by commas, its bytes from the lowest on, in hex.
pub fn topic_set_hash<S: AsRef<str>>(topics: impl IntoIterator<Item = S>) -> String {
    let mut names: Vec<S> = topics.into_iter().collect();
    names.sort_by(|a, b| a.as_ref().encode_utf16().cmp(b.as_ref().encode_utf16()));
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    crate::fields::hex(&crc32c::crc32c(names.join(",").as_bytes()).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys() {
        for (key, hash) in [("key-0", 0xE337_F8BF), ("key-1", 0x98B1_15A0), ("key-2", 0xF3F8_550C), ("", 0)] {
            assert_eq!(KeyHash::of(key), KeyHash(hash), "{key}");
        }
    }

    #[test]
    fn the_high_half_is_the_segment_and_the_low_half_the_bucket() {
        let hash = KeyHash(0xE337_F8BF);
        assert_eq!((hash.segment(), hash.bucket()), (0xE337, 0xF8BF));
    }

    #[test]
    fn legacy_choice_leaves_out_the_sign_bit() {
        assert_eq!(KeyHash(0x8000_0003).legacy(2), 1);
        assert_eq!(KeyHash(0xFFFF_FFFF).legacy(0x8000_0000), 0x7FFF_FFFF);
        assert_eq!(KeyHash(7).legacy(0), 0);
    }
}
