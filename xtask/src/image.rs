//! The `image` command: a container image of the program `stc`, made of what this machine builds, without pulling
//! anything, and tried out.

use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use crate::containers::{Engine, Rootfs};
use crate::real_broker::free_ports;
use stc_runner::output::say;

/// How long a simulated cluster may take to answer from its container.
const PATIENCE: Duration = Duration::from_secs(30);

/// The `image` command line.
#[derive(Debug, Args)]
pub struct Image {
    /// Name and tag of the image
    #[arg(long, default_value = "stc:latest")]
    tag: String,
    /// Build the program without optimisation
    #[arg(long)]
    debug: bool,
    /// Try the image: judge a client in a container, and one outside against a cluster in a container
    #[arg(long)]
    check: bool,
}

/// Builds the program and its image.
///
/// # Errors
/// [`crate::containers::NoEngine`], or when a step fails.
pub fn run(image: &Image) -> anyhow::Result<ExitCode> {
    let engine = Engine::find()?;
    let workspace = crate::workspace_root();
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked", "--package", "stc-runner", "--bin", "stc"]);
    // Together with this crate a debug build is the one that `cargo xtask test` has made already.
    build.args(if image.debug { ["--package", "xtask"].as_slice() } else { &["--release"] });
    let built = build.current_dir(&workspace).status().context("cargo does not start")?;
    if !built.success() {
        bail!("the program does not build");
    }
    let program = workspace.join("target").join(if image.debug { "debug" } else { "release" }).join("stc");
    let root = Rootfs::create(workspace.join(format!("target/image-{}", std::process::id())))?;
    root.copy(&program, "/bin/stc")?;
    root.copy_libraries_of(&[program])?;
    // Reports go below the working directory: /work is where a folder of the host is mounted.
    root.place("/work/.")?;
    engine.import(
        root.path(),
        &image.tag,
        &["ENV PATH=/bin", "WORKDIR /work", "ENTRYPOINT [\"/bin/stc\"]"],
    )?;
    say(format_args!("{}", image.tag));
    if image.check {
        judge_inside(engine, &image.tag)?;
        judge_outside(engine, &image.tag)?;
        say("The image judges a client inside, and serves a cluster to one outside.");
    }
    Ok(ExitCode::SUCCESS)
}

fn judge_inside(engine: Engine, tag: &str) -> anyhow::Result<()> {
    let arguments =
        ["run", "--rm", "--init", tag, "run", "--client", "stc reference-adapter", "--tags", "@C2"];
    engine.run(&arguments).map(|_| ()).context("judging the reference client in a container")
}

fn judge_outside(engine: Engine, tag: &str) -> anyhow::Result<()> {
    let [port, admin_port] = free_ports()?;
    let (service, admin) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{admin_port}"));
    let publish = [format!("{service}:{port}"), format!("{admin}:{admin_port}")];
    let (port, admin_port) = (port.to_string(), admin_port.to_string());
    let container = engine.run(&[
        "run",
        "--detach",
        "--init",
        "--publish",
        &publish[0],
        "--publish",
        &publish[1],
        tag,
        "serve",
        "--brokers",
        "1",
        "--port",
        &port,
        "--admin-port",
        &admin_port,
        "--bind",
        "0.0.0.0",
        "--advertise",
        "127.0.0.1",
    ])?;
    let judged = wait(&admin).and_then(|()| {
        let mut judge = Command::new(std::env::current_exe().context("cannot find this program")?);
        judge.args(["conformance", "--service-url", &format!("pulsar://{service}"), "--tags", "@C2"]);
        judge.args(["--admin-url", &format!("http://{admin}"), "--reports", "target/stc-reports/image"]);
        let status = judge.current_dir(crate::workspace_root()).status().context("the run does not start")?;
        if !status.success() {
            bail!("a client outside did not pass on the cluster in the container: {status}");
        }
        Ok(())
    });
    engine.run(&["rm", "--force", &container])?;
    judged
}

/// Waits until something listens; the engine accepts connections itself before the program in the container does, so
/// only an answer counts.
fn wait(admin: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if crate::real_broker::answers(admin, "/admin/v2/clusters") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("nothing answers at {admin} after {} s", PATIENCE.as_secs())
}
