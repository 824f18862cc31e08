//! Adapters that misbehave cost the scenario that they were in, and nothing else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stc_reports::{ScenarioResult, Verdict};
use stc_runner::adapter::factory::AdapterFactory;
use stc_runner::feature::Scenario;
use stc_runner::run::{Environment, RunConfig, Trace, run};
use stc_runner::suite::Suite;
use stc_runner::target::TargetConfig;

const SEED: u64 = 7;

/// An adapter in the shell's language that offers nothing, and does `deed` when the second scenario opens a client.
fn misbehaving(deed: &str) -> Vec<String> {
    let script = r#"
        while read -r line; do
          id=${line#*\"id\":}; id=${id%%,*}
          answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
          case $line in
            *'"initialize"'*) answer '"result":{"protocolVersion":1,"sdk":{"name":"shell","version":"1"},"capabilities":["sync"]}' ;;
            *'"startScenario"'*) scenario=$line; answer '"result":null' ;;
            *'"endScenario"'*) answer '"result":null' ;;
            *'"openClient"'*) case $scenario in *C2-keyless-round-robin*) DEED ;; *) answer '"result":1' ;; esac ;;
            *) answer '"error":{"code":-32001,"message":"no","data":{"capability":"anything"}}' ;;
          esac
        done"#;
    ["sh", "-c", &script.replace("DEED", deed)].map(str::to_owned).to_vec()
}

fn judged(command: Vec<String>) -> Vec<ScenarioResult> {
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let named = ["C1-producer-watches", "C2-keyless-round-robin", "C8-receive", "C9-earliest"];
    let chosen: Vec<&Scenario> =
        named.iter().filter_map(|id| suite.scenarios.iter().find(|s| s.id == *id)).collect();
    assert!(chosen.len() >= 3, "scenarios were renamed");
    let factory = AdapterFactory::command(command).unwrap();
    let mut environment = Environment::new(TargetConfig::Tcp, "spec-1.0", Arc::new(factory));
    environment.step_limit = Some(Duration::from_secs(5));
    run(
        &chosen,
        &RunConfig {
            environment: Arc::new(environment),
            seed: SEED,
            jobs: 1,
            trace: Trace::Failed,
            replay: String::new(),
        },
    )
}

/// Runs the deed; the other scenarios are judged as if nothing had happened. What the report says about it.
fn costs_one(deed: &str) -> (String, Vec<String>) {
    let mut failed = None;
    for result in judged(misbehaving(deed)) {
        if result.id == "C2-keyless-round-robin" {
            assert_eq!(result.verdict, Verdict::Fail, "{deed}: {result:?}");
            failed = Some((result.failure.unwrap().message, result.stderr_tail));
        } else {
            assert_eq!(result.verdict, Verdict::Unsupported, "{deed}: {} {:?}", result.id, result.failure);
            assert_eq!(result.reason.as_deref(), Some("the client does not offer anything"), "{}", result.id);
        }
    }
    failed.expect("the scenario ran")
}

#[test]
fn a_crash_is_told_with_its_last_words() {
    let (message, stderr) = costs_one("echo dying words >&2; exit 3");
    assert_eq!(message, "building a client: the adapter ended with exit status: 3");
    assert_eq!(stderr, ["dying words"]);
}

