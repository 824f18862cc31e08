//! Which scenarios of the suite a run is about.

use cucumber::gherkin::tagexpr::TagOperation;
use thiserror::Error;

use crate::client::paired::PairedFactory;
use crate::feature::{Need, Scenario};
use crate::nearest::did_you_mean;

/// How long a tag expression may be, in bytes. Each parenthesis and each `not` takes stack to parse.
const LONGEST_EXPRESSION: usize = 1024;

/// What the command line asks for. Empty lists ask for everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Tag expression such as `@C2 and not @needs-control`.
    pub tags: Option<String>,
    /// Ids of scenarios, or of outlines.
    pub scenarios: Vec<String>,
    /// Ids of scenarios, or of outlines, that are not wanted.
    pub skip: Vec<String>,
    /// Only scenarios that two clients can share.
    pub paired: bool,
}

/// Why nothing can be run. The command line exits with 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// The tag expression does not parse.
    #[error("--tags {expression:?}: {message}")]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        message: String,
    },
    /// A tag in the expression that no scenario has.
    #[error("--tags: no scenario has the tag @{tag}{hint}")]
    UnknownTag {
        /// The tag, without `@`.
        tag: String,
        /// Which tag may be meant, in words; empty where none is near.
        hint: String,
    },
    /// A name that no scenario has.
    #[error("{option}: there is no scenario {name}{hint}")]
    UnknownScenario {
        /// The option that names it.
        option: &'static str,
        /// The name.
        name: String,
        /// Which scenario may be meant, in words; empty where none is near.
        hint: String,
    },
    /// The patterns match scenarios, but none matches all of them.
    #[error("no scenario is selected")]
    Empty,
}

impl Selection {
    /// Whether only a part of the suite is asked for.
    pub fn is_filtered(&self) -> bool {
        self.tags.is_some() || !self.scenarios.is_empty() || !self.skip.is_empty() || self.paired
    }

    /// The scenarios that are asked for, in their order.
    ///
    /// # Errors
    /// [`SelectionError`]; a pattern that matches nothing is named, because it is a typing error more often than not.
    pub fn select<'a>(&self, all: &'a [Scenario]) -> Result<Vec<&'a Scenario>, SelectionError> {
        let expression = self.tags.as_deref().map(parse).transpose()?;
        if let Some(unknown) =
            expression.iter().flat_map(tags_of).find(|tag| !all.iter().any(|s| has(s, tag)))
        {
            let tags = all.iter().flat_map(|s| &s.tags).map(String::as_str);
            let hint = did_you_mean(unknown, tags, "@");
            return Err(SelectionError::UnknownTag { tag: unknown.to_owned(), hint });
        }
        for (option, names) in [("--scenario", &self.scenarios), ("--skip", &self.skip)] {
            if let Some(unknown) = names.iter().find(|name| !all.iter().any(|s| s.is_called(name))) {
                let hint = did_you_mean(unknown, all.iter().flat_map(Scenario::names), "");
                return Err(SelectionError::UnknownScenario { option, name: unknown.clone(), hint });
            }
        }
        let selected: Vec<&Scenario> = all
            .iter()
            .filter(|s| expression.as_ref().is_none_or(|e| holds(e, s)))
            .filter(|s| self.scenarios.is_empty() || self.scenarios.iter().any(|name| s.is_called(name)))
            .filter(|s| !self.paired || PairedFactory::fits(s))
            .filter(|s| !self.skip.iter().any(|name| s.is_called(name)))
            .collect();
        if selected.is_empty() { Err(SelectionError::Empty) } else { Ok(selected) }
    }
}

/// The needs of a scenario that a target does not meet, as a sentence for the report; `None` when it meets all.
pub fn unmet(scenario: &Scenario, offers: &[Need], target: &str) -> Option<String> {
    let missing: Vec<&str> = scenario
        .needs
        .iter()
        .filter(|need| !offers.contains(need))
        .map(|need| match need {
            Need::Control => "control of the cluster",
            Need::Faults => "faults",
            Need::Journal => "the wire journal",
            Need::VirtualTime => "virtual time",
        })
        .collect();
    (!missing.is_empty())
        .then(|| format!("needs {}, which target {target} does not offer", missing.join(" and ")))
}

fn parse(expression: &str) -> Result<TagOperation, SelectionError> {
    let error = |message: String| SelectionError::Expression { expression: expression.to_owned(), message };
    if expression.len() > LONGEST_EXPRESSION {
        let shown: String = expression.chars().take(40).chain("…".chars()).collect();
        let message = format!("it is longer than {LONGEST_EXPRESSION} bytes");
        return Err(SelectionError::Expression { expression: shown, message });
    }
    expression
        .trim()
        .parse()
        .map_err(|e| error(format!("{e}; write tags with @, joined by `and`, `or`, `not` and parentheses")))
}

fn tags_of(operation: &TagOperation) -> Vec<&str> {
    match operation {
        TagOperation::And(a, b) | TagOperation::Or(a, b) => {
            let mut tags = tags_of(a);
            tags.extend(tags_of(b));
            tags
        }
        TagOperation::Not(a) => tags_of(a),
        TagOperation::Tag(tag) => vec![tag],
    }
}

fn holds(operation: &TagOperation, scenario: &Scenario) -> bool {
    match operation {
        TagOperation::And(a, b) => holds(a, scenario) && holds(b, scenario),
        TagOperation::Or(a, b) => holds(a, scenario) || holds(b, scenario),
        TagOperation::Not(a) => !holds(a, scenario),
        TagOperation::Tag(tag) => has(scenario, tag),
    }
}

fn has(scenario: &Scenario, tag: &str) -> bool {
    scenario.tags.iter().any(|t| t == tag)
}
