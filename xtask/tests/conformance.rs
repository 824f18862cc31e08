//! The command lines of `cargo xtask conformance` and `cargo xtask deviants`, and their exit codes.
// Helpers of tests may panic as tests may; clippy exempts test functions only.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::process::{Command, Output};

fn xtask(args: &[&str], reports: &tempfile::TempDir) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(args)
        .current_dir(reports.path())
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().expect("it exits by itself"), text(stdout), text(stderr))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_scenario_that_passes_exits_with_0_and_leaves_reports() {
    let dir = folder();
    let args = ["conformance", "--scenario", "C2-keyless-round-robin", "--seed", "5", "--reports", "out"];
    let (code, out, _) = xtask(&args, &dir);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("seed 5") && out.contains("1 pass") && out.contains("out/report.json"), "{out}");
    for file in ["report.html", "report.json", "report.md", "junit.xml", "ctrf.json", "badge.json"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_client_that_does_not_conform_exits_with_1_and_a_command_to_paste() {
    let dir = folder();
    let args = ["conformance", "--tags", "@IMPL-2.1", "--seed", "5", "--deviant", "route-low-half"];
    let (code, out, _) = xtask(&args, &dir);
    assert_eq!(code, 1, "{out}");
    assert!(
        out.contains(
            "C2 fails, IMPL-2.1: key \"ключ\" went to segment 0; its high half 0x9a59 belongs to segment 2"
        ),
        "{out}"
    );
    let paste = "cargo xtask conformance --deviant route-low-half --target memory --seed 5 --scenario C2-keyed-high-half/cyrillic";
    assert!(out.contains(paste), "{out}");
}

#[test]
fn a_tag_expression_of_any_depth_is_read_or_refused() {
    let dir = folder();
    let deepest = format!("{}@C2{}", "(".repeat(500), ")".repeat(500));
    let (code, out, err) = xtask(&["conformance", "--list", "--tags", &deepest], &dir);
    assert_eq!(code, 0, "{out}{err}");
    for deeper in ["(".repeat(100_000), "not ".repeat(30_000) + "@C2"] {
        let (code, _, err) = xtask(&["conformance", "--list", "--tags", &deeper], &dir);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("longer than 1024 bytes") && err.len() < 200, "{err}");
    }
}

#[test]
fn what_cannot_be_run_exits_with_2_and_is_named() {
    let dir = folder();
    let elsewhere = |url, admin_url| ["conformance", "--service-url", url, "--admin-url", admin_url];
    let cases: [(&[&str], &str); 12] = [
        (&["conformance", "--scenario", "C2-nope"], "C2-nope"),
        (&["conformance", "--tags", "@C2 and @C99"], "@C99"),
        (&["conformance", "--tags", "@C1 and @C2"], "no scenario is selected"),
        (&["conformance", "--tags", "C2 and"], "--tags"),
        (&["conformance", "--profile", "pulsar-9"], "pulsar-9"),
        (&["conformance", "--deviant", "no-such"], "no-such"),
        (&["conformance", "--service-url", "pulsar://127.0.0.1:1"], "--admin-url"),
        (&["conformance", "--list", "--profile", "pulsar-9"], "pulsar-9"),
        (&elsewhere("http://127.0.0.1:1", "http://127.0.0.1:1"), "pulsar://host:port"),
        (&elsewhere("pulsar://127.0.0.1:1", "ftp://127.0.0.1:1"), "http://host:port"),
        (&["conformance", "--jobs", "0"], "--jobs"),
        (&["deviants", "--only", "no-such"], "no-such"),
    ];
    for (args, named) in cases {
        let (code, out, err) = xtask(args, &dir);
        assert_eq!(code, 2, "{args:?}: {out}{err}");
        assert!(err.contains(named), "{args:?}: {err}");
    }
}

#[test]
fn scenarios_that_a_broker_elsewhere_cannot_host_are_left_out_and_an_empty_rest_is_2() {
    let dir = folder();
    let args = [
        "conformance",
        "--scenario",
        "C4-in-flight",
        "--service-url",
        "pulsar://127.0.0.1:1",
        "--admin-url",
        "http://127.0.0.1:1",
    ];
    let (code, out, _) = xtask(&args, &dir);
    assert_eq!(code, 2, "{out}");
    assert!(out.contains("needs faults, which target url does not offer"), "{out}");
}

#[test]
fn a_broker_that_cannot_be_reached_exits_with_3() {
    let dir = folder();
    let args = [
        "conformance",
        "--scenario",
        "C8-receive",
        "--service-url",
        "pulsar://127.0.0.1:1",
        "--admin-url",
        "http://127.0.0.1:1",
    ];
    let (code, out, _) = xtask(&args, &dir);
    assert_eq!(code, 3, "{out}");
}

#[test]
fn lists_name_scenarios_and_deviants() {
    let dir = folder();
    let (code, out, _) = xtask(&["conformance", "--list", "--tags", "@C15 and not @namespace"], &dir);
    assert_eq!(code, 0);
    assert!(out.contains("C15-producer") && out.contains("COMPAT-3.2") && out.lines().count() == 2, "{out}");
    let (code, out, _) = xtask(&["deviants", "--list", "--only", "route-low-half"], &dir);
    assert_eq!(code, 0);
    assert!(out.contains("route-low-half") && out.contains("IMPL-2.1") && out.lines().count() == 1, "{out}");
}

#[test]
fn a_deviant_is_caught_by_its_requirement() {
    let dir = folder();
    let (code, out, _) = xtask(&["deviants", "--only", "apply-stale-epoch", "--seed", "5"], &dir);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("caught    IMPL-1.4     C1-stale-epoch"), "{out}");
}

#[test]
fn several_reports_make_one_page() {
    let dir = folder();
    let scenario = ["--scenario", "C2-keyless-round-robin", "--seed", "5"];
    for (out, more) in [("one", &[][..]), ("two", &["--deviant", "route-low-half"])] {
        let args = [&["conformance", "--reports", out][..], &scenario, more].concat();
        assert_eq!(xtask(&args, &dir).0, 0, "{out}");
    }
    let (code, out, err) =
        xtask(&["report", "--html", "both.html", "one/report.json", "two/report.json"], &dir);
    assert_eq!((code, out.as_str()), (0, "both.html\n"), "{err}");
    let page = std::fs::read_to_string(dir.path().join("both.html")).expect("the page is there");
    assert!(page.contains("Comparison of 2 runs") && page.contains("deviant RouteLowHalf"));
}

#[test]
fn a_report_that_cannot_be_read_exits_with_2_and_a_page_that_cannot_be_written_with_3() {
    let dir = folder();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("the folder can be written to");
    };
    write("no.json", "[");
    write("old.json", "{\"format\": 1}");
    for (name, problem) in
        [("no.json", "not a report"), ("old.json", "its format is 1"), ("none.json", "none.json")]
    {
        let (code, _, err) = xtask(&["report", "--html", "page.html", name], &dir);
        assert!(code == 2 && err.contains(problem) && err.contains(name), "{code} {err}");
    }
    assert_eq!(xtask(&["report", "--html", "page.html"], &dir).0, 2);
    assert!(!dir.path().join("page.html").exists());
    let (code, ..) = xtask(
        &["conformance", "--scenario", "C2-keyless-round-robin", "--seed", "5", "--reports", "one"],
        &dir,
    );
    assert_eq!(code, 0);
    let (code, _, err) = xtask(&["report", "--html", "no/such/page.html", "one/report.json"], &dir);
    assert!(code == 3 && err.contains("page.html"), "{code} {err}");
}
