//! Lines of bounded length from a stream: whoever writes one without end costs no more memory than one may be long.

use std::io::{self, BufRead, Read as _};

/// How many bytes are kept of a line that is too long.
const BEGINNING: usize = 512;

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end. Bytes that are no UTF-8 are replaced.
    Text(String),
    /// Longer than the limit; how it begins. The rest of the stream is of no use.
    TooLong(String),
    /// The stream is over.
    End,
}

pub(super) fn read(stream: &mut impl BufRead, limit: usize) -> io::Result<Line> {
    let mut bytes = Vec::new();
    // One byte for the end of the line, one more to see that it is too long.
    stream.take(limit as u64 + 2).read_until(b'\n', &mut bytes)?;
    let ended = bytes.last() == Some(&b'\n');
    if ended {
        bytes.pop();
    }
    if bytes.len() > limit {
        bytes.truncate(BEGINNING);
        return Ok(Line::TooLong(String::from_utf8_lossy(&bytes).into_owned()));
    }
    if bytes.is_empty() && !ended {
        return Ok(Line::End);
    }
    Ok(Line::Text(String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_up_to_the_limit() {
        let mut stream: &[u8] = b"one\r\n\nthree\nfour";
        let text = |t: &str| Line::Text(t.to_owned());
        for expected in [text("one"), text(""), text("three"), text("four"), Line::End] {
            assert_eq!(read(&mut stream, 5).unwrap(), expected);
        }
        let mut stream: &[u8] = b"12345\n123456\n";
        assert_eq!(read(&mut stream, 5).unwrap(), text("12345"));
        assert_eq!(read(&mut stream, 5).unwrap(), Line::TooLong("123456".to_owned()));
    }
}
