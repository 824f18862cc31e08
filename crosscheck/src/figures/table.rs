//! Medians and spread as a table in Markdown.

use std::fmt::Write;

use super::{
    broker::Target,
    client::Kind,
    plan::{Figure, Measured},
};

/// What a line says, and how far ahead the simulator should be.
struct Line {
    figure: Figure,
    title: &'static str,
    unit: &'static str,
    /// Whether more is better.
    more: bool,
    /// How many times better the simulator should be with the reference client; with the Java client: ahead.
    goal: f64,
}

const LINES: [Line; 6] = [
    Line {
        figure: Figure::Start,
        title: "process start to first acknowledged message",
        unit: "ms",
        more: false,
        goal: 100.0,
    },
    Line { figure: Figure::Memory, title: "memory when idle", unit: "MiB", more: false, goal: 20.0 },
    Line {
        figure: Figure::Produced,
        title: "messages sent a second, batched",
        unit: "",
        more: true,
        goal: 1.5,
    },
    Line { figure: Figure::Consumed, title: "messages received a second", unit: "", more: true, goal: 1.5 },
    Line {
        figure: Figure::LatencyMedian,
        title: "unbatched synchronous send, p50",
        unit: "ms",
        more: false,
        goal: 5.0,
    },
    Line {
        figure: Figure::LatencyTail,
        title: "unbatched synchronous send, p99",
        unit: "ms",
        more: false,
        goal: 1.0,
    },
];

/// The table: the median of each line, the smallest and the largest value in brackets.
#[must_use]
pub fn markdown(measured: &Measured) -> String {
    let mut text = String::from(
        "| Figure | Client | Simulator | Pulsar 5.0.1 | Simulator ahead | Goal |\n|---|---|---|---|---|---|\n",
    );
    for line in LINES {
        for kind in [Kind::Reference, Kind::Java] {
            let values = |target| measured.get(&(line.figure, kind, target)).and_then(|all| Summary::of(all));
            let (Some(simulator), Some(released)) = (values(Target::Simulator), values(Target::Released))
            else {
                continue;
            };
            let times = match line.more {
                true => simulator.median / released.median,
                false => released.median / simulator.median,
            };
            let goal = if kind == Kind::Reference { line.goal } else { 1.0 };
            let reached = if times >= goal { "reached" } else { "missed" };
            let goal = if goal > 1.0 { format!("{goal}×") } else { "ahead".to_owned() };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {}× | {goal}, {reached} |",
                line.title,
                kind.name(),
                simulator.show(line.unit),
                released.show(line.unit),
                number(times),
            );
        }
    }
    text
}

struct Summary {
    median: f64,
    min: f64,
    max: f64,
}

impl Summary {
    fn of(values: &[f64]) -> Option<Summary> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((values.len() - 1) / 2)?, values.get(values.len() / 2)?);
        Some(Summary { median: (low + high) / 2.0, min, max })
    }

    fn show(&self, unit: &str) -> String {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{}{unit} ({} to {})", number(self.median), number(self.min), number(self.max))
    }
}

/// Three digits, or all of those before the point.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_once('.').map_or((plain.as_str(), None), |(w, r)| (w, Some(r)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0834, 2.34567, 23.4567, 234.567, 1_234_567.8].map(number);
        assert_eq!(shown, ["0.083", "2.35", "23.5", "235", "1,234,568"]);
    }

    #[test]
    fn the_median_of_an_even_count_is_between_the_middle_two() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 8.0]).unwrap();
        assert_eq!((summary.median, summary.min, summary.max), (3.0, 1.0, 8.0));
        assert!(Summary::of(&[]).is_none());
    }

    #[test]
    fn a_goal_that_is_missed_is_said_to_be() {
        let mut measured = Measured::new();
        for kind in [Kind::Reference, Kind::Java] {
            measured.insert((Figure::Produced, kind, Target::Simulator), vec![130.0]);
            measured.insert((Figure::Produced, kind, Target::Released), vec![100.0]);
        }
        let text = markdown(&measured);
        assert!(text.contains("| 130 (130 to 130) | 100 (100 to 100) | 1.30× | 1.5×, missed |"), "{text}");
        assert!(text.contains("| 1.30× | ahead, reached |"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