#[test]
fn babble_is_shown() {
    let (message, _) = costs_one("echo hello");
    assert!(
        message.starts_with("building a client: the adapter broke the protocol: it wrote \"hello\""),
        "{message}"
    );
    assert!(message.contains("it is no JSON") && message.contains("`stc adapter-check`"), "{message}");
    let (message, _) = costs_one(r#"echo '{"jsonrpc":"2.0","id":999,"result":null}'"#);
    assert!(
        message.contains("broke the protocol") && message.contains("no request 999 is waiting"),
        "{message}"
    );
    let (message, _) = costs_one(r#"answer '"result":"two"'"#);
    assert!(
        message.contains("broke the protocol: it answered openClient with what it cannot be"),
        "{message}"
    );
}

#[test]
fn a_fault_of_its_own_is_no_breach_and_no_end() {
    let (message, _) = costs_one(r#"answer '"error":{"code":-32603,"message":"no way"}'"#);
    assert_eq!(
        message,
        "building a client: the adapter went wrong: it answered openClient with error -32603: no way"
    );
}

#[test]
fn a_line_without_end_is_cut_off() {
    let (message, _) = costs_one("tr '\\0' x </dev/zero");
    assert!(message.contains("broke the protocol: a line of more than"), "{message}");
    assert!(message.contains("bytes that begins \"xxx"), "{message}");
}

#[test]
fn an_adapter_that_hangs_is_replaced() {
    let (message, _) = costs_one("sleep 1000");
    assert!(
        message.contains("did not end within 5 s\nthe adapter has not answered openClient (id "),
        "{message}"
    );
    assert!(message.ends_with(", asked in this step)"), "{message}");
}

#[test]
fn one_that_does_not_begin_a_scenario_is_told_too() {
    let at_start = |deed: &str| {
        let begins = format!("scenario=$line; case $line in *C2-keyless-round-robin*) {deed} ;; esac;");
        let words = misbehaving("true").iter().map(|word| word.replace("scenario=$line;", &begins)).collect();
        let result = judged(words).into_iter().find(|r| r.id == "C2-keyless-round-robin").unwrap();
        (result.verdict, result.reason.or(result.failure.map(|f| f.message)).unwrap())
    };
    let (verdict, told) = at_start("sleep 1000");
    assert_eq!(verdict, Verdict::Fail);
    assert!(told.contains("\nthe adapter has not answered startScenario (id "), "{told}");
    let (verdict, told) = at_start("echo no heap >&2; exit 4");
    assert_eq!(verdict, Verdict::CouldNotRun);
    assert!(told.contains("the adapter ended with exit status: 4; it wrote:\n  no heap"), "{told}");
}

#[test]
fn an_adapter_that_does_not_introduce_itself_is_no_adapter() {
    let error = |script: &str| {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        AdapterFactory::command(words).err().expect("there is no adapter").to_string()
    };
    let said = error("echo no JDK here >&2; exit 9");
    assert!(said.contains("exit status: 9") && said.contains("no JDK here"), "{said}");
    let newer = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"sdk":{"name":"n","version":"1"},"capabilities":[]}}'; cat >&2"#;
    assert!(error(newer).contains("version 2 of the protocol"), "{}", error(newer));
    let misspelt = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"sdk":{"name":"n","version":"1"},"capabilities":["stream"]}}'; cat >&2"#;
    assert!(error(misspelt).contains("unknown variant `stream`"), "{}", error(misspelt));
    let missing = AdapterFactory::command(vec!["no-such-program-here".to_owned()]).err().unwrap();
    assert!(missing.to_string().contains("no-such-program-here"));
}

/// What both ways of running say about a client that is broken in a known way.
#[cfg(feature = "deviants")]
#[test]
fn a_broken_client_gets_the_same_verdicts_through_the_protocol_as_in_process() {
    use stc_runner::client::reference::{Deviant, ReferenceFactory};
    use stc_runner::run::ClientFactory;
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    for (name, item) in [("route-low-half", "C2"), ("all-ids-equal", "C10")] {
        let chosen: Vec<&Scenario> = suite
            .scenarios
            .iter()
            .filter(|s| s.checklist.iter().any(|c| c == item))
            .filter(|s| !s.needs.contains(&stc_runner::feature::Need::VirtualTime))
            .collect();
        let judge = |client: Arc<dyn ClientFactory>| {
            let config = RunConfig {
                environment: Arc::new(Environment::new(TargetConfig::Tcp, "spec-1.0", client)),
                seed: SEED,
                jobs: 8,
                trace: Trace::Failed,
                replay: String::new(),
            };
            let told = |r: ScenarioResult| (r.id, r.verdict, r.failure.and_then(|f| f.requirement));
            run(&chosen, &config).into_iter().map(told).collect::<Vec<_>>()
        };
        let words = [env!("CARGO_BIN_EXE_stc"), "reference-adapter", "--deviant", name];
        let outside = AdapterFactory::command(words.map(str::to_owned).to_vec()).unwrap();
        let through = judge(Arc::new(outside));
        let inside = judge(Arc::new(ReferenceFactory { deviant: Deviant::by_name(name) }));
        assert_eq!(through, inside, "{name}");
        assert!(through.iter().any(|(_, verdict, _)| *verdict == Verdict::Fail), "{name} is not caught");
    }
}

