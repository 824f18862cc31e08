//! Exit codes are part of the interface: 0 good, 1 a check failed, 2 usage or configuration, 3 the environment failed.

use stc_runner::output::complain;
use std::process::ExitCode;

/// A check was carried out and its answer is no.
pub const FAILED: u8 = 1;
/// The command line or a configuration cannot be used as it is.
pub const USAGE: u8 = 2;
/// Something that the command needs is missing or broke.
pub const ENVIRONMENT: u8 = 3;

/// The caller asked for something that cannot be done as asked; ends the command with [`USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Prints an error with its causes and returns the code that the process ends with.
#[must_use]
pub fn report(error: &anyhow::Error) -> ExitCode {
    complain(format_args!("error: {error:#}"));
    let code = if error.downcast_ref::<UsageError>().is_some() { USAGE } else { ENVIRONMENT };
    ExitCode::from(code)
}
