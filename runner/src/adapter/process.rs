//! A child process that speaks the protocol: its streams, the tail of its standard error, its end.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::lines::{self, Line};

/// How many lines of standard error are kept.
const TAIL: usize = 100;

/// How long a line of standard error may be, in bytes.
const LONGEST: usize = 4096;

/// How long an adapter may take to end after its standard input was closed, before it is killed.
const TO_END: Duration = Duration::from_secs(3);

/// The last lines of a process's standard error.
#[derive(Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Forgets what came so far.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == TAIL {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process. Dropped, it is killed with whatever it started.
pub(super) struct Process {
    child: Arc<Mutex<Child>>,
    pub(super) tail: Tail,
    /// Disconnected once standard error is over.
    said_all: Option<Receiver<()>>,
}

impl Process {
    /// Starts `words`, program first.
    pub(super) fn start(words: &[String]) -> io::Result<(Process, ChildStdin, ChildStdout)> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that a wrapper script and what it starts end together.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a stream of the process is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let tail = Tail::default();
        let kept = tail.clone();
        let (end_of_stderr, said_all) = mpsc::channel();
        let process = Process { child: Arc::new(Mutex::new(child)), tail, said_all: Some(said_all) };
        thread::Builder::new().name("adapter-stderr".to_owned()).spawn(move || {
            keep(stderr, &kept);
            drop(end_of_stderr);
        })?;
        Ok((process, stdin, stdout))
    }

    /// Says in a sentence how the process ended whose output is over, once all that it said before is in the tail.
    pub(super) fn ending(&mut self) -> impl FnOnce() -> String + Send + 'static {
        let child = Arc::clone(&self.child);
        let said_all = self.said_all.take();
        move || match wait(&child, TO_END) {
            Some(status) => {
                // A process that it started may hold the stream open.
                let _ = said_all.map(|said_all| said_all.recv_timeout(TO_END));
                format!("the adapter ended with {status}")
            }
            None => "the adapter closed its standard output and runs on".to_owned(),
        }
    }

    /// Waits for the process to end by itself, but not for long. Whether it did.
    pub(super) fn end(self) -> bool {
        wait(&self.child, TO_END).is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        // What it started may have outlived it.
        #[cfg(unix)]
        if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(child: &Mutex<Child>, limit: Duration) -> Option<std::process::ExitStatus> {
    let started = Instant::now();
    loop {
        match lock(child).try_wait() {
            Ok(Some(status)) => return Some(status),
            Err(_) => return None,
            Ok(None) if started.elapsed() > limit => return None,
            Ok(None) => {}
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn keep(stderr: ChildStderr, tail: &Tail) {
    let mut stderr = BufReader::new(stderr);
    loop {
        match lines::read(&mut stderr, LONGEST) {
            Ok(Line::Text(line)) => tail.push(line),
            // What follows is the rest of the same line, and worth as much.
            Ok(Line::TooLong(_)) => tail.push("… a line too long to keep".to_owned()),
            Ok(Line::End) | Err(_) => return,
        }
    }
}
