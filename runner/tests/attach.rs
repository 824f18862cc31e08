//! `stc run --attach`: the adapter is a process that somebody else started, and that comes by a socket.
// Helpers of tests may panic as tests may; clippy exempts test functions only.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

const STC: &str = env!("CARGO_BIN_EXE_stc");

/// The suite, and what it says on standard error.
struct Suite {
    child: Child,
    stderr: BufReader<ChildStderr>,
    reports: tempfile::TempDir,
}

impl Suite {
    /// Runs these scenarios, one after the other, on whoever comes.
    fn run(scenarios: &[&str]) -> Suite {
        let reports = tempfile::tempdir().unwrap();
        let mut command = Command::new(STC);
        command.args(["run", "--attach", "127.0.0.1:0", "--seed", "7", "--reports"]).arg(reports.path());
        for scenario in scenarios {
            command.args(["--scenario", scenario]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Suite { child, stderr, reports }
    }

    /// Reads on until it says where it waits for an adapter.
    fn waits_at(&mut self) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it ended without waiting: {seen}");
            if let Some((_, address)) = line.trim().split_once("start it with STC_CONNECT=") {
                return address.to_owned();
            }
            seen.push_str(&line);
        }
    }

    /// Its exit code, and what it printed.
    fn ends(mut self) -> (Option<i32>, String) {
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        drop(self.reports);
        (code, stdout)
    }
}

/// The adapter of the reference client, as a process of its own.
fn adapter(connect: &str) -> Child {
    let mut command = Command::new(STC);
    command.arg("reference-adapter").env("STC_CONNECT", connect).stdin(Stdio::null());
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_process_that_was_started_by_hand_attaches_and_is_judged() {
    let mut suite = Suite::run(&["C2-keyless-round-robin", "C8-receive"]);
    let mut adapter = adapter(&suite.waits_at());
    let (code, stdout) = suite.ends();
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("2 scenarios: 2 pass"), "{stdout}");
    assert!(stdout.contains("client reference client"), "{stdout}");
    // The end of the socket is the end of the adapter.
    assert!(adapter.wait().unwrap().success());
}

/// An adapter that breaks off when it is to open a client.
fn breaks_off(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut answer = |id: u64, result: &str| {
        writeln!(stream, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").unwrap();
    };
    let hello = r#"{"protocolVersion":1,"sdk":{"name":"fragile","version":"1"},"capabilities":["sync"]}"#;
    loop {
        let request: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        match (request["id"].as_u64().unwrap(), request["method"].as_str().unwrap()) {
            (id, "initialize") => answer(id, hello),
            (id, "startScenario") => answer(id, "null"),
            (_, method) => return assert_eq!(method, "openClient"),
        }
    }
}

#[test]
fn one_that_goes_away_costs_its_scenario_and_the_suite_waits_for_the_next() {
    let mut suite = Suite::run(&["C2-keyless-round-robin", "C8-receive"]);
    breaks_off(&suite.waits_at());
    let mut adapter = adapter(&suite.waits_at());
    let (code, stdout) = suite.ends();
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("2 scenarios: 1 pass, 1 fail"), "{stdout}");
    assert!(stdout.contains("the adapter closed the connection"), "{stdout}");
    assert!(stdout.contains("--attach 127.0.0.1:0 "), "the command to repeat it: {stdout}");
    assert!(adapter.wait().unwrap().success());
}
