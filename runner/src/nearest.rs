//! What somebody may have meant by a name that there is not.

/// How many names are suggested.
const SUGGESTED: usize = 3;

/// A part of a name that is shorter than this is a part of too many.
const SHORTEST_PART: usize = 3;

/// `; did you mean A or B?` with the names that are nearest to this one, the nearest first, each with `prefix` before it;
/// nothing where none is near.
pub(crate) fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>, prefix: &str) -> String {
    let wanted = name.to_lowercase();
    let far = |other: &str| {
        let other = other.to_lowercase();
        let changes = changes(&wanted, &other);
        let part = wanted.len() >= SHORTEST_PART && other.contains(&wanted);
        (part || changes * 3 <= wanted.chars().count()).then_some((changes, part))
    };
    let mut near: Vec<((usize, bool), &str)> =
        names.into_iter().filter_map(|other| Some((far(other)?, other))).collect();
    near.sort_unstable();
    near.dedup();
    let near: Vec<String> =
        near.into_iter().map(|(_, name)| format!("{prefix}{name}")).take(SUGGESTED).collect();
    match near.as_slice() {
        [] => String::new(),
        [only] => format!("; did you mean {only}?"),
        [others @ .., last] => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// How many characters have to be put in, taken out or replaced to make one text of the other.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (n, c) in one.chars().enumerate() {
        let mut left = n + 1;
        let mut above_left = n;
        let mut next = vec![left];
        for (o, above) in other.iter().zip(row.iter().skip(1)) {
            left = (above_left + usize::from(*o != c)).min(above + 1).min(left + 1);
            above_left = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
            ("é", "e", 1),
        ] {
            assert_eq!(changes(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn what_is_near_is_suggested_the_nearest_first() {
        let names = ["C2-lazy-producers", "C2-one-producer-per-segment", "C8-receive", "C2", "IMPL-2.1"];
        let suggested = |name| did_you_mean(name, names, "");
        assert_eq!(suggested("C2-lasy-producer"), "; did you mean C2-lazy-producers?");
        assert_eq!(suggested("lazy"), "; did you mean C2-lazy-producers?");
        assert_eq!(suggested("producer"), "; did you mean C2-lazy-producers or C2-one-producer-per-segment?");
        assert_eq!(suggested("c2"), "; did you mean C2?");
        assert_eq!(suggested("C99"), "");
        assert_eq!(suggested(""), "");
        assert_eq!(
            did_you_mean("ab1", ["ab4", "ab3", "ab2", "ab5"], "@"),
            "; did you mean @ab2, @ab3 or @ab4?"
        );
    }
}
