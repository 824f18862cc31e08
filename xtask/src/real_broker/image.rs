//! A container image of the released broker: the jars of `real-broker/pom.xml`, a Java runtime cut from this machine's
//! JDK, and a shell. Nothing is pulled. The tag holds a hash of everything that goes in, so an image that is there is the
//! right one.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::launch::OPENED;
use crate::containers::{Engine, Rootfs};
use crate::java::{self, Jdk};

const NAME: &str = "stc-real-broker";
/// The image that the Pulsar project publishes.
const OFFICIAL: &str = "apachepulsar/pulsar:5.0.1";

/// Everything that Java SE offers, because reflection finds what is missing only later, and what Netty, BookKeeper and
/// DNS use beyond it.
const MODULES: &str = "java.se,jdk.charsets,jdk.crypto.ec,jdk.management,jdk.naming.dns,jdk.net,jdk.nio.mapmode,\
                       jdk.security.auth,jdk.unsupported,jdk.zipfs";
/// Native libraries of the Java runtime for screens, printers and sound. The broker has none, and what they need is left
/// out.
const SCREENS: [&str; 11] = [
    "libawt",
    "libfontmanager",
    "libfreetype",
    "libj2pcsc",
    "libjavajpeg",
    "libjawt",
    "libjsound",
    "liblcms",
    "libmlib_image",
    "libsplashscreen",
    "libharfbuzz",
];
/// Beginnings of names of jars that the broker only needs in Kubernetes or at Google.
const UNUSED: [&str; 4] =
    ["client-java-api-", "client-java-proto-", "proto-google-common-protos-", "kotlin-"];
/// Jars that hold native libraries of every platform under the sun.
const NATIVE: [&str; 4] = ["rocksdbjni-", "conscrypt-openjdk-uber-", "snappy-java-", "jna-jpms-"];

/// Environment of a container, and what can be changed of it; `real-broker/image/entry.sh` says what each does.
const CHANGES: [&str; 2] = [
    // Compiling less is quicker to start: see `launch`.
    "ENV PATH=/bin:/java/bin ROLE=standalone PORT=6650 WEB=8080 ADVERTISED=127.0.0.1 HEAP=256m DIRECT=128m \
     JAVA_OPTS=-XX:TieredStopAtLevel=1",
    "ENTRYPOINT [\"/bin/sh\", \"/pulsar/entry.sh\"]",
];

/// Makes the image unless it is there, and gives its tag. With `official`, on top of the published image instead of the
/// jars.
///
/// # Errors
/// [`crate::containers::NoEngine`], [`java::JavaError`], or when a step of making it fails.
pub fn ensure(cache: &Path, official: bool) -> anyhow::Result<String> {
    let engine = Engine::find()?;
    if official { from_official(engine) } else { from_jars(engine, cache) }
}

fn from_official(engine: Engine) -> anyhow::Result<String> {
    let files = own_files()?;
    let tag = format!("{NAME}:official-{:016x}", hash(&(OFFICIAL, CHANGES, &files)));
    if engine.has_image(&tag)? {
        return Ok(tag);
    }
    engine.run(&["pull", "--quiet", OFFICIAL])?;
    let container = engine.run(&["create", "--user", "0", OFFICIAL])?;
    let made = (|| {
        for (inside, content) in &files {
            let file = std::env::temp_dir().join(format!("stc-image-{}", std::process::id()));
            fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
            let copied = engine.run(&["cp", &file.display().to_string(), &format!("{container}:{inside}")]);
            let _ = fs::remove_file(&file);
            copied?;
        }
        let changes = CHANGES.map(|change| change.replace("PATH=/bin:/java/bin ", ""));
        let changes = changes.iter().flat_map(|change| ["--change", change]);
        let arguments: Vec<&str> = ["commit"].into_iter().chain(changes).chain([&*container, &tag]).collect();
        engine.run(&arguments)
    })();
    engine.run(&["rm", "--force", &container])?;
    made.map(|_| tag)
}