fn unsound(command: Vec<String>) -> Vec<String> {
    use stc_runner::adapter::check::{Sound, check};
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let checks = runtime.block_on(check(command)).unwrap();
    assert!(checks.len() >= 8);
    checks.iter().filter(|c| c.sound != Sound::Yes).map(ToString::to_string).collect()
}

#[test]
fn the_check_finds_the_reference_adapter_sound_and_others_not() {
    let reference = [env!("CARGO_BIN_EXE_stc"), "reference-adapter"].map(str::to_owned).to_vec();
    assert_eq!(unsound(reference), Vec::<String>::new());
    // It gives every client the number 1, and ignores options.
    let found = unsound(misbehaving("true")).join("\n");
    for rule in ["calls an option that it does not know unsupported", "gives each object a number of its own"]
    {
        assert!(found.contains(&format!("NOT OK  {rule}")), "{found}");
    }
    let stubborn = misbehaving("true").into_iter().map(|w| format!("{w}\nsleep 1000")).skip(2);
    let stubborn: Vec<String> = ["sh".to_owned(), "-c".to_owned()].into_iter().chain(stubborn).collect();
    assert!(unsound(stubborn).join("\n").contains("NOT OK  ends when its standard input does"));
}

#[test]
fn what_the_client_was_asked_stands_between_the_frames_that_followed() {
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let scenario = suite.scenarios.iter().find(|s| s.id == "C2-keyless-round-robin").unwrap();
    let command = [env!("CARGO_BIN_EXE_stc"), "reference-adapter"].map(str::to_owned).to_vec();
    let factory = AdapterFactory::command(command).unwrap();
    let environment = Environment::new(TargetConfig::Tcp, "spec-1.0", Arc::new(factory));
    let config = RunConfig {
        environment: Arc::new(environment),
        seed: SEED,
        jobs: 1,
        trace: Trace::All,
        replay: String::new(),
    };
    let result = run(&[scenario], &config).remove(0);
    assert_eq!(result.verdict, Verdict::Pass, "{:?}", result.failure);
    let names: Vec<&str> = result.transcript.iter().map(|r| r.name.as_str()).collect();
    let said = |name: &str, text: &str| {
        let of = |r: &&stc_reports::WireRecord| {
            r.name == name && r.fields["text"].as_str().is_some_and(|t| t.starts_with(text))
        };
        let found =
            result.transcript.iter().find(of).unwrap_or_else(|| panic!("no {name} {text}: {names:?}"));
        assert_eq!((found.from.as_str(), found.to.as_str()), ("client", "client"));
        found.n
    };
    let first = |name: &str| result.transcript.iter().find(|r| r.name == name).unwrap().n;
    let order = [
        said("ASKED", "startScenario {\"scenario\":\"C2-keyless-round-robin\""),
        said("ANSWERED", "startScenario"),
        said("ASKED", "createProducer {\"client\":"),
        first("SCALABLE_TOPIC_LOOKUP"),
        said("ANSWERED", "createProducer "),
        said("ASKED", "send"),
        first("SEND"),
        said("ANSWERED", "send"),
    ];
    assert!(order.is_sorted(), "{order:?} in {names:?}");
    // Each stands in the band of the step that asked.
    let step = |text: &str| result.steps.iter().find(|s| s.text.contains(text)).unwrap().wire.unwrap();
    assert!(order[4] <= step("a producer on the topic") && order[5] > step("a producer on the topic"));
}
