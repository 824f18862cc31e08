//! Text that writers share: hostile characters made visible, cutting, wrapping, durations, wire exchanges as lines.
//!
//! Widths are counted in `char`s. That is exact for the suite's own text; keys in wide scripts may make a line a few
//! columns longer, which is harmless.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::model::ScenarioResult;
use crate::wire::WireRecord;

/// Makes every character visible that a terminal, a browser or an XML parser would act upon, swallow or reject:
/// control characters (escape sequences too), text direction marks and non-characters become `\u{…}`. Newlines stay,
/// a tab becomes four spaces.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_hostile(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            c if is_hostile(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// [`visible`] text on one line: newlines become spaces.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).trim_end().replace('\n', " ")
}

/// Cuts `text` to `width` characters; the last one says that something is missing.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.chars().nth(width).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    Cow::Owned(out)
}

/// Breaks `text` at spaces into lines of at most `width` characters. A longer word keeps a line to itself, so that it
/// can still be copied. Line breaks in `text` stay.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if paragraph.chars().count() <= width {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.split(' ') {
            let len = word.chars().count();
            if used > 0 && used + 1 + len > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += len;
        }
        lines.push(line);
    }
    lines
}

/// The last `keep` items, and how many come before them.
pub(crate) fn tail<T>(items: &[T], keep: usize) -> (usize, &[T]) {
    let skipped = items.len().saturating_sub(keep);
    (skipped, items.get(skipped..).unwrap_or(&[]))
}

/// What stands before the line of the record that decided the verdict.
const MARK: &str = "* ";

/// The exchange of a scenario, one line for each record, the one that decided the verdict marked.
pub(crate) fn wire(scenario: &ScenarioResult) -> Vec<String> {
    scenario.transcript.iter().map(|record| wire_line(scenario, record)).collect()
}

fn wire_line(scenario: &ScenarioResult, record: &WireRecord) -> String {
    let decided = scenario.failure.as_ref().and_then(|f| f.record) == Some(record.n);
    format!("{}{}", if decided { MARK } else { "" }, record.line())
}

/// The last `keep` lines of the exchange, with the line that decided the verdict before them where it is not among them,
/// and with what is left out in brackets. `rest` names the file that holds everything.
pub(crate) fn wire_tail(scenario: &ScenarioResult, keep: usize, rest: &str) -> Vec<String> {
    let (before, last) = tail(&scenario.transcript, keep);
    let mut lines = Vec::new();
    let decisive = scenario.failure.as_ref().and_then(|f| f.record);
    let place = scenario.transcript.iter().take(before).position(|record| Some(record.n) == decisive);
    match place.and_then(|place| Some((place, scenario.transcript.get(place)?))) {
        Some((place, record)) => {
            if place > 0 {
                lines.push(format!("({} before this: see {rest})", plural(place, "line")));
            }
            lines.push(wire_line(scenario, record));
            if before > place + 1 {
                lines.push(format!("({} between)", plural(before - place - 1, "line")));
            }
        }
        None if before > 0 => lines.push(format!("({} before these: see {rest})", plural(before, "line"))),
        None => {}
    }
    lines.extend(last.iter().map(|record| wire_line(scenario, record)));
    if lines.iter().any(|line| line.starts_with(MARK)) {
        lines.push(format!("({} decided the verdict)", MARK.trim()));
    }
    lines
}

/// Milliseconds as seconds, such as `1.234 s`.
pub(crate) fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// `1 scenario`, `2 scenarios`.
pub(crate) fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `1/2`; a dash for a part of nothing.
pub(crate) fn ratio(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{part}/{whole}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("a\u{1b}[31mb\r\u{7}\tc\nd"), "a\\u{1b}[31mb\\u{d}\\u{7}    c\nd");
        assert_eq!(visible("\u{202e}\u{ffff}\u{9b}"), "\\u{202e}\\u{ffff}\\u{9b}");
        assert!(matches!(visible("schlüssel 鍵 مفتاح\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn cutting_marks_what_is_missing_and_never_splits_a_character() {
        assert_eq!(cut("鍵鍵鍵", 3), "鍵鍵鍵");
        assert_eq!(cut("鍵鍵鍵", 2), "鍵…");
        assert_eq!(cut("ab", 0), "…");
    }

    #[test]
    fn wrapping_keeps_every_word_and_line_break() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a\n\nmuch-too-long b", 5), ["a", "", "much-too-long", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn the_tail_says_how_much_it_leaves_out() {
        assert_eq!(tail(&[1, 2, 3], 2), (1, &[2, 3][..]));
        assert_eq!(tail(&[1], 2), (0, &[1][..]));
    }
}
