//! The `vectors` command: writes the golden vectors, or checks them.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use stc_runner::output::{complain, say};
use stc_vectors::store;

use crate::exit;
use crate::java::Jdk;

/// The `vectors` command line.
#[derive(Debug, Args)]
pub struct Vectors {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write vectors/v1 and vectors/schema anew
    Generate,
    /// Check that vectors/v1 and vectors/schema are what the generator makes, or let a verifier recompute every value
    Verify {
        /// Who checks
        #[arg(long, value_enum, default_value = "rust")]
        language: Language,
    },
}

/// Who checks the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// The generator, which compares the files with what it makes
    Rust,
    /// vectors/verify.py
    Python,
    /// vectors/Verify.java
    Java,
}

/// Runs the command; the exit code is 1 when a value is wrong.
///
/// # Errors
/// A file that cannot be used, or a verifier that cannot be started.
pub fn run(vectors: &Vectors) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root().join("vectors");
    match vectors.action {
        Action::Generate => {
            let documents = stc_vectors::generate()?;
            store::write(&root, &documents)?;
            say(format_args!("wrote {} files, {} cases", documents.len(), cases(&documents)));
            Ok(ExitCode::SUCCESS)
        }
        Action::Verify { language: Language::Rust } => {
            let documents = stc_vectors::generate()?;
            let differences = store::compare(&root, &documents)?;
            for difference in &differences {
                complain(difference);
            }
            say(format_args!(
                "{} files, {} cases, {} differ",
                documents.len(),
                cases(&documents),
                differences.len()
            ));
            Ok(ExitCode::from(if differences.is_empty() { 0 } else { exit::FAILED }))
        }
        Action::Verify { language: Language::Python } => verifier(PathBuf::from("python3"), "verify.py"),
        Action::Verify { language: Language::Java } => verifier(Jdk::find()?.java(), "Verify.java"),
    }
}

fn cases(documents: &[stc_vectors::Document]) -> usize {
    documents.iter().map(|document| document.cases).sum()
}

/// Runs one of the verifiers, which print for themselves.
fn verifier(program: PathBuf, file: &str) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root().join("vectors");
    let status = Command::new(&program)
        .arg(root.join(file))
        .arg(root.join("v1"))
        // No byte code beside the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .with_context(|| format!("{} does not start", program.display()))?;
    // Ended by a signal: the environment, not the check.
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::ENVIRONMENT)))
}
