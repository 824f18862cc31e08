//! Container images that are made on this machine, without pulling anything.
//!
//! - `engine`: the container engine, through its command line
//! - `rootfs`: a directory that becomes an image, with the shared libraries that its programs need

mod engine;
mod rootfs;

pub use engine::{Engine, NoEngine, is_gone};
pub use rootfs::Rootfs;
