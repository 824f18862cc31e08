//! The report as plain text for a terminal or a CI log.

use std::path::PathBuf;

use crate::model::{Report, ScenarioResult};
use crate::requirement::RequirementStatus;
use crate::score::Score;
use crate::summary;
use crate::text::{cut, one_line, plural, ratio, seconds, tail, visible, wire_tail, wrap};
use crate::verdict::{ExitCode, Verdict};

/// How to write.
#[derive(Debug, Clone)]
pub struct Options {
    /// Columns of the terminal. `None` (a file, a CI log) cuts and wraps nothing.
    pub width: Option<usize>,
    /// Whether to colour. The caller knows whether it writes to a terminal and what `NO_COLOR` says.
    pub color: bool,
    /// How many of the last wire lines a failure shows; the files hold all.
    pub transcript_lines: usize,
    /// Where the reports were written, as [`crate::write_all`] returns it.
    pub reports: Vec<PathBuf>,
}

impl Default for Options {
    /// No width, no colour, 40 wire lines, no files.
    fn default() -> Self {
        Options { width: None, color: false, transcript_lines: 40, reports: Vec::new() }
    }
}

/// Widths below this are treated as this: the table needs some room.
const MIN_WIDTH: usize = 60;

/// Labels of the details of a failure are padded to this.
const LABEL: usize = 10;

/// Renders the whole report: what ran, the table by checklist item, everything that did not pass, counts, outcome.
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page { out: String::new(), options };
    page.opening(report);
    page.table(report);
    page.scenarios(report);
    page.stale(report);
    page.closing(report);
    page.out
}

#[derive(Clone, Copy)]
enum Style {
    Bold,
    Good,
    Bad,
    Warn,
}

