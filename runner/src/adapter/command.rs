//! What `--client` means: a command line, or the name of an adapter in the folder `adapters/`.

use thiserror::Error;

/// Why a command line cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A quote without its second half.
    #[error("a quote is not closed")]
    Quote,
    /// Nothing in it.
    #[error("the command is empty")]
    Empty,
}

/// The words of a command line, as a shell takes it apart: blanks separate, single and double quotes and a backslash
/// keep together. Nothing is expanded.
///
/// # Errors
/// [`CommandError`].
pub fn words(line: &str) -> Result<Vec<String>, CommandError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or(CommandError::Quote)? {
                        end if end == c => break,
                        '\\' if c == '"' => word.extend(characters.next()),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(CommandError::Empty) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let taken = |line| words(line).unwrap();
        assert_eq!(
            taken("java  -jar 'my sdk.jar' --name=\"a b\""),
            ["java", "-jar", "my sdk.jar", "--name=a b"]
        );
        assert_eq!(taken(r#"a\ b "q\"q" '' x"#), ["a b", "q\"q", "", "x"]);
        assert_eq!(words("  "), Err(CommandError::Empty));
        assert_eq!(words("a 'b"), Err(CommandError::Quote));
    }
}
