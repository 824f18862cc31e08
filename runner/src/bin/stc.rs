//! `stc`: judges a client of Scalable Topics, and helps to write one.

// println! panics when the reader is gone; `stc_runner::output` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use stc_runner::program;

fn main() -> ExitCode {
    program::main()
}
