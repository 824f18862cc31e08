//! Chromium without a window: the page as it is after its scripts ran, as a picture, as a PDF.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// Names that it goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// How long one page may take, in milliseconds. Far more than it needs: it ends a browser that hangs.
const TIMEOUT_MS: u32 = 120_000;

/// An installed Chromium, with a profile of its own.
pub struct Chromium {
    program: PathBuf,
    profile: PathBuf,
}

/// There is none on this machine.
#[derive(Debug, thiserror::Error)]
#[error("no Chromium on PATH, and CHROMIUM names none (Debian: apt-get install chromium)")]
pub struct NoChromium;

/// A window that nobody sees.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Whether the system asks for dark pages.
    pub dark: bool,
}

impl Chromium {
    /// The program that `CHROMIUM` names, else the first of the usual names on `PATH`.
    ///
    /// # Errors
    /// [`NoChromium`].
    pub fn find() -> Result<Chromium, NoChromium> {
        let named = env::var_os("CHROMIUM").map(PathBuf::from).filter(|path| path.is_file());
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = || {
            let places = env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name)));
            places.into_iter().find(|place| place.is_file())
        };
        let program = named.or_else(on_path).ok_or(NoChromium)?;
        Ok(Chromium { program, profile: env::temp_dir() })
    }

    /// Keeps the browser's own files in this folder.
    #[must_use]
    pub fn with_profile(self, profile: PathBuf) -> Chromium {
        Chromium { profile, ..self }
    }

    /// The document after its scripts ran, as HTML.
    ///
    /// # Errors
    /// When the browser does not start or fails.
    pub fn dom(&self, page: &Path, fragment: &str, more: &[OsString]) -> anyhow::Result<String> {
        let window = Window { width: 1280, height: 2000, dark: false };
        let mut arguments = vec![OsString::from("--dump-dom")];
        arguments.extend_from_slice(more);
        let output = self.run(page, fragment, window, &arguments)?;
        String::from_utf8(output).context("the document is not UTF-8")
    }

    /// A picture of the page.
    ///
    /// # Errors
    /// When the browser fails, or leaves no picture.
    pub fn picture(&self, page: &Path, fragment: &str, window: Window, to: &Path) -> anyhow::Result<()> {
        let mut argument = OsString::from("--screenshot=");
        argument.push(to);
        self.run(page, fragment, window, &[argument])?;
        ensure!(fs::read(to)?.starts_with(b"\x89PNG"), "{} is no picture", to.display());
        Ok(())
    }

    /// The page as it is printed; the number of sheets.
    ///
    /// # Errors
    /// When the browser fails, or leaves no PDF.
    pub fn print(&self, page: &Path, fragment: &str, to: &Path) -> anyhow::Result<usize> {
        let mut argument = OsString::from("--print-to-pdf=");
        argument.push(to);
        let window = Window { width: 1280, height: 2000, dark: false };
        self.run(page, fragment, window, &[argument, "--no-pdf-header-footer".into()])?;
        let pdf = fs::read(to)?;
        ensure!(pdf.starts_with(b"%PDF-"), "{} is no PDF", to.display());
        let sheets = String::from_utf8_lossy(&pdf).matches("/Type /Page\n").count();
        Ok(sheets)
    }

    fn run(
        &self,
        page: &Path,
        fragment: &str,
        window: Window,
        arguments: &[OsString],
    ) -> anyhow::Result<Vec<u8>> {
        let mut profile = OsString::from("--user-data-dir=");
        profile.push(&self.profile);
        let mut command = Command::new(&self.program);
        command
            .args([
                "--headless",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-extensions",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(profile)
            .arg(format!("--window-size={},{}", window.width, window.height))
            .arg(format!("--timeout={TIMEOUT_MS}"))
            // Ends when the page has nothing more to do, not when a clock says so.
            .arg("--virtual-time-budget=60000");
        if window.dark {
            command.arg("--blink-settings=preferredColorScheme=0");
        }
        if rustix::process::geteuid().is_root() {
            // As root, as in containers, Chromium has no sandbox to offer.
            command.arg("--no-sandbox");
        }
        let output = command
            .args(arguments)
            .arg(address(page, fragment)?)
            .output()
            .with_context(|| format!("{} does not start", self.program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} ended with {}: {}", self.program.display(), output.status, said.trim());
        }
        Ok(output.stdout)
    }
}

/// The address of a file, with a place or a filter behind `#`.
fn address(page: &Path, fragment: &str) -> anyhow::Result<String> {
    let path = fs::canonicalize(page).with_context(|| page.display().to_string())?;
    let path = path.to_str().context("the page's path is not UTF-8")?.to_owned();
    let mut address = format!("file://{}", escaped(&path, b"/-._~"));
    if !fragment.is_empty() {
        address.push('#');
        address.push_str(&escaped(fragment, b"/-._~=&,"));
    }
    Ok(address)
}

fn escaped(text: &str, plain: &[u8]) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || plain.contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_escaped() {
        assert_eq!(escaped("/a b/ü#?%", b"/"), "/a%20b/%C3%BC%23%3F%25");
    }
}
