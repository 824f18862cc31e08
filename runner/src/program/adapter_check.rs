//! `stc adapter-check`: is my adapter itself sound?

use clap::Args;
use stc_reports::ExitCode;

use crate::adapter::check::{Sound, check};
use crate::cli::adapter_words;
use crate::output::{complain, say};

/// The `adapter-check` command line.
#[derive(Debug, Args)]
pub(super) struct AdapterCheck {
    /// The adapter: a command line, or the name of a folder in adapters/
    #[arg(long, value_name = "COMMAND")]
    client: String,
}

/// Exit codes: 0 sound, 1 not, 2 usage, 3 the adapter does not start or introduce itself.
pub(super) fn run(args: &AdapterCheck) -> ExitCode {
    let words = match adapter_words(&args.client) {
        Ok(words) => words,
        Err(e) => {
            complain(format_args!("error: --client {:?}: {e}", args.client));
            return ExitCode::Usage;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let checked = match runtime {
        Ok(runtime) => runtime.block_on(check(words)),
        Err(e) => {
            complain(format_args!("error: {e}"));
            return ExitCode::Harness;
        }
    };
    match checked {
        Ok(checks) => {
            checks.iter().for_each(say);
            let unsound = checks.iter().any(|c| matches!(c.sound, Sound::No(_)));
            if unsound { ExitCode::DoesNotConform } else { ExitCode::Conforms }
        }
        Err(e) => {
            complain(format_args!("error: {e}"));
            ExitCode::Harness
        }
    }
}
