//! Writing a report in all file formats into a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::Report;
use crate::{badge, ctrf, html, json, junit, markdown};

/// Writes `report.html`, `report.json`, `report.md`, `junit.xml`, `ctrf.json` and `badge.json` into `dir`, which is
/// created with its parents if need be, and returns their paths in that order.
///
/// Everything is rendered before the first file is touched, and each file is written beside its place and then moved
/// there: a reader sees the old report or the new one, never a half.
///
/// # Errors
/// Whatever the file system says, with the path in the message.
pub fn write_all(report: &Report, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let files = [
        ("report.html", html::render(&[report]).map_err(io::Error::other)?),
        ("report.json", json::render(report).map_err(io::Error::other)?),
        ("report.md", markdown::render(report)),
        ("junit.xml", junit::render(report).map_err(io::Error::other)?),
        ("ctrf.json", ctrf::render(report).map_err(io::Error::other)?),
        ("badge.json", badge::render(report).map_err(io::Error::other)?),
    ];
    fs::create_dir_all(dir).map_err(|e| at(dir, &e))?;
    let mut written = Vec::with_capacity(files.len());
    for (name, text) in files {
        let path = dir.join(name);
        write(&path, &text)?;
        written.push(path);
    }
    Ok(written)
}

/// Writes a file beside its place and moves it there. Its folder has to exist.
///
/// # Errors
/// Whatever the file system says, with the path in the message.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(at(path, &io::Error::from(io::ErrorKind::InvalidFilename)));
    };
    replace(dir, name, path, text).map_err(|e| at(path, &e))
}

fn replace(dir: &Path, name: &str, path: &Path, text: &str) -> io::Result<()> {
    // Unique among processes and threads that write the same report at once.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let unique = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{name}.{}.{unique}.tmp", std::process::id()));
    let result = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to report; a leftover temporary file is not worth a second one.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
