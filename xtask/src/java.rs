//! Finding a JDK and Maven, and resolving a Maven project's class path from the local repository.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The oldest Java that the released Pulsar 5.0.1 runs on.
pub const OLDEST_JAVA: u32 = 21;

/// What is missing or does not work on this machine, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum JavaError {
    /// No JDK that is new enough.
    #[error(
        "no JDK {OLDEST_JAVA} or newer: {looked}. Install one (Temurin, or on Debian 13 `apt-get install \
         openjdk-21-jdk-headless`) or set JAVA_HOME_PULSAR to its directory"
    )]
    NoJdk {
        /// Where one was looked for, and what was found there.
        looked: String,
    },
    /// `mvn` is not on the path or does not start.
    #[error("no Maven: `mvn` does not run ({reason}). Install it (for example `apt-get install maven`)")]
    NoMaven {
        /// Why it does not run.
        reason: String,
    },
    /// Maven ran and failed.
    #[error("Maven failed on {}: {output}", pom.display())]
    MavenFailed {
        /// The project.
        pom: PathBuf,
        /// The end of what it printed.
        output: String,
    },
    /// A file of ours could not be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// An installed JDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    /// Its directory, as in `JAVA_HOME`.
    pub home: PathBuf,
    /// Its feature release, like 21 or 25.
    pub feature: u32,
}

impl Jdk {
    /// The JDK to use: `JAVA_HOME_PULSAR` when set (and then no other), else `JAVA_HOME` when it is new enough, else
    /// the newest one installed.
    ///
    /// # Errors
    /// [`JavaError::NoJdk`] names each place that was looked at.
    pub fn find() -> Result<Self, JavaError> {
        Self::choose(
            env::var_os("JAVA_HOME_PULSAR").as_deref(),
            env::var_os("JAVA_HOME").as_deref(),
            &installed(),
        )
    }

    fn choose(only: Option<&OsStr>, first: Option<&OsStr>, installed: &[PathBuf]) -> Result<Self, JavaError> {
        let mut looked = Vec::new();
        let mut usable = |name: &str, home: &Path| match feature_release(home) {
            Some(feature) if feature >= OLDEST_JAVA => Some(Self { home: home.to_path_buf(), feature }),
            Some(feature) => {
                looked.push(format!("{name} {} has Java {feature}", home.display()));
                None
            }
            None => {
                looked.push(format!("{name} {} is no JDK", home.display()));
                None
            }
        };
        let set = |value: Option<&OsStr>| value.filter(|v| !v.is_empty()).map(PathBuf::from);
        let found = if let Some(home) = set(only) {
            usable("JAVA_HOME_PULSAR", &home)
        } else {
            set(first).and_then(|home| usable("JAVA_HOME", &home)).or_else(|| {
                installed
                    .iter()
                    .filter_map(|home| usable("the installed", home))
                    .max_by_key(|jdk| jdk.feature)
            })
        };
        found.ok_or_else(|| JavaError::NoJdk {
            looked: if looked.is_empty() { "none is installed".to_owned() } else { looked.join(", ") },
        })
    }

    /// The `java` launcher.
    #[must_use]
    pub fn java(&self) -> PathBuf {
        self.home.join("bin").join("java")
    }
}

/// The directories in which Linux distributions and macOS put their JDKs.
fn installed() -> Vec<PathBuf> {
    let children = |dir: &str| {
        let mut found: Vec<PathBuf> =
            fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        found.sort();
        found
    };
    let mut homes = children("/usr/lib/jvm");
    homes.extend(
        children("/Library/Java/JavaVirtualMachines").into_iter().map(|jdk| jdk.join("Contents/Home")),
    );
    homes.retain(|home| home.join("bin/java").is_file());
    homes
}

/// The feature release that a JDK's `release` file states, or that its launcher prints where the file is missing.
fn feature_release(home: &Path) -> Option<u32> {
    // A runtime without the compiler would start the broker and then fail to build the adapters.
    if !["bin/java", "bin/javac"].iter().all(|tool| home.join(tool).is_file()) {
        return None;
    }
    let stated = fs::read_to_string(home.join("release")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        parse_feature(line.trim().trim_matches('"'))
    });
    stated.or_else(|| {
        let output =
            Command::new(home.join("bin/java")).arg("-version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        parse_feature(text.split('"').nth(1)?)
    })
}

/// `"25.0.1"` is 25, `"21"` is 21, `"1.8.0_402"` is 8, `"26-ea"` is 26.
fn parse_feature(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let first: u32 = numbers.next()?.parse().ok()?;
    if first == 1 { numbers.next()?.parse().ok() } else { Some(first) }
}

/// Maven, run with a chosen JDK.
#[derive(Debug)]
pub struct Maven<'a> {
    jdk: &'a Jdk,
}

