//! What SDK authors copy into their CI: the workflow is one, and its script does what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci")
}

#[test]
fn the_workflow_installs_a_pinned_suite_and_runs_the_script() {
    let text = fs::read_to_string(docs().join("conformance.yml")).unwrap();
    let workflow: Json = serde_saphyr::from_str(&text).unwrap();
    for pin in ["STC_REPOSITORY", "STC_REV"] {
        assert!(workflow["env"][pin].is_string(), "{pin} is not pinned");
    }
    assert!(workflow["on"].as_array().is_some_and(|on| on.iter().any(|event| event == "pull_request")));
    let steps = workflow["jobs"]["scalable-topics"]["steps"].as_array().unwrap();
    let texts = |key: &str| -> Vec<&str> { steps.iter().filter_map(|s| s[key].as_str()).collect() };
    for action in texts("uses") {
        assert!(
            action.split_once("@v").is_some_and(|(_, v)| v.parse::<u32>().is_ok()),
            "{action} is not pinned"
        );
    }
    let runs = texts("run");
    assert!(
        runs.iter().any(|r| r.ends_with(r#"--locked --git "$STC_REPOSITORY" --rev "$STC_REV" stc-runner"#))
    );
    let judges = runs.iter().find(|r| r.contains("conformance.sh")).unwrap();
    // Its options are the program's.
    let options = judges.split(' ').filter(|word| word.starts_with("--"));
    let help = Command::new(env!("CARGO_BIN_EXE_stc")).args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    options.for_each(|option| assert!(help.contains(&format!("{option} ")), "stc run has no {option}"));
    let uploaded = steps.iter().find(|s| s["uses"].as_str().is_some_and(|u| u.contains("upload"))).unwrap();
    let script = fs::read_to_string(docs().join("conformance.sh")).unwrap();
    assert!(
        script.contains(uploaded["with"]["path"].as_str().unwrap()),
        "what is uploaded is written elsewhere"
    );
}

#[test]
fn the_script_passes_on_the_exit_code_and_fills_in_the_summary() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stc");
    fs::write(
        &program,
        "for word in \"$@\"; do echo \"[$word]\" >>words; done\nmkdir -p out\necho '## a verdict' >out/report.md\nexit 3\n",
    )
    .unwrap();
    let status = Command::new("sh")
        .arg(docs().join("conformance.sh").canonicalize().unwrap())
        .args(["java -jar my adapter.jar", "--tags", "@C2 or @C3"])
        .env("STC", format!("sh {}", program.display()))
        .env("REPORTS", "out")
        .env("GITHUB_STEP_SUMMARY", dir.path().join("summary"))
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(fs::read_to_string(dir.path().join("summary")).unwrap(), "## a verdict\n");
    let words = fs::read_to_string(dir.path().join("words")).unwrap();
    let expected =
        "[run]\n[--client]\n[java -jar my adapter.jar]\n[--reports]\n[out]\n[--tags]\n[@C2 or @C3]\n";
    assert_eq!(words, expected);
}
