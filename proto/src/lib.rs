//! Wire format.
pub mod pulsar {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/pulsar.rs"));
}