impl<'a> Maven<'a> {
    /// Makes sure that `mvn` runs.
    ///
    /// # Errors
    /// [`JavaError::NoMaven`] when it does not.
    pub fn find(jdk: &'a Jdk) -> Result<Self, JavaError> {
        let maven = Self { jdk };
        let output = maven.command().arg("--version").output();
        match output {
            Ok(output) if output.status.success() => Ok(maven),
            Ok(output) => Err(JavaError::NoMaven { reason: tail(&output, 3) }),
            Err(error) => Err(JavaError::NoMaven { reason: error.to_string() }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("mvn");
        command.env("JAVA_HOME", &self.jdk.home).stdin(Stdio::null());
        command
    }

    /// Runs goals on a project, quietly.
    ///
    /// # Errors
    /// [`JavaError::MavenFailed`] with the end of the output.
    pub fn run(&self, pom: &Path, goals: &[&str]) -> Result<(), JavaError> {
        let output = self
            .command()
            .args(["--batch-mode", "--quiet", "--file"])
            .arg(pom)
            .args(goals)
            .output()
            .map_err(|error| JavaError::NoMaven { reason: error.to_string() })?;
        if output.status.success() {
            return Ok(());
        }
        Err(JavaError::MavenFailed { pom: pom.to_path_buf(), output: tail(&output, 15) })
    }
}

/// The class path of a project that only names dependencies. Maven is asked once: the answer is kept in `cache` and is
/// used again while the project is unchanged and every jar is still where it was.
///
/// # Errors
/// [`JavaError`] when Maven is missing or fails, or when the cache cannot be written.
pub fn class_path(jdk: &Jdk, pom: &Path, cache: &Path) -> Result<String, JavaError> {
    let project = read(pom)?;
    let (kept_project, kept) = (cache.join("resolved-pom.xml"), cache.join("classpath"));
    if fs::read_to_string(&kept_project).is_ok_and(|text| text == project)
        && let Ok(paths) = fs::read_to_string(&kept)
        && env::split_paths(paths.trim()).all(|jar| jar.is_file())
    {
        return Ok(paths.trim().to_owned());
    }
    let maven = Maven::find(jdk)?;
    fs::create_dir_all(cache).map_err(|source| JavaError::File { path: cache.to_path_buf(), source })?;
    // Two processes may resolve at the same time: each writes its own file and moves it into place.
    let fresh = cache.join(format!("classpath.{}", std::process::id()));
    let output = format!("-Dmdep.outputFile={}", fresh.display());
    maven.run(pom, &["dependency:build-classpath", &output])?;
    let paths = read(&fresh)?;
    fs::rename(&fresh, &kept).map_err(|source| JavaError::File { path: kept, source })?;
    fs::write(&kept_project, project).map_err(|source| JavaError::File { path: kept_project, source })?;
    Ok(paths.trim().to_owned())
}

fn read(path: &Path) -> Result<String, JavaError> {
    fs::read_to_string(path).map_err(|source| JavaError::File { path: path.to_path_buf(), source })
}

/// The last lines that a command printed.
fn tail(output: &Output, lines: usize) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all.iter().skip(all.len().saturating_sub(lines)).copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake_jdk(dir: &Path, name: &str, version: &str) -> PathBuf {
        let home = dir.join(name);
        fs::create_dir_all(home.join("bin")).unwrap();
        for tool in ["bin/java", "bin/javac"] {
            fs::write(home.join(tool), "").unwrap();
        }
        fs::write(home.join("release"), format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n")).unwrap();
        home
    }

    #[test]
    fn reads_every_style_of_version() {
        for (text, feature) in
            [("25.0.1", Some(25)), ("21", Some(21)), ("1.8.0_402", Some(8)), ("26-ea", Some(26)), ("", None)]
        {
            assert_eq!(parse_feature(text), feature, "{text:?}");
        }
    }

    #[test]
    fn prefers_what_is_set_and_then_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let (old, good, new) = (
            fake_jdk(dir.path(), "a", "17.0.2"),
            fake_jdk(dir.path(), "b", "21.0.5"),
            fake_jdk(dir.path(), "c", "25"),
        );
        let all = [old.clone(), new.clone(), good.clone()];
        let home = |only: Option<&PathBuf>, first: Option<&PathBuf>| {
            Jdk::choose(only.map(|p| p.as_os_str()), first.map(|p| p.as_os_str()), &all).map(|jdk| jdk.home)
        };
        assert_eq!(home(None, None).unwrap(), new);
        assert_eq!(home(None, Some(&good)).unwrap(), good);
        assert_eq!(home(None, Some(&old)).unwrap(), new, "JAVA_HOME is passed over when it is too old");
        assert_eq!(home(Some(&good), Some(&new)).unwrap(), good);
        let refused = home(Some(&old), Some(&new)).unwrap_err().to_string();
        assert!(refused.contains("has Java 17"), "{refused}");
    }

    #[test]
    fn says_so_when_there_is_none() {
        let error = Jdk::choose(None, Some(OsStr::new("/nowhere")), &[]).unwrap_err().to_string();
        assert!(error.contains("JAVA_HOME /nowhere is no JDK") && error.contains("Install one"), "{error}");
    }

    #[test]
    fn a_kept_class_path_counts_only_while_project_and_jars_are_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (pom, jar) = (dir.path().join("pom.xml"), dir.path().join("a.jar"));
        fs::write(&pom, "<project/>").unwrap();
        fs::write(&jar, "").unwrap();
        fs::write(dir.path().join("resolved-pom.xml"), "<project/>").unwrap();
        fs::write(dir.path().join("classpath"), jar.to_str().unwrap()).unwrap();
        let jdk = Jdk { home: dir.path().to_path_buf(), feature: 25 };
        assert_eq!(class_path(&jdk, &pom, dir.path()).unwrap(), jar.to_str().unwrap());
        fs::remove_file(&jar).unwrap();
        // The project resolves nothing, so asking Maven again cannot succeed whether or not it is installed.
        class_path(&jdk, &pom, dir.path()).unwrap_err();
    }
}