fn from_jars(engine: Engine, cache: &Path) -> anyhow::Result<String> {
    let jdk = Jdk::find()?;
    let class_path = java::class_path(&jdk, &home().join("pom.xml"), cache)?;
    let jars: Vec<PathBuf> =
        std::env::split_paths(&class_path).filter(|jar| is_used(&file_name(jar))).collect();
    let files = own_files()?;
    let tag = format!("{NAME}:5.0.1-{:016x}", inputs(&jdk, &jars, &files)?);
    if engine.has_image(&tag)? {
        return Ok(tag);
    }
    let root = Rootfs::create(cache.join(format!("image-{}", std::process::id())))?;
    let runtime = root.place("/java")?;
    tool(&jdk, "jlink", |command| {
        command.args([
            "--strip-debug",
            "--no-header-files",
            "--no-man-pages",
            "--add-modules",
            MODULES,
            "--output",
        ]);
        command.arg(&runtime)
    })?;
    // The archive of shared classes halves the start, and jlink leaves it out.
    program(Command::new(runtime.join("bin/java")).args(["-Xshare:dump", "-XX:+UseSerialGC"]))?;
    let mut linked = vec![PathBuf::from("/bin/sh"), runtime.join("bin/java")];
    linked.extend(
        entries(&runtime.join("lib"))?.into_iter().chain(entries(&runtime.join("lib/server"))?).filter(
            |file| {
                is_library(&file_name(file)) && !SCREENS.iter().any(|name| file_name(file).starts_with(name))
            },
        ),
    );
    let scratch = root.path().join("scratch");
    for jar in &jars {
        let name = file_name(jar);
        let place = root.place(Path::new("/pulsar/lib").join(&name))?;
        let of_all_platforms = NATIVE.iter().any(|start| name.starts_with(start));
        let content = scratch.join(&name);
        if of_all_platforms || name.contains("linux-x86_64") {
            unpack(&jdk, jar, &content)?;
            linked.extend(below(&content)?.into_iter().filter(|file| is_library(&file_name(file))));
        }
        if of_all_platforms {
            tool(&jdk, "jar", |command| {
                command.args(["--create", "--no-compress", "--no-manifest", "--file"]);
                command.arg(&place).arg("-C").arg(&content).arg(".")
            })?;
        } else {
            fs::copy(jar, &place).with_context(|| format!("cannot copy {}", jar.display()))?;
        }
    }
    root.copy("/bin/sh".as_ref(), "/bin/sh")?;
    root.copy_libraries_of(&linked)?;
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    for (inside, content) in &files {
        root.write(inside, content.as_bytes())?;
    }
    engine.import(root.path(), &tag, &CHANGES)?;
    Ok(tag)
}