struct Page<'a> {
    out: String,
    options: &'a Options,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if !self.options.color {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warn => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Columns left after `indent`; no limit when the width is unknown.
    fn room(&self, indent: usize) -> usize {
        self.options.width.map_or(usize::MAX, |w| w.max(MIN_WIDTH) - indent)
    }

    fn opening(&mut self, report: &Report) {
        let target = match &report.target.service_url {
            Some(url) => format!("{} {}", report.target.kind.as_str(), one_line(url)),
            None => report.target.kind.as_str().to_owned(),
        };
        let text = format!(
            "{} {}: client {} {}, target {target}, profile {}, seed {}",
            one_line(&report.tool.name),
            one_line(&report.tool.version),
            one_line(&report.client.name),
            one_line(&report.client.version),
            one_line(&report.profile),
            report.seed,
        );
        for line in wrap(&text, self.room(0)) {
            self.line(&line);
        }
        self.line("");
    }

    fn table(&mut self, report: &Report) {
        let (rows, hidden) = summary::shown_rows(report);
        let counts = report.counts();
        let proven = report.requirements.iter().filter(|r| r.status == RequirementStatus::Proven).count();
        let items: Vec<String> = rows.iter().map(|r| item_name(&r.item)).collect();
        let titles: Vec<String> = rows.iter().map(|r| one_line(&r.title)).collect();
        let item_width = widest(items.iter(), 5);
        // Two gaps of two columns, and the three columns on the right with theirs.
        let fixed = item_width + 2 + 2 + "Scenarios  Requirements  could not run".len();
        let title_width = widest(titles.iter(), 5).min(self.room(0).saturating_sub(fixed).max(10));
        let columns = |item: &str, title: &str, scenarios: &str, requirements: &str| {
            let title = cut(title, title_width);
            format!("{item:<item_width$}  {title:<title_width$}  {scenarios:>9}  {requirements:>12}")
        };
        let head = columns("Item", "Title", "Scenarios", "Requirements") + "  Result";
        let head = self.paint(Style::Bold, &head);
        self.line(&head);
        for ((row, item), title) in rows.iter().zip(&items).zip(&titles) {
            let cells =
                columns(item, title, &ratio(row.passed, row.scenarios), &ratio(row.proven, row.requirements));
            let result = match row.result() {
                text @ "passes" => self.paint(Style::Good, text),
                text @ "fails" => self.paint(Style::Bad, text),
                text @ "no scenario" => text.to_owned(),
                text => self.paint(Style::Warn, text),
            };
            self.line(&format!("{cells}  {result}"));
        }
        let scenarios = ratio(counts.pass, counts.total);
        let total = columns("Total", "", &scenarios, &ratio(proven, report.requirements.len()));
        self.line(&total);
        if hidden > 0 {
            self.line(&format!("({} without a selected scenario not shown)", plural(hidden, "item")));
        }
    }

    /// Everything that did not pass, the gravest first; full details where someone has to act.
    fn scenarios(&mut self, report: &Report) {
        let pick = |test: &dyn Fn(&ScenarioResult) -> bool| -> Vec<&ScenarioResult> {
            report.scenarios.iter().filter(|s| test(s)).collect()
        };
        let failures = pick(&|s| report.counts_against(s));
        let harness = pick(&|s| s.verdict == Verdict::HarnessError);
        let could_not_run = pick(&|s| s.verdict == Verdict::CouldNotRun);
        let known = pick(&|s| s.verdict == Verdict::KnownFailure);
        let unsupported = pick(&|s| s.verdict == Verdict::Unsupported && !report.counts_against(s));
        self.section(report, "Failures", Style::Bad, &failures, true);
        self.section(report, "Harness errors", Style::Bad, &harness, true);
        self.section(report, "Could not run", Style::Warn, &could_not_run, false);
        self.section(report, "Known failures", Style::Warn, &known, false);
        self.section(report, "Not offered by the client", Style::Warn, &unsupported, false);
    }

    fn section(
        &mut self,
        report: &Report,
        title: &str,
        style: Style,
        scenarios: &[&ScenarioResult],
        details: bool,
    ) {
        if scenarios.is_empty() {
            return;
        }
        self.line("");
        let title = self.paint(Style::Bold, &format!("{title} ({})", scenarios.len()));
        self.line(&title);
        for scenario in scenarios {
            if details {
                self.line("");
            }
            let headline = summary::headline(report, scenario);
            let lines = wrap(&visible(&headline), self.room(2));
            for (n, line) in lines.iter().enumerate() {
                let text = if n == 0 { self.paint(style, line) } else { format!("  {line}") };
                self.line(&text);
            }
            self.detail("scenario", &[format!("{}: {}", one_line(&scenario.id), one_line(&scenario.name))]);
            if let (Verdict::KnownFailure, Some(reason)) = (scenario.verdict, &scenario.reason) {
                self.detail("listed as", &[one_line(reason)]);
            }
            if details {
                self.details(scenario);
            }
        }
    }

    fn details(&mut self, scenario: &ScenarioResult) {
        match &scenario.failure {
            Some(failure) => {
                self.detail("step", &[one_line(&failure.step)]);
                self.detail("at", &[one_line(&failure.location)]);
            }
            None => self.detail("at", &[format!("{}:{}", one_line(&scenario.feature), scenario.line)]),
        }
        let wire = wire_tail(scenario, self.options.transcript_lines, "report.json");
        self.cut_lines("wire", &wire);
        self.tail("stderr", "report.json", &scenario.stderr_tail);
        // Whole and on one line however long it is: it is there to be copied.
        self.line(&format!("  {:<LABEL$}{}", "replay", visible(&scenario.replay)));
    }

    /// A labelled detail, wrapped below itself.
    fn detail(&mut self, label: &str, texts: &[String]) {
        let room = self.room(2 + LABEL);
        let lines: Vec<String> = texts.iter().flat_map(|t| wrap(t, room)).collect();
        self.labelled(label, &lines);
    }

    /// The last lines of an exchange, each cut to the width.
    fn tail(&mut self, label: &str, rest: &str, lines: &[String]) {
        let (before, last) = tail(lines, self.options.transcript_lines);
        let mut shown = Vec::new();
        if before > 0 {
            shown.push(format!("({} before these: see {rest})", plural(before, "line")));
        }
        shown.extend_from_slice(last);
        self.cut_lines(label, &shown);
    }

    fn cut_lines(&mut self, label: &str, lines: &[String]) {
        let room = self.room(2 + LABEL);
        let shown: Vec<String> = lines.iter().map(|line| cut(&one_line(line), room).into_owned()).collect();
        self.labelled(label, &shown);
    }

    fn labelled(&mut self, label: &str, lines: &[String]) {
        for (n, line) in lines.iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            self.line(&format!("  {label:<LABEL$}{line}"));
        }
    }

    fn stale(&mut self, report: &Report) {
        if report.stale_known_failures.is_empty() {
            return;
        }
        self.line("");
        let title = format!("The known-failures list is stale ({})", report.stale_known_failures.len());
        let title = self.paint(Style::Bold, &title);
        self.line(&title);
        for stale in &report.stale_known_failures {
            let text = format!("{}: {}", one_line(&stale.scenario), one_line(&stale.problem));
            for line in wrap(&text, self.room(2)) {
                self.line(&format!("  {line}"));
            }
        }
    }

    fn closing(&mut self, report: &Report) {
        self.line("");
        let scenarios = plural(report.counts().total, "scenario");
        self.labelled_wrapped("Scenarios", &format!("{scenarios}: {}", summary::scenario_counts(report)));
        if let Some(chance) = summary::by_chance(report) {
            self.labelled_wrapped("By chance", &chance);
        }
        if !report.requirements.is_empty() {
            let requirements = plural(report.requirements.len(), "requirement");
            let text = format!("{requirements}: {}", summary::requirement_counts(report));
            self.labelled_wrapped("Coverage", &text);
        }
        self.labelled_wrapped("Score", &Score::of(report).to_string());
        for left_out in summary::left_out(report, one_line) {
            self.labelled_wrapped("Left out", &left_out);
        }
        self.labelled_wrapped("Time", &seconds(report.duration_ms));
        for (n, path) in self.options.reports.iter().enumerate() {
            let label = if n == 0 { "Reports" } else { "" };
            self.line(&format!("{label:<12}{}", visible(&path.display().to_string())));
        }
        let code = report.exit_code();
        let style = match code {
            ExitCode::Conforms => Style::Good,
            ExitCode::DoesNotConform | ExitCode::Usage | ExitCode::Harness => Style::Bad,
        };
        let outcome = self.paint(style, &summary::outcome(report));
        self.line(&format!("{:<12}{outcome}, exit code {}", "Outcome", code.code()));
    }

    fn labelled_wrapped(&mut self, label: &str, text: &str) {
        for (n, line) in wrap(text, self.room(12)).iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            self.line(&format!("{label:<12}{line}"));
        }
    }
}

fn item_name(item: &str) -> String {
    if item.is_empty() { "(none)".to_owned() } else { one_line(item) }
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>, least: usize) -> usize {
    texts.map(|t| t.chars().count()).max().unwrap_or(0).max(least)
}
