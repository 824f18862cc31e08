//! Printing for programs: a reader that went away (`… | head`) is nobody to report to, and no reason to panic as
//! `println!` does.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Prints a line to standard output.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Prints a line to standard error.
pub fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