/// The files of this project in the image, by their place in it.
fn own_files() -> anyhow::Result<[(&'static str, String); 4]> {
    let read = |name: &str| {
        let file = home().join(name);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let opened = OPENED.map(|package| format!("--add-opens={package}=ALL-UNNAMED\n")).concat();
    let options = "-XX:+UseSerialGC\n-XX:+ExitOnOutOfMemoryError\n--enable-native-access=ALL-UNNAMED\n\
                   -Dio.netty.tryReflectionSetAccessible=true\n";
    Ok([
        ("/pulsar/entry.sh", read("image/entry.sh")?),
        ("/pulsar/broker.conf", read("standalone.conf")?),
        ("/pulsar/log4j2.xml", read("log4j2.xml")?),
        ("/pulsar/jvm.options", format!("{options}{opened}")),
    ])
}

/// A number that differs when anything that goes into the image does. Jars of Maven Central never change under a name
/// that holds their version.
fn inputs(jdk: &Jdk, jars: &[PathBuf], files: &[(&str, String)]) -> anyhow::Result<u64> {
    let release = fs::read_to_string(jdk.home.join("release")).unwrap_or_default();
    let mut sizes = Vec::new();
    for jar in jars {
        let size = fs::metadata(jar).with_context(|| format!("cannot read {}", jar.display()))?.len();
        sizes.push((file_name(jar), size));
    }
    sizes.sort();
    // This file is the recipe.
    Ok(hash(&(include_str!("image.rs"), release, sizes, files)))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn home() -> PathBuf {
    crate::workspace_root().join("real-broker")
}

fn is_used(jar: &str) -> bool {
    let other = ["osx", "windows", "aarch", "riscv", "macos"].iter().any(|platform| jar.contains(platform));
    !other && !jar.ends_with("-tests.jar") && !UNUSED.iter().any(|start| jar.starts_with(start))
}

/// Whether an entry of a jar with native libraries stays: everything but what is for other platforms.
fn stays(entry: &str) -> bool {
    let name = entry.rsplit('/').next().unwrap_or_default();
    let native =
        is_library(name) || [".dll", ".jnilib", ".dylib", ".a"].iter().any(|end| name.ends_with(end));
    let here = ["linux64", "linux-x86_64", "linux-x86-64", "Linux/x86_64", "_x86_64.so"];
    !native || here.iter().any(|platform| entry.contains(platform)) && !entry.contains("musl")
}

fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.")
}

/// Unpacks what stays of a jar.
fn unpack(jdk: &Jdk, jar: &Path, into: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    let listed = tool(jdk, "jar", |command| command.arg("--list").arg("--file").arg(jar))?;
    let entries: Vec<&str> = listed.lines().filter(|entry| !entry.ends_with('/') && stays(entry)).collect();
    tool(jdk, "jar", |command| {
        command.arg("--extract").arg("--file").arg(jar).args(entries).current_dir(into)
    })?;
    Ok(())
}

/// Runs a tool of the JDK and gives what it printed.
fn tool(jdk: &Jdk, name: &str, set_up: impl FnOnce(&mut Command) -> &mut Command) -> anyhow::Result<String> {
    program(set_up(&mut Command::new(jdk.home.join("bin").join(name))))
}

fn program(command: &mut Command) -> anyhow::Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} does not start"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{name} failed: {printed}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(printed)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files of a directory.
fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(read.flatten().map(|entry| entry.path()).collect())
}

/// The files of a directory and of those in it.
fn below(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for path in entries(&dir)? {
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_classes_and_the_libraries_of_this_platform() {
        for kept in [
            "org/rocksdb/RocksDB.class",
            "librocksdbjni-linux64.so",
            "org/xerial/snappy/native/Linux/x86_64/libsnappyjava.so",
            "META-INF/native/libconscrypt_openjdk_jni-linux-x86_64.so",
            "META-INF/native/libnetty_transport_native_epoll_x86_64.so",
            "META-INF/MANIFEST.MF",
        ] {
            assert!(stays(kept), "{kept}");
        }
        for dropped in [
            "librocksdbjni-linux64-musl.so",
            "librocksdbjni-linux-aarch64.so",
            "librocksdbjni-win64.dll",
            "librocksdbjni-osx-x86_64.jnilib",
            "com/sun/jna/aix-ppc/libjnidispatch.a",
        ] {
            assert!(!stays(dropped), "{dropped}");
        }
    }

    #[test]
    fn leaves_out_jars_of_other_platforms() {
        assert!(is_used("netty-transport-native-epoll-4.2.19.Final-linux-x86_64.jar"));
        assert!(!is_used("netty-transport-native-epoll-4.2.19.Final-linux-aarch_64.jar"));
        assert!(!is_used("netty-resolver-dns-native-macos-4.2.19.Final.jar"));
        assert!(is_used("pulsar-client-original-5.0.1.jar"));
    }

    #[test]
    fn the_key_follows_jars_and_files() {
        let dir = tempfile::tempdir().unwrap();
        let jar = dir.path().join("a-1.jar");
        fs::write(&jar, "x").unwrap();
        let jdk = Jdk { home: dir.path().to_path_buf(), feature: 21 };
        let key = |jars: &[PathBuf], text: &str| inputs(&jdk, jars, &[("/a", text.to_owned())]).unwrap();
        let first = key(std::slice::from_ref(&jar), "a");
        assert_eq!(first, key(std::slice::from_ref(&jar), "a"));
        assert_ne!(first, key(&[], "a"));
        assert_ne!(first, key(std::slice::from_ref(&jar), "b"));
        fs::write(&jar, "xx").unwrap();
        assert_ne!(first, key(std::slice::from_ref(&jar), "a"));
    }
}
