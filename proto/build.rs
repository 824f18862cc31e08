//! Compiles `proto/pulsar.proto` with protox (no protoc needed) into prost types, and keeps its descriptor for
//! `src/fields.rs`, which renders messages as JSON, and `src/required.rs`, which knows what is required.

use std::{env, error::Error, fs, path::PathBuf};

use prost_reflect::prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/pulsar.proto");
    let descriptors = protox::compile(["pulsar.proto"], ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(out.join("pulsar.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}
