//! Runs a program, passes on what it prints, and keeps the last lines: of a log that is cut they are what is left.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are kept.
const KEPT: usize = 45;
/// How much of a line is kept, in characters.
const WIDTH: usize = 300;
/// What a program leaves running may hold its output open; that is not waited for.
const STRAGGLERS: Duration = Duration::from_secs(2);

type Lines = Arc<Mutex<VecDeque<String>>>;

/// Runs a program to its end and gives its status and its last lines, of both outputs as they came; both go to standard
/// output. At a terminal it prints for itself, in colour, and nothing is kept: there one can look back.
///
/// # Errors
/// When it does not start.
pub(crate) fn run(command: &mut Command) -> io::Result<(ExitStatus, Vec<String>)> {
    if io::stdout().is_terminal() {
        return Ok((command.status()?, Vec::new()));
    }
    keep(command)
}

fn keep(command: &mut Command) -> io::Result<(ExitStatus, Vec<String>)> {
    // One pipe for both, so that lines stay in the order in which they were written.
    let (output, input) = io::pipe()?;
    let mut child = command.stdout(input.try_clone()?).stderr(input).spawn()?;
    // The command keeps its ends of the pipe, and the pipe ends with the last of them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let lines = Lines::default();
    let ends = pass_on(output, Arc::clone(&lines));
    let status = child.wait()?;
    let _ = ends.recv_timeout(STRAGGLERS);
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
    Ok((status, lines))
}

/// Prints and keeps what comes; says when nothing comes any more.
fn pass_on(from: impl Read + Send + 'static, lines: Lines) -> Receiver<()> {
    let (ended, ends) = mpsc::channel();
    thread::spawn(move || {
        let (mut from, mut to) = (BufReader::new(from), io::stdout());
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            // A reader of ours that went away is nobody to report to; the program is read to its end all the same.
            let _ = to.write_all(&line).and_then(|()| to.flush());
            let text = String::from_utf8_lossy(&line);
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push_back(text.trim_end().chars().take(WIDTH).collect());
            if lines.len() > KEPT {
                lines.pop_front();
            }
            drop(lines);
            line.clear();
        }
        let _ = ended.send(());
    });
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> (ExitStatus, Vec<String>) {
        keep(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn the_last_lines_of_both_outputs_are_kept() {
        let (status, lines) = sh("seq 60; echo reason >&2; exit 3");
        assert_eq!(status.code(), Some(3));
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines[KEPT - 2..], ["60", "reason"]);
    }

    #[test]
    fn a_long_line_is_cut_and_one_without_an_end_is_kept() {
        let (status, lines) = sh("printf '%01000d\\nlast' 7");
        assert!(status.success());
        assert_eq!(lines, ["0".repeat(WIDTH), "last".to_owned()]);
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for() {
        let (status, lines) = sh("echo here; (exec sleep 30) & echo $!");
        assert!(status.success());
        assert_eq!(lines.first().map(String::as_str), Some("here"));
        let left = lines.get(1).expect("the number of the process that is left");
        assert!(Command::new("kill").arg(left).status().unwrap().success(), "it still ran");
    }
}
