//! The public API: pinned in a file, and without a trace of how topics are laid out.
//!
//! The workspace's lint `unreachable_pub` keeps `pub` for what the crate exports, so the sources tell what is public.
//! After a change that is meant, `STC_UPDATE_GOLDEN=1 cargo test -p stc-client --test it public_api` writes the file
//! anew; the difference belongs into the change's review and into the changelog.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Words that name the parts of a topic: an application never meets them (client-api §4, data-model §4).
const FORBIDDEN: [&str; 5] = ["segment", "partition", "ledger", "entry", "bucket"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What a source file makes public, one item in a line: functions with their signatures, types, variants of enums,
/// functions of traits, fields. Relies on the layout that rustfmt gives.
fn items(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut items = Vec::new();
    let mut lines = source.lines();
    // The public enum or trait that the lines are in.
    let mut inside: Option<String> = None;
    // What the `pub` functions and fields belong to.
    let mut owner = String::new();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if text.starts_with("//") || text.starts_with('#') {
            continue;
        }
        if line == "}" {
            inside = None;
            owner.clear();
        }
        if line.starts_with("impl") {
            let of = line.rsplit(" for ").next().unwrap_or(line);
            owner = of.trim_start_matches("impl").trim_end_matches('{').trim().to_owned();
            if of.starts_with("impl<") {
                owner = owner.split_once("> ").map_or(owner.clone(), |(_, rest)| rest.to_owned());
            }
        }
        let public = text.strip_prefix("pub ").filter(|rest| !rest.starts_with("use "));
        let of_trait = inside.as_deref().is_some_and(|kind| kind == "trait") && text.starts_with("fn ");
        let variant = inside.as_deref() == Some("enum")
            && line.starts_with("    ")
            && !line.starts_with("     ")
            && text.starts_with(|first: char| first.is_ascii_uppercase());
        let item = match public {
            Some(rest) => rest,
            None if of_trait || variant => text,
            None => continue,
        };
        let mut signature = item.to_owned();
        while !signature.ends_with(['{', ';', ',', '}']) || unbalanced(&signature) {
            let Some(more) = lines.next() else { break };
            signature = format!("{signature} {}", more.trim());
        }
        let signature =
            signature.trim_end_matches(['{', ';', ',', '}', ' ']).replace("( ", "(").replace(", )", ")");
        for kind in ["enum", "trait", "struct"] {
            if public.is_some() && signature.starts_with(kind) && item.ends_with('{') {
                inside = Some(kind.to_owned());
                let name = signature.split([' ', '<', ':', '(']).nth(1).unwrap_or_default();
                owner = name.to_owned();
            }
        }
        // Fields of a tuple are private unless they say otherwise.
        let private = signature.starts_with("struct") && !signature.contains("pub ");
        let signature = match signature.split_once('(') {
            Some((head, _)) if private => head.to_owned(),
            _ => signature,
        };
        let top = !line.starts_with(' ');
        items.push(if top { signature } else { format!("{owner}: {signature}") });
    }
    items
}

fn unbalanced(text: &str) -> bool {
    text.matches('(').count() != text.matches(')').count()
}

fn listing() -> String {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    files.sort();
    let mut listing = String::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        // The deviants are a feature for tests of the suite.
        if name.ends_with("core/deviant.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        let mut public: Vec<String> = items(&source);
        if name == "src/lib.rs" {
            public.extend(exports(&source));
        }
        let public: BTreeSet<String> = public.into_iter().filter(|item| !item.contains('$')).collect();
        if !public.is_empty() {
            listing.push_str(&format!("{name}\n"));
            public.iter().for_each(|item| listing.push_str(&format!("    {item}\n")));
        }
    }
    listing
}

/// The names that the crate's root exports.
fn exports(lib: &str) -> Vec<String> {
    let mut names = Vec::new();
    for export in lib.split("\npub use ").skip(1) {
        let export = export.split(';').next().unwrap_or_default();
        for name in export.split(['{', '}', ',', '\n']) {
            let name = name.trim().rsplit("::").next().unwrap_or_default();
            let name = name.rsplit(" as ").next().unwrap_or_default();
            if name.starts_with(|first: char| first.is_ascii_uppercase()) {
                names.push(format!("use {name}"));
            }
        }
    }
    names.retain(|name| !name.starts_with("use Deviant"));
    names
}

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let path = root().join("tests/golden/public-api.txt");
    let listing = listing();
    if std::env::var_os("STC_UPDATE_GOLDEN").is_some() {
        fs::write(&path, &listing).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (golden.lines().collect(), listing.lines().collect());
    let gone: Vec<_> = old.difference(&new).collect();
    let added: Vec<_> = new.difference(&old).collect();
    assert!(
        gone.is_empty() && added.is_empty(),
        "gone: {gone:#?}\nadded: {added:#?}\nsee the head of this file"
    );
}

#[test]
fn no_part_of_a_topic_shows_in_the_public_api() {
    let listing = listing();
    let shown: Vec<&str> = listing
        .lines()
        .filter(|line| line.starts_with(' '))
        .filter(|line| FORBIDDEN.iter().any(|word| line.to_lowercase().contains(word)))
        .collect();
    assert!(shown.is_empty(), "{shown:#?}");
}

#[test]
fn types_and_operations_name_the_section_that_they_implement() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut without = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let mut doc = String::new();
        for line in source.lines().map(str::trim) {
            if line.starts_with("///") || line.starts_with('#') {
                doc.push_str(line);
                continue;
            }
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub async fn "];
            // Types made by macros have their words where the macro is called; deviants implement nothing.
            let counts = !line.contains('$') && !file.ends_with("core/deviant.rs");
            if counts && kinds.iter().any(|kind| line.starts_with(kind)) && !doc.contains('§') {
                without.push(format!("{}: {line}", file.display()));
            }
            doc.clear();
        }
    }
    assert!(without.is_empty(), "{without:#?}");
}

#[test]
fn the_listing_sees_every_kind_of_item() {
    let source = "pub struct A {\n    pub field: u8,\n    hidden: u8,\n}\n\nimpl<T: 'static> A<T> {\n    pub async fn long(\n        \
                  &self,\n        x: u8,\n    ) -> u8 {\n    }\n    pub(crate) fn not(&self) {}\n}\n\npub enum E {\n    One,\n    \
                  Two { x: u8 },\n}\n\npub trait T {\n    fn f(&self);\n}\n\n#[cfg(test)]\nmod tests {\n    pub fn no() {}\n}\n";
    let expected = [
        "struct A",
        "A: field: u8",
        "A<T>: async fn long(&self, x: u8) -> u8",
        "enum E",
        "E: One",
        "E: Two { x: u8",
        "trait T",
        "T: fn f(&self)",
    ];
    assert_eq!(items(source), expected);
}
