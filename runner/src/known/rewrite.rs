//! The list as text: how an entry is written, and how a file is edited entry by entry, so that what people wrote between
//! and inside the entries stays.

use std::collections::BTreeMap;

use super::Entry;

/// An entry as YAML.
pub(super) fn yaml(entry: &Entry) -> String {
    let Entry { scenario, reason, message, by_chance } = entry;
    format!(
        "- scenario: {}\n  reason: {}\n  message: {}\n{}",
        quoted(scenario),
        block(reason).unwrap_or_else(|| quoted(reason)),
        quoted(message),
        if *by_chance { "  by-chance: true\n" } else { "" }
    )
}

/// The text of a file that holds a list, changed so that it holds `entries`. What stands directly above an entry belongs
/// to it and leaves with it; a comment with an empty line below it stays. An entry that changed keeps its lines of comment,
/// and is written anew below them. `None` when the file does not have one entry below the other.
pub(super) fn rewritten(text: &str, entries: &[Entry]) -> Option<String> {
    let (parts, rest) = parts(text)?;
    let mut wanted: BTreeMap<&str, &Entry> = entries.iter().map(|e| (e.scenario.as_str(), e)).collect();
    let mut out = String::new();
    for part in &parts {
        out += part.standing;
        let Some(entry) = wanted.remove(part.entry.scenario.as_str()) else { continue };
        out += part.above;
        if *entry == part.entry {
            out += part.lines;
        } else {
            out.extend(part.comments());
            out += &yaml(entry);
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out.extend(entries.iter().filter(|e| wanted.contains_key(e.scenario.as_str())).map(yaml));
    out += rest;
    if out.trim().is_empty() {
        return Some("[]\n".to_owned());
    }
    // Whatever this overlooks about the form of a file: what is written says what it is to say.
    (read(&out)? == entries).then_some(out)
}

/// An entry of a file, and what stands above it.
struct Part<'a> {
    /// Down to the last empty line above the entry.
    standing: &'a str,
    /// The comments directly above the entry.
    above: &'a str,
    lines: &'a str,
    entry: Entry,
}

impl Part<'_> {
    /// The lines of comment inside the entry. A line that begins like one can also be a line of a text, so each is tried.
    fn comments(&self) -> impl Iterator<Item = String> {
        let lines: Vec<&str> = self.lines.split_inclusive('\n').collect();
        let is_comment = |number: usize| {
            let without = lines.iter().enumerate().filter(|(n, _)| *n != number).map(|(_, line)| *line);
            read(&without.collect::<String>()).is_some_and(|entries| entries == [self.entry.clone()])
        };
        let hashes = lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with('#'));
        let comments: Vec<String> = hashes
            .filter(|(number, _)| is_comment(*number))
            .map(|(_, line)| format!("{}\n", line.trim()))
            .collect();
        comments.into_iter()
    }
}

/// A file, entry by entry, and what stands below the last one. `None` when it has another form.
fn parts(text: &str) -> Option<(Vec<Part<'_>>, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let begin = offset(rest, |line| line.starts_with("- ")).unwrap_or(rest.len());
        let (between, from) = rest.split_at_checked(begin)?;
        let only_comments = |text: &str| text.lines().all(between_entries);
        if from.is_empty() || !only_comments(between) {
            break;
        }
        // To the next entry, without the comments and empty lines above that.
        let first = from.split_inclusive('\n').next().unwrap_or(from).len();
        let (_, below) = from.split_at_checked(first)?;
        let until = offset(below, |line| line.starts_with("- ")).unwrap_or(below.len());
        let (own, _) = below.split_at_checked(until)?;
        let trailing: usize =
            own.split_inclusive('\n').rev().take_while(|line| between_entries(line)).map(str::len).sum();
        let (lines, after) = from.split_at_checked(first + own.len() - trailing)?;
        let empty = between.rmatch_indices("\n\n").next().map_or(0, |(at, _)| at + 2);
        let (standing, above) = between.split_at_checked(empty)?;
        let [entry] = <[Entry; 1]>::try_from(read(lines)?).ok()?;
        parts.push(Part { standing, above, lines, entry });
        rest = after;
    }
    let whole = read(text)?;
    let complete = whole.len() == parts.len() && whole.iter().zip(&parts).all(|(e, part)| *e == part.entry);
    (complete && rest.lines().all(between_entries)).then_some((parts, rest))
}

