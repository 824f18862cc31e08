//! A directory that becomes the root of an image.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The directory; it is removed when this is dropped.
#[derive(Debug)]
pub struct Rootfs {
    path: PathBuf,
}

impl Rootfs {
    /// An empty root with `/tmp`, `/etc/passwd` and the mount points that an engine expects.
    ///
    /// # Errors
    /// When the directory cannot be made; `path` is removed first.
    pub fn create(path: PathBuf) -> anyhow::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
        let root = Self { path };
        for dir in ["tmp", "etc", "proc", "sys", "dev"] {
            let dir = root.path.join(dir);
            fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let tmp = root.path.join("tmp");
        fs::set_permissions(&tmp, fs::Permissions::from_mode(0o1777))
            .with_context(|| format!("cannot open {} to all", tmp.display()))?;
        root.write("/etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")?;
        root.write("/etc/group", b"root:x:0:\n")?;
        root.write("/etc/nsswitch.conf", b"hosts: files dns\n")?;
        Ok(root)
    }

    /// The directory on this machine.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a path of the image is on this machine; its parent directories are made.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn place(&self, path: impl AsRef<Path>) -> anyhow::Result<PathBuf> {
        let inside = path.as_ref().components().filter(|part| matches!(part, Component::Normal(_)));
        let place = self.path.join(inside.collect::<PathBuf>());
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        Ok(place)
    }

    /// Writes a file of the image.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: &[u8]) -> anyhow::Result<()> {
        let place = self.place(path)?;
        fs::write(&place, content).with_context(|| format!("cannot write {}", place.display()))
    }

    /// Copies a file of this machine, followed where it is a link, with its permissions.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub fn copy(&self, from: &Path, path: impl AsRef<Path>) -> anyhow::Result<()> {
        let place = self.place(path)?;
        fs::copy(from, &place)
            .map(|_| ())
            .with_context(|| format!("cannot copy {} to {}", from.display(), place.display()))
    }

    /// Copies the shared libraries that these programs and libraries are linked with, and the loader, to the places
    /// where they are on this machine. What lies beside a program of the image already is left out.
    ///
    /// # Errors
    /// When `ldd` fails or a library is missing.
    pub fn copy_libraries_of(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        let output =
            Command::new("ldd").args(files).stdin(Stdio::null()).output().context("`ldd` does not start")?;
        // ldd fails when one of the files is linked statically, and says so in its output, too.
        for library in linked(&String::from_utf8_lossy(&output.stdout), files)? {
            if !library.starts_with(&self.path) {
                self.copy(&library, &library)?;
            }
        }
        Ok(())
    }
}

impl Drop for Rootfs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The files in what `ldd` printed. One of `own` that it did not find is loaded by its program in another way.
fn linked(text: &str, own: &[PathBuf]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with(char::is_whitespace)) {
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" => not found") {
            if own.iter().any(|file| file.ends_with(name)) {
                continue;
            }
            bail!("a shared library is missing: {line}");
        }
        let file = line.split_once("=> ").map_or(line, |(_, file)| file);
        // The kernel's own library has no file.
        if let Some(file) = file.split(" (").next().filter(|file| file.starts_with('/')) {
            found.insert(PathBuf::from(file));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_libraries_and_the_loader_and_names_a_missing_one() {
        let text = "/x/java:\n\tlinux-vdso.so.1 (0x7f)\n\tlibz.so.1 => /lib/a/libz.so.1 (0x7f)\n\
                    /x/b.so:\n\t/lib64/ld.so.2 (0x7f)\n\tlibz.so.1 => /lib/a/libz.so.1 (0x7f)\n";
        let found = linked(text, &[]).unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [PathBuf::from("/lib/a/libz.so.1"), PathBuf::from("/lib64/ld.so.2")]
        );
        let missing = "a:\n\tlibq.so => not found\n";
        assert!(linked(missing, &[PathBuf::from("/x/libq.so")]).unwrap().is_empty());
        let error = linked(missing, &[PathBuf::from("/x/libqq.so")]).unwrap_err().to_string();
        assert!(error.contains("libq.so"), "{error}");
    }

    #[test]
    fn a_root_stays_inside_its_directory_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = Rootfs::create(dir.path().join("root")).unwrap();
        root.write("/../../a/b", b"x").unwrap();
        assert_eq!(fs::read(root.path().join("a/b")).unwrap(), b"x");
        root.copy_libraries_of(&[PathBuf::from("/bin/sh")]).unwrap();
        let kept = root.path().to_path_buf();
        drop(root);
        assert!(!kept.exists());
    }
}
