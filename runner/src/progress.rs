//! How far a run is: a bar on a terminal, plain lines in a log, both on standard error, so that no output for machines
//! is touched.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stc_reports::{ScenarioResult, Verdict};

use crate::output::complain;

/// Told of every scenario that has ended.
pub struct Progress {
    total: usize,
    done: AtomicUsize,
    failed: AtomicUsize,
    form: Form,
}

enum Form {
    Silent,
    Bar(ProgressBar),
    Lines,
}

impl Progress {
    /// Of a run whose progress interests nobody.
    pub fn silent() -> Progress {
        Progress::new(0, Form::Silent)
    }

    /// Of a run of `total` scenarios, in the form that suits standard error.
    pub fn on_stderr(total: usize) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::new(total, Form::Lines);
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:40} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Progress::new(total, Form::Bar(bar))
    }

    fn new(total: usize, form: Form) -> Progress {
        Progress { total, done: AtomicUsize::new(0), failed: AtomicUsize::new(0), form }
    }

    /// One more scenario has ended.
    pub fn ended(&self, result: &ScenarioResult) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let bad = matches!(result.verdict, Verdict::Fail | Verdict::HarnessError);
        let failed = self.failed.fetch_add(usize::from(bad), Ordering::Relaxed) + usize::from(bad);
        match &self.form {
            Form::Silent => {}
            Form::Bar(bar) => {
                bar.inc(1);
                if bad {
                    bar.suspend(|| complain(format_args!("{}: {}", result.verdict, result.id)));
                    bar.set_message(format!("{failed} failed"));
                }
            }
            Form::Lines => {
                if bad {
                    complain(format_args!("{done}/{}  {}: {}", self.total, result.verdict, result.id));
                }
                // A line for each tenth.
                if self.total >= 20 && done * 10 / self.total != (done - 1) * 10 / self.total {
                    complain(format_args!("{done}/{}", self.total));
                }
            }
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}
