//! Payload compression as all SDKs do it. Decompressing never yields more than the size that the metadata announces,
//! and that size is bounded: a small entry cannot make the client allocate without limit.

use std::io::{ErrorKind, Read, Write};

use bytes::Bytes;
use stc_proto::pulsar::CompressionType;

/// The largest uncompressed payload that is accepted, in bytes. A batch of messages may exceed the broker's limit for
/// an entry when it compresses well.
pub(crate) const MAX_UNCOMPRESSED: usize = 128 * 1024 * 1024;

/// Why a payload could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecompressError {
    /// The announced size is beyond [`MAX_UNCOMPRESSED`] or not the size that came out.
    Size,
    /// The bytes are not what the compression type says.
    Corrupt,
}

/// Compresses a payload.
pub(crate) fn compress(kind: CompressionType, payload: &[u8]) -> std::io::Result<Vec<u8>> {
    Ok(match kind {
        CompressionType::None => payload.to_vec(),
        CompressionType::Lz4 => lz4_flex::block::compress(payload),
        CompressionType::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(payload)?;
            encoder.finish()?
        }
        CompressionType::Zstd => zstd::stream::encode_all(payload, 3)?,
        CompressionType::Snappy => {
            snap::raw::Encoder::new().compress_vec(payload).map_err(std::io::Error::other)?
        }
    })
}

/// Restores a payload of exactly `size` bytes.
pub(crate) fn decompress(
    kind: CompressionType,
    payload: &Bytes,
    size: usize,
) -> Result<Bytes, DecompressError> {
    if kind == CompressionType::None {
        return Ok(payload.clone());
    }
    if size > MAX_UNCOMPRESSED {
        return Err(DecompressError::Size);
    }
    let plain = match kind {
        CompressionType::None => payload.to_vec(),
        CompressionType::Lz4 => {
            lz4_flex::block::decompress(payload, size).map_err(|_| DecompressError::Corrupt)?
        }
        CompressionType::Zlib => read_bounded(flate2::read::ZlibDecoder::new(&payload[..]), size)?,
        CompressionType::Zstd => {
            let decoder =
                zstd::stream::read::Decoder::new(&payload[..]).map_err(|_| DecompressError::Corrupt)?;
            read_bounded(decoder, size)?
        }
        CompressionType::Snappy => {
            // The length stands in front of the block; the decoder would allocate it unseen.
            let announced = snap::raw::decompress_len(payload).map_err(|_| DecompressError::Corrupt)?;
            if announced != size {
                return Err(DecompressError::Size);
            }
            snap::raw::Decoder::new().decompress_vec(payload).map_err(|_| DecompressError::Corrupt)?
        }
    };
    if plain.len() != size { Err(DecompressError::Size) } else { Ok(plain.into()) }
}

/// Reads at most one byte more than `size`, so that a longer stream is noticed and not unpacked. A stream may lack its end:
/// Pulsar's Java clients only flush theirs. What is missing in the middle shows by the size.
fn read_bounded(reader: impl Read, size: usize) -> Result<Vec<u8>, DecompressError> {
    let mut plain = Vec::new();
    match reader.take(size as u64 + 1).read_to_end(&mut plain) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(DecompressError::Corrupt),
        _ => Ok(plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [CompressionType; 4] =
        [CompressionType::Lz4, CompressionType::Zlib, CompressionType::Zstd, CompressionType::Snappy];

    #[test]
    fn every_kind_gives_back_what_went_in() {
        for kind in KINDS {
            for payload in [&b""[..], b"a", &[7u8; 100_000]] {
                let packed = Bytes::from(compress(kind, payload).unwrap());
                assert_eq!(decompress(kind, &packed, payload.len()).unwrap(), payload, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_zlib_stream_may_be_flushed_and_not_ended() {
        let payload = b"what a Java client compressed".repeat(100);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&payload).unwrap();
        encoder.flush().unwrap();
        let packed = Bytes::copy_from_slice(encoder.get_ref());
        assert_eq!(decompress(CompressionType::Zlib, &packed, payload.len()).unwrap(), payload);
        let cut = packed.slice(..packed.len() / 2);
        assert!(decompress(CompressionType::Zlib, &cut, payload.len()).is_err());
    }

    #[test]
    fn a_wrong_size_is_noticed() {
        for kind in KINDS {
            let packed = Bytes::from(compress(kind, &[7u8; 100_000]).unwrap());
            for size in [0, 99_999, 100_001, MAX_UNCOMPRESSED + 1] {
                assert!(decompress(kind, &packed, size).is_err(), "{kind:?} {size}");
            }
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for kind in KINDS {
            assert!(
                decompress(kind, &Bytes::from_static(b"\xff\xfe\xfd\xfc\xfb\xfa"), 100).is_err(),
                "{kind:?}"
            );
        }
    }

    /// What the LZ4, zlib and snappy implementations of other SDKs make of "aaaaaaaaaaaaaaaaaaaaaaaa".
    #[test]
    fn blocks_of_other_sdks_are_read() {
        let plain = Bytes::from_static(&[b'a'; 24]);
        let lz4 = Bytes::from_static(&[0x1e, b'a', 1, 0, 0x50, b'a', b'a', b'a', b'a', b'a']);
        let zlib = Bytes::from_static(&[0x78, 0x9c, 0x4b, 0x4c, 0xc4, 0x0e, 0x00, 0x71, 0xc4, 0x09, 0x19]);
        let snappy = Bytes::from_static(&[24, 0x00, b'a', 0x5a, 0x01, 0x00]);
        for (kind, packed) in
            [(CompressionType::Snappy, snappy), (CompressionType::Zlib, zlib), (CompressionType::Lz4, lz4)]
        {
            match decompress(kind, &packed, 24) {
                Ok(bytes) => assert_eq!(bytes, plain, "{kind:?}"),
                Err(e) => panic!("{kind:?}: {e:?}"),
            }
        }
    }
}
