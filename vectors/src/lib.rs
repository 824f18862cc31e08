//! Golden vectors: questions that every Scalable Topics client has to answer alike, with the answers, as JSON files
//! that any language can read.
//!
//! | Module | Owns |
//! |---|---|
//! | [`document`] | the form of a file: header, one case a line, its JSON Schema |
//! | [`store`] | a directory of files: writing it, and comparing it with what the generator makes |
//! | [`corpus`] | the keys, and keys that hit a given hash |
//! | [`hashing`] | `hashing`, `legacy-routing` |
//! | [`layouts`] | layouts as the wire shows them, and the histories that lead to them |
//! | [`routing`] | `segment-routing`, `bucket-routing` |
//! | [`boundaries`] | `bucket-boundaries` |
//! | [`names`] | `topic-names`, `segment-names` |
//! | [`changes`] | `layout-changes` |
//! | [`assignment`] | `assignments`: the controller's rule |
//! | [`owners`] | `bucket-owners`: the dispatcher's rule |
//! | [`batches`] | `bucket-batches` |
//! | [`namespace`] | `namespace-hash` |
//! | [`frames`] | `frames`: commands 70 to 82 |
//! | [`entries`] | `entries`: messages, batches, chunks, encrypted entries |
//!
//! Hashes, names and layouts come from `stc-proto`, which is checked against Pulsar's own classes. The rules of the
//! controller, of the dispatcher and of the batches are written here a second time, from their description, so that
//! the simulated broker and the reference client can be checked against them.

pub mod assignment;
pub mod batches;
pub mod boundaries;
pub mod changes;
pub mod corpus;
pub mod document;
pub mod entries;
pub mod frames;
pub mod hashing;
pub mod layouts;
pub mod names;
pub mod namespace;
pub mod owners;
pub mod routing;
pub mod store;

pub use document::{Document, GenerateError};

/// The seed of everything that is drawn at random in version 1.
pub const SEED: u64 = 486;

/// Makes all files, in a fixed order. The same code gives the same bytes.
///
/// # Errors
/// A case that contradicts itself: a fault of the generator.
pub fn generate() -> Result<Vec<Document>, GenerateError> {
    let keys = corpus::Corpus::new(SEED);
    let atlas = corpus::Atlas::new();
    Ok(vec![
        hashing::document(&keys)?,
        hashing::legacy_document(&keys)?,
        routing::segments(&keys, &atlas)?,
        routing::buckets(&keys, &atlas)?,
        boundaries::document()?,
        names::topics()?,
        names::segments()?,
        changes::document()?,
        assignment::document()?,
        owners::document()?,
        batches::document(&keys, &atlas)?,
        namespace::document()?,
        frames::document()?,
        entries::document()?,
    ])
}