/// Where the first line that `is` begins.
fn offset(text: &str, is: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// An empty line or a comment that is no part of an entry.
fn between_entries(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn read(text: &str) -> Option<Vec<Entry>> {
    let entries: Option<Vec<Entry>> = serde_saphyr::from_str(text).ok()?;
    Some(entries.unwrap_or_default())
}

/// Lines as people write them, where YAML can have them so.
fn block(text: &str) -> Option<String> {
    let plain = |line: &str| {
        !line.is_empty() && !line.starts_with(' ') && !line.ends_with(' ') && !line.contains(char::is_control)
    };
    (text.contains('\n') && text.split('\n').all(plain))
        .then(|| text.split('\n').fold("|-".to_owned(), |yaml, line| yaml + "\n    " + line))
}

/// A scalar that no reader of YAML takes for anything else: JSON's form of a string is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# What we know.

# Order.
# Two of them.
- scenario: \"A\" # looked at twice
  # why: see ticket
  reason: |-
    one
    # not a comment
  message: \"a\"
- {scenario: B, reason: two, message: b}

# Routing.

- scenario: C
  reason: three
  message: c
# The end.
";

    fn list(entries: &[(&str, &str, &str)]) -> Vec<Entry> {
        let entry = |(scenario, reason, message): &(&str, &str, &str)| Entry {
            scenario: (*scenario).to_owned(),
            reason: (*reason).to_owned(),
            message: (*message).to_owned(),
            by_chance: false,
        };
        entries.iter().map(entry).collect()
    }

    const A: (&str, &str, &str) = ("A", "one\n# not a comment", "a");
    const B: (&str, &str, &str) = ("B", "two", "b");
    const C: (&str, &str, &str) = ("C", "three", "c");

    #[test]
    fn what_did_not_change_stays_as_it_is() {
        assert_eq!(rewritten(FILE, &list(&[A, B, C])).unwrap(), FILE);
        let without_b = rewritten(FILE, &list(&[A, C])).unwrap();
        assert_eq!(without_b, FILE.replace("- {scenario: B, reason: two, message: b}\n", ""));
        let without_a = rewritten(FILE, &list(&[B, C])).unwrap();
        assert!(without_a.starts_with("# What we know.\n\n- {scenario: B"), "{without_a}");
    }

    #[test]
    fn an_entry_that_changed_keeps_its_comments() {
        let changed = rewritten(FILE, &list(&[("A", "one\n# not a comment", "z"), B, C])).unwrap();
        let above = "# What we know.\n\n# Order.\n# Two of them.\n# why: see ticket\n- scenario: \"A\"\n  reason: |-\n";
        assert!(changed.starts_with(above), "{changed}");
        assert_eq!(read(&changed).unwrap()[0].message, "z");
    }

    #[test]
    fn a_new_entry_follows_the_last_one() {
        let more = rewritten(FILE, &list(&[A, B, C, ("D", "four", "d")])).unwrap();
        assert!(
            more.ends_with(
                "  message: c\n- scenario: \"D\"\n  reason: \"four\"\n  message: \"d\"\n# The end.\n"
            ),
            "{more}"
        );
        assert_eq!(
            rewritten("# Nothing yet.\n", &list(&[B])).unwrap(),
            format!("{}# Nothing yet.\n", yaml(&list(&[B])[0]))
        );
    }

    #[test]
    fn nothing_left_is_an_empty_list() {
        assert_eq!(rewritten("- {scenario: B, reason: two, message: b}\n", &[]).unwrap(), "[]\n");
        let comments = rewritten(FILE, &[]).unwrap();
        assert!(comments.contains("# Routing.") && read(&comments).unwrap().is_empty(), "{comments}");
    }

    #[test]
    fn other_forms_are_not_edited() {
        for text in [
            "[]\n",
            "[{scenario: B, reason: two, message: b}]\n",
            "---\n- {scenario: B, reason: two, message: b}\n",
        ] {
            assert_eq!(rewritten(text, &list(&[C])), None, "{text}");
        }
    }
}
