//! Starts the standalone broker's Java process and waits until clients can use it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::ports;
use super::state::{self, Running};
use crate::exit::UsageError;
use crate::java::{self, Jdk};

/// Packages of the JDK that Pulsar and BookKeeper reach into by reflection.
pub(super) const OPENED: [&str; 9] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
];

/// What to start and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port for clients; 0 picks a free one.
    pub port: u16,
    /// Port of the admin REST; 0 picks a free one.
    pub admin_port: u16,
    /// Data, log and record of this broker. Data that an earlier broker left there is removed.
    pub workdir: PathBuf,
    /// Where the resolved class path is kept; all brokers of the workspace share it.
    pub cache: PathBuf,
    /// How long the broker may take until it is ready.
    pub patience: Duration,
}

/// Starts a broker that outlives this process, and waits until it is ready.
///
/// # Errors
/// [`UsageError`] when a broker already runs in the work directory or a port is taken; [`java::JavaError`] when the
/// JDK or Maven is missing; anything else when the broker does not come up, with the end of its log.
pub fn start(options: &Options) -> anyhow::Result<Running> {
    launch(options).map(|(running, _child)| running)
}

pub(super) fn launch(options: &Options) -> anyhow::Result<(Running, Child)> {
    fs::create_dir_all(&options.workdir)
        .with_context(|| format!("cannot create the work directory {}", options.workdir.display()))?;
    let workdir = fs::canonicalize(&options.workdir)
        .with_context(|| format!("cannot use the work directory {}", options.workdir.display()))?;
    if let Some(running) = Running::find(&workdir)? {
        return Err(UsageError(format!(
            "a broker already runs in {} (process {}, {}); stop it first or give another --workdir",
            workdir.display(),
            running.pid,
            running.service_url
        ))
        .into());
    }
    let jdk = Jdk::find()?;
    let home = crate::workspace_root().join("real-broker");
    let class_path = java::class_path(&jdk, &home.join("pom.xml"), &options.cache)?;

    state::clear(&workdir)?;
    let port = choose_port(options.port, &[options.admin_port])?;
    let admin_port = choose_port(options.admin_port, &[port])?;
    let conf = workdir.join("standalone.conf");
    let template = home.join("standalone.conf");
    let text =
        fs::read_to_string(&template).with_context(|| format!("cannot read {}", template.display()))?;
    fs::write(&conf, format!("{text}\nbrokerServicePort={port}\nwebServicePort={admin_port}\n"))
        .with_context(|| format!("cannot write {}", conf.display()))?;

    let log = workdir.join("broker.log");
    let started = Instant::now();
    let mut child = command(&jdk, &class_path, &home.join("log4j2.xml"), &workdir, &conf, &log)?
        .spawn()
        .with_context(|| format!("cannot start {}", jdk.java().display()))?;
    if let Err(error) = wait_until_ready(&mut child, admin_port, started, options.patience) {
        // The caller never learns the process id, so the process must not stay.
        let _ = child.kill();
        let _ = child.wait();
        return Err(error.context(format!(
            "the broker did not come up; end of {}:\n{}",
            log.display(),
            tail(&log)
        )));
    }
    let running = Running {
        service_url: format!("pulsar://127.0.0.1:{port}"),
        admin_url: format!("http://127.0.0.1:{admin_port}"),
        pid: child.id(),
        log,
        workdir,
        ready_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    running.record()?;
    Ok((running, child))
}

fn choose_port(asked: u16, taken: &[u16]) -> anyhow::Result<u16> {
    if asked == 0 {
        return ports::free(ports::own_start(), taken);
    }
    if ports::is_free(asked) && !taken.contains(&asked) {
        return Ok(asked);
    }
    Err(UsageError(format!("port {asked} on 127.0.0.1 is taken; 0 picks a free one")).into())
}

fn command(
    jdk: &Jdk,
    class_path: &str,
    log4j: &Path,
    workdir: &Path,
    conf: &Path,
    log: &Path,
) -> anyhow::Result<Command> {
    let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let err = out.try_clone().with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(jdk.java());
    // Quick to start and small rather than fast under load: measured, this is 3 s instead of 4.5 s until ready.
    command.args(["-Xmx512m", "-XX:MaxDirectMemorySize=512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.args(["--enable-native-access=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true"]);
    command.args(OPENED.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
    command.arg(format!("-Dlog4j.configurationFile={}", log4j.display()));
    command.args(["-cp", class_path, "org.apache.pulsar.PulsarStandaloneStarter", "--config"]).arg(conf);
    command.arg("--metadata-dir").arg(workdir.join("data/metadata"));
    command.arg("--bookkeeper-dir").arg(workdir.join("data/bookkeeper"));
    command.args(["--no-functions-worker", "--no-stream-storage", "--advertised-address", "127.0.0.1"]);
    // Its own process group: a Ctrl-C in the terminal reaches it only through us.
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    Ok(command)
}

/// The namespace that everything uses is created last; the list of clusters already answers about a second earlier.
fn wait_until_ready(
    child: &mut Child,
    admin_port: u16,
    started: Instant,
    patience: Duration,
) -> anyhow::Result<()> {
    let admin = format!("127.0.0.1:{admin_port}");
    while started.elapsed() < patience {
        if let Some(status) = child.try_wait().context("cannot watch the broker's process")? {
            bail!("it ended by itself ({status})");
        }
        if get(&admin, "/admin/v2/namespaces/public").is_ok_and(|body| body.contains("public/default")) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("it was not ready after {} s", patience.as_secs())
}

/// One HTTP GET at `host:port`. HTTP/1.0, so that the answer ends with the connection and is never chunked.
pub(super) fn get(address: &str, path: &str) -> std::io::Result<String> {
    let timeout = Some(Duration::from_secs(5));
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(1 << 20).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => Err(std::io::Error::other("not a good HTTP answer")),
    }
}

/// The end of a log file, for an error message.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(20)).copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, TcpListener};

    fn serve_once(answer: &'static str) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            stream.write_all(answer.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn takes_only_a_good_answer() {
        let good =
            serve_once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[\"public/default\"]");
        assert_eq!(get(&good, "/x").unwrap(), "[\"public/default\"]");
        let missing = serve_once("HTTP/1.1 404 Not Found\r\n\r\npublic/default");
        get(&missing, "/x").unwrap_err();
        get(&serve_once("public/default"), "/x").unwrap_err();
    }

    #[test]
    fn a_process_that_ends_is_reported_at_once() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        child.wait().unwrap();
        let port = ports::free(11, &[]).unwrap();
        let error = wait_until_ready(&mut child, port, Instant::now(), Duration::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("ended by itself"), "{error}");
    }

    #[test]
    fn a_taken_port_is_a_usage_error() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let error = choose_port(held.local_addr().unwrap().port(), &[]).unwrap_err();
        assert!(error.downcast_ref::<UsageError>().is_some(), "{error}");
    }
}
