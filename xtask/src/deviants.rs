//! `cargo xtask deviants`: tests the suite itself with clients that are broken on purpose.

use std::process::ExitCode;

use stc_runner::deviants::{self, DeviantsArgs};

use crate::{conformance::PROGRAM, workspace_root};

/// Runs it. Exit code 0 when every deviant is caught, 1 when one is not, 2 usage, 3 when the suite is not fit to tell.
#[must_use]
pub fn run(args: &DeviantsArgs) -> ExitCode {
    deviants::deviants(args, &workspace_root().join("features"), PROGRAM).into()
}
