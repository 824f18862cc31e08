//! How a step judges: it ends the scenario with what it found.
//!
//! cucumber's step functions report by panicking, and its `Result` support keeps no more of an error than its text. So
//! a finding travels as a panic payload of our own type, which the driver takes apart again. The payload skips the
//! panic hook, so that nothing is printed.

use std::fmt;
use std::panic::resume_unwind;

/// What a step found. Anything else that a step ends with (an `Err`, another panic) is a fault of the suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The client did not do what a requirement asks for.
    Broken {
        /// What the step asserts of that which the scenario cites; the first one is blamed. Empty for a crash or the
        /// like, which leaves all that the scenario cites in doubt.
        requirements: Vec<String>,
        /// What was expected and what was seen.
        message: String,
    },
    /// The client does not offer what the step asks for.
    Unsupported {
        /// What it does not offer.
        capability: String,
    },
    /// The environment does not let the scenario go on.
    CouldNotRun {
        /// What is missing.
        reason: String,
    },
}

impl Finding {
    /// Ends the step with this finding.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// A fault of the suite or of its environment, as steps return it with `?`. It says nothing about the client.
pub struct Trouble(pub String);

/// What a step function returns.
pub type Step = Result<(), Trouble>;

impl Trouble {
    /// A fault in words.
    pub fn new(message: &str) -> Trouble {
        Trouble(message.to_owned())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// `Trouble` is no `Error` itself, so that every error converts into it with its causes.
impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        Trouble(text)
    }
}
