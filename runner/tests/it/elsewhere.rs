//! A broker elsewhere: what has no need runs there, and what is stored is read over the wire. The broker is a simulated
//! cluster, so that its control API can tell what the wire must tell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim_broker::core::{ClusterConfig, Profile};
use sim_broker::{SimCluster, TcpOptions};
use stc_reports::Verdict;
use stc_runner::client::reference::ReferenceFactory;
use stc_runner::feature::Scenario;
use stc_runner::run::{Environment, RunConfig, Trace, run};
use stc_runner::stored::{self, StoredMessage, reader};
use stc_runner::suite::Suite;
use stc_runner::target::TargetConfig;
use stc_runner::target::admin::Admin;

const SEED: u64 = 7;

/// The cluster's runtime has threads of its own: it serves while scenarios block this one.
pub(crate) fn cluster() -> (tokio::runtime::Runtime, SimCluster) {
    cluster_at(TcpOptions::default())
}

/// The same, listening as the options say.
pub(crate) fn cluster_at(options: TcpOptions) -> (tokio::runtime::Runtime, SimCluster) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = ClusterConfig { brokers: 3, ..ClusterConfig::new(Profile::built_in("spec-1.0").unwrap()) };
    let cluster = runtime.block_on(SimCluster::tcp(config, options)).unwrap();
    (runtime, cluster)
}

/// Runs the scenarios on a broker elsewhere; all have to pass.
pub(crate) fn all_pass(scenarios: &[&Scenario], service_url: String, admin_url: String) {
    let target = TargetConfig::Url { service_url, admin_url };
    let config = RunConfig {
        environment: Arc::new(Environment::new(target, "spec-1.0", Arc::new(ReferenceFactory::default()))),
        seed: SEED,
        jobs: 4,
        trace: Trace::Failed,
        replay: String::new(),
    };
    for result in run(scenarios, &config) {
        assert_eq!(result.verdict, Verdict::Pass, "{} (seed {SEED}): {:?}", result.id, result.failure);
    }
}

fn shown(messages: &[StoredMessage]) -> Vec<String> {
    messages.iter().map(|m| format!("{m:?}")).collect()
}

#[test]
fn scenarios_without_needs_run_by_url_and_the_wire_tells_what_the_control_api_tells() {
    let (runtime, cluster) = cluster();
    let (service_url, admin_url) = (cluster.service_url(), cluster.admin_urls().remove(0));
    let suite = Suite::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../features")).unwrap();
    let portable: Vec<&Scenario> = suite.scenarios.iter().filter(|s| s.needs.is_empty()).collect();
    for item in ["C2", "C3", "C4", "entry-bucketing", "migration"] {
        let filed = portable.iter().any(|s| s.checklist.iter().any(|c| c == item));
        assert!(filed, "no scenario of {item} runs against a broker elsewhere");
    }
    all_pass(&portable, service_url.clone(), admin_url.clone());

    let admin = Admin::http(admin_url, None);
    let mut read = 0;
    runtime.block_on(async {
        let get = |path: &'static str| admin.must(axum::http::Method::GET, path, None);
        let mut names = Vec::new();
        for path in ["/admin/v2/scalable/public/default", "/admin/v2/persistent/public/default/partitioned"] {
            let listed: Vec<String> = serde_json::from_str(&get(path).await.unwrap()).unwrap();
            assert!(!listed.is_empty(), "{path}");
            names.extend(listed);
        }
        for name in names {
            let by_control = stored::in_cluster(&cluster.control(), &name).unwrap();
            let by_wire = reader::read(&service_url, &admin, &name, Duration::ZERO).await.unwrap();
            assert_eq!(shown(&by_wire), shown(&by_control), "{name}");
            read += by_wire.len();
        }
        let absent =
            reader::read(&service_url, &admin, "topic://public/default/absent", Duration::ZERO).await;
        assert!(absent.unwrap_err().to_string().contains("404"));
        cluster.shutdown().await;
    });
    assert!(read > 500, "only {read} messages were compared");
}
