//! Lists the feature files and the catalogue, so that the program `stc` carries them and can be installed alone.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let missing = |_| io::Error::other("cargo sets the folders of a build");
    let features = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(missing)?).join("../features");
    println!("cargo::rerun-if-changed={}", features.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&features)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "feature") {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    let include = |name: &str| format!("include_str!({:?})", features.join(name));
    let mut code = String::new();
    for (name, file) in [("CATALOGUE", "requirements.yaml"), ("WHY", "why.yaml")] {
        let _ = writeln!(code, "const {name}: &str = {};", include(file));
    }
    code.push_str("const FEATURES: &[(&str, &str)] = &[\n");
    for name in &names {
        let _ = writeln!(code, "    ({name:?}, {}),", include(name));
    }
    code.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").map_err(missing)?).join("features.rs"), code)
}
