//! How a divergence is told: short enough for the end of a log that keeps nothing else, and with all that repeats it.

use std::fmt::Write as _;
use std::path::Path;

use stc_runner::output::say;

use super::compare::Divergence;
use super::op::{self, Op};
use super::run::Case;
use super::shrink::Shrunk;

/// How many differences of a step are shown.
const SHOWN: usize = 5;

/// Tells of a sequence that diverged among others, and not in so many runs by itself.
pub(super) fn once(case: &Case, found: &Divergence, times: usize) {
    let Case { name, .. } = case;
    let (step, differences) = (found.step, differences(found));
    say(format_args!(
        "\nsequence {name} diverged in step {step}, and did not when it ran by itself, {times} times:\n{differences}"
    ));
}

/// A divergence after shrinking; `file` holds what is left of the sequence.
pub(super) fn shrunk(case: &Case, shrunk: &Shrunk, file: &Path) -> String {
    let Shrunk { ops, divergence } = shrunk;
    let all: Vec<Op> = ops.iter().cloned().chain(op::ending(ops)).collect();
    // What would come after it does not matter.
    let script = op::script(all.get(..=divergence.step).unwrap_or(&all));
    format!(
        "\nsequence {} diverges (--replay {} runs all of it, --replay {} these {} of its {} steps):\n{script}step {} \
         differs:\n{}",
        case.name,
        case.name,
        file.display(),
        ops.len(),
        case.ops.len(),
        divergence.step,
        differences(divergence).trim_end()
    )
}

fn differences(divergence: &Divergence) -> String {
    let all = divergence.to_string();
    let mut shown: String = all.lines().take(SHOWN).map(|line| format!("{line}\n")).collect();
    let more = all.lines().count().saturating_sub(SHOWN);
    if more > 0 {
        // Writing to a string does not fail.
        let _ = writeln!(shown, "  and {more} more");
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::compare::Difference;
    use super::super::op::Pick;
    use super::super::trace::Place;
    use super::*;

    #[test]
    fn a_report_names_the_sequence_the_steps_and_a_few_differences() {
        let ops = vec![
            Op::Create { topic: 0, segments: 2 },
            Op::Split { topic: 0, segment: Pick::Active(0) },
            Op::Receive,
        ];
        let difference = |n| Difference {
            place: Place::Send(n),
            simulated: Some(json!("ok")),
            real: Some(json!("Timeout")),
        };
        let divergence = Divergence { step: 1, differences: (0..9).map(difference).collect() };
        let case = Case { name: "77:12".to_owned(), ops: ops.clone() };
        let text = shrunk(&case, &Shrunk { ops, divergence }, Path::new("left.json"));
        assert!(text.contains("--replay 77:12"), "{text}");
        assert!(text.contains("--replay left.json these 3 of its 3 steps"), "{text}");
        assert!(text.contains("1. split active[0] of t0\nstep 1 differs"), "{text}");
        assert!(text.contains("send 4: simulator \"ok\", real broker \"Timeout\""), "{text}");
        assert!(!text.contains("send 5"), "{text}");
        assert!(text.ends_with("and 4 more"), "{text}");
    }
}
