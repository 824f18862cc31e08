//! The `browser` command: reports of real runs, opened in Chromium.
//!
//! It runs the suite with the reference client and with one that is broken on purpose, makes pages of the reports, and
//! asks the browser what became of them: did the scripts run, do filters and links do what they say, is the exchange
//! drawn with the frame that decided, does hostile text stay text, is anybody else asked for anything. Pictures and a
//! PDF stay in `target/report-browser/` to be looked at.

mod chromium;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;
use stc_reports::{Report, RequirementStatus, Verdict, html, json};
use stc_runner::output::say;

pub use chromium::{Chromium, NoChromium, Window};

use crate::exit;

/// The `browser` command line.
#[derive(Debug, Args)]
pub struct Browser {}

/// A scenario that the broken client fails, by a frame of its own.
const FAILING: &str = "C2-keyed-high-half/latin-accent";

/// A requirement that it breaks.
const BROKEN: &str = "IMPL-2.1";

/// Text that would run, load or send something where it became markup.
const HOSTILE: &str = "</script></pre><img src=\"http://stranger.invalid/a\" onerror=\"document.documentElement.dataset.struck=1\">\
    <script>document.documentElement.dataset.struck=1</script><style>@import 'http://stranger.invalid/b';</style>";

/// Runs the checks. The exit code is 1 when the browser shows something else than it should.
///
/// # Errors
/// When there is no Chromium, or the reports cannot be made.
pub fn run(_: &Browser) -> anyhow::Result<ExitCode> {
    let dir = crate::workspace_root().join("target/report-browser");
    fs::create_dir_all(&dir)?;
    let browser = Chromium::find()?.with_profile(dir.join("profile"));
    let pages = Pages::make(&dir)?;
    let mut failed = 0;
    for (name, check) in CHECKS {
        match check(&browser, &pages) {
            Ok(()) => say(format_args!("ok      {name}")),
            Err(error) => {
                failed += 1;
                say(format_args!("FAILED  {name}: {error:#}"));
            }
        }
    }
    say(format_args!("{} checks, {failed} failed; pictures are in {}", CHECKS.len(), dir.display()));
    Ok(ExitCode::from(if failed == 0 { 0 } else { exit::FAILED }))
}

/// The pages, and the report of the broken client.
struct Pages {
    dir: PathBuf,
    broken: Report,
}

impl Pages {
    fn make(dir: &Path) -> anyhow::Result<Pages> {
        xtask(&["conformance", "--seed", "7", "--trace", "all"], &dir.join("reference"), 0)?;
        xtask(&["conformance", "--seed", "7", "--deviant", "route-low-half"], &dir.join("broken"), 1)?;
        let broken = json::read(&fs::read_to_string(dir.join("broken/report.json"))?)?;
        let pages = Pages { dir: dir.to_owned(), broken };
        fs::write(pages.path("hostile.html"), html::render(&[&pages.hostile()])?)?;
        // Pictures begin at the top of a page, so a scenario to look at needs a page without much above it.
        let mut small = pages.broken.clone();
        small.scenarios.retain(|s| s.id == FAILING);
        fs::write(pages.path("small.html"), html::render(&[&small])?)?;
        let records = small.scenarios.first().map(|s| s.transcript.as_slice()).unwrap_or_default();
        let session = html::Session { name: HOSTILE, records };
        fs::write(pages.path("session.html"), html::sessions(&[session])?)?;
        pages.compare()?;
        Ok(pages)
    }

    /// A report whose client and wire say the worst.
    fn hostile(&self) -> Report {
        let mut report = self.broken.clone();
        let texts =
            [&mut report.client.name, &mut report.client.version, &mut report.command, &mut report.profile];
        texts.into_iter().for_each(|text| HOSTILE.clone_into(text));
        for scenario in report.scenarios.iter_mut().filter(|s| s.verdict == Verdict::Fail) {
            HOSTILE.clone_into(&mut scenario.name);
            scenario.stderr_tail = vec![HOSTILE.to_owned()];
            scenario.failure.iter_mut().for_each(|failure| HOSTILE.clone_into(&mut failure.message));
            for record in &mut scenario.transcript {
                record.fields = [(HOSTILE.to_owned(), HOSTILE.into())].into_iter().collect();
            }
        }
        report
    }

    /// The page of both runs, by the command that makes such pages.
    fn compare(&self) -> anyhow::Result<()> {
        let status = Command::new(std::env::current_exe()?)
            .arg("report")
            .arg("--html")
            .arg(self.path("comparison.html"))
            .args(["broken/report.json", "reference/report.json"].map(|r| self.path(r)))
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "the comparison was not made: {status}");
        Ok(())
    }

    fn broken_page(&self) -> PathBuf {
        self.path("broken/report.html")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Requirements that the broken client breaks.
    fn broken_requirements(&self) -> usize {
        self.broken.requirements.iter().filter(|r| r.status == RequirementStatus::Broken).count()
    }
}

/// Runs this program; its reports go to `reports`.
fn xtask(arguments: &[&str], reports: &Path, expected: i32) -> anyhow::Result<()> {
    let output =
        Command::new(std::env::current_exe()?).args(arguments).arg("--reports").arg(reports).output()?;
    ensure!(
        output.status.code() == Some(expected),
        "{} ended with {} instead of {expected}: {}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

type Check = fn(&Chromium, &Pages) -> anyhow::Result<()>;

const CHECKS: [(&str, Check); 9] = [
    ("scripts run, and nothing is filtered at first", plain),
    ("a status in the address filters the requirements", by_status),
    ("a search in the address filters them too", by_words),
    ("a scenario in the address opens with its exchange", scenario),
    ("a session that was only recorded is drawn", session),
    ("runs can be compared, and reduced to where they differ", comparison),
    ("hostile text stays text, and nobody else is asked for anything", hostile),
    ("pictures in light and dark, wide and narrow", pictures),
    ("printing opens the failures", print),
];

fn plain(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let dom = browser.dom(&pages.broken_page(), "", &[])?;
    ensure!(dom.contains("data-ready="), "the script did not run to its end");
    let all = pages.broken.requirements.len();
    ensure!(all > 0 && shown(&dom, "req") == all, "{} of {all} requirements are shown", shown(&dom, "req"));
    ensure!(dom.contains(&format!("{all} of {all} requirements")), "the count of what is shown is missing");
    Ok(())
}

fn by_status(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let expected = pages.broken_requirements();
    let dom = browser.dom(&pages.broken_page(), "status=broken", &[])?;
    ensure!(expected > 0 && shown(&dom, "req") == expected, "{} instead of {expected}", shown(&dom, "req"));
    Ok(())
}

fn by_words(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let dom = browser.dom(&pages.broken_page(), &format!("q={BROKEN} high half"), &[])?;
    let found = shown(&dom, "req");
    ensure!((1..20).contains(&found), "{found} requirements are shown");
    let row = element(&dom, "details", &format!("id=\"{BROKEN}\"")).context("no such requirement")?;
    ensure!(!row.contains("hidden"), "{BROKEN} is not shown: {row}");
    let dom = browser.dom(&pages.broken_page(), "q=surely-nothing-has-this", &[])?;
    ensure!(shown(&dom, "req") == 0, "{} requirements are shown", shown(&dom, "req"));
    Ok(())
}

fn scenario(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let dom = browser.dom(&pages.broken_page(), &format!("scenario={FAILING}"), &[])?;
    ensure!(shown(&dom, "scenario") >= pages.broken.scenarios.len(), "not all scenarios are listed");
    let diagrams = dom.matches("class=\"diagram\"").count();
    ensure!(diagrams == 1, "{diagrams} diagrams are drawn: only the scenario that is open should be");
    let decisive = dom.matches("class=\"mark\"").count();
    ensure!(decisive == 1, "{decisive} frames are marked as the one that decided");
    let (_, after) = dom.split_once("class=\"mark\"").unwrap_or_default();
    ensure!(after.find("SEND").is_some_and(|at| at < 100), "the frame that decided is not the SEND");
    for text in ["metadata.partition_key", "naïve", "class=\"arrow right\"", ">broker 0<", ">controller<"] {
        ensure!(after.contains(text) || dom.contains(text), "no {text:?} in the diagram");
    }
    Ok(())
}

fn comparison(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let page = pages.path("comparison.html");
    let dom = browser.dom(&page, "differ=1", &[])?;
    let (found, broken) = (shown(&dom, "req"), pages.broken_requirements());
    ensure!(found >= broken && found < 200, "{found} requirements are shown, {broken} are broken in one run");
    let dom = browser.dom(&page, &format!("scenario={FAILING}"), &[])?;
    let diagrams = dom.matches("class=\"diagram\"").count();
    ensure!(diagrams == 1, "{diagrams} diagrams are open: the failing run's should be");
    ensure!(dom.contains("class=\"side\""), "the runs do not stand side by side");
    Ok(())
}

fn session(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let dom = browser.dom(&pages.path("session.html"), "", &[])?;
    ensure!(
        dom.contains("data-ready=") && !dom.contains("data-struck"),
        "the script did not run, or another one did"
    );
    let frames = dom.matches("<li class=\"frame").count();
    let failing = pages.broken.scenarios.iter().find(|s| s.id == FAILING);
    let records = failing.map_or(0, |s| s.transcript.len());
    ensure!(records > 0 && frames == records, "{frames} of {records} records are drawn");
    Ok(())
}

fn hostile(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let log = pages.path("net-log.json");
    let page = pages.path("hostile.html");
    let mut option = std::ffi::OsString::from("--log-net-log=");
    option.push(&log);
    let dom = browser.dom(&page, &format!("scenario={FAILING}"), &[option])?;
    ensure!(dom.contains("data-ready=") && dom.contains("class=\"diagram\""), "the script did not run");
    ensure!(!dom.contains("data-struck"), "hostile text was run");
    // What stands in the page's data is escaped; in elements it is text.
    ensure!(dom.contains("&lt;img src="), "the hostile text is not shown");
    ensure!(!dom.contains("<img"), "hostile text became an element");
    let log = fs::read_to_string(log)?;
    ensure!(log.contains("\"constants\""), "the browser kept no log of its requests");
    ensure!(!log.contains("stranger.invalid"), "the page asked another host");
    Ok(())
}

fn pictures(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let (wide, narrow) = (1280, 400);
    let scenario = format!("scenario={FAILING}");
    let shots: [(&str, PathBuf, &str, u32, bool); 8] = [
        ("light", pages.broken_page(), "", wide, false),
        ("dark", pages.broken_page(), "", wide, true),
        ("phone", pages.broken_page(), "status=broken", narrow, false),
        ("scenario", pages.path("small.html"), &scenario, wide, false),
        ("scenario-dark", pages.path("small.html"), &scenario, wide, true),
        ("scenario-phone", pages.path("small.html"), &scenario, narrow, false),
        ("comparison", pages.path("comparison.html"), "differ=1", wide, false),
        ("session-phone", pages.path("session.html"), "", narrow, false),
    ];
    for (name, page, fragment, width, dark) in shots {
        let window = Window { width, height: 3000, dark };
        browser.picture(&page, fragment, window, &pages.path(&format!("{name}.png")))?;
    }
    Ok(())
}

fn print(browser: &Chromium, pages: &Pages) -> anyhow::Result<()> {
    let sheets = browser.print(&pages.broken_page(), "", &pages.path("report.pdf"))?;
    // The failures alone fill more, once they are open.
    ensure!(sheets > 10, "{sheets} sheets");
    Ok(())
}

/// How many `details` of a class are in the document and neither hidden themselves.
fn shown(dom: &str, class: &str) -> usize {
    let start = format!("<details class=\"{class}\"");
    let tags = dom.match_indices(&start).filter_map(|(at, _)| dom.get(at..)?.split_once('>'));
    tags.filter(|(tag, _)| !tag.contains(" hidden")).count()
}

/// The first tag of a kind that has this text in it.
fn element<'a>(dom: &'a str, tag: &str, with: &str) -> Option<&'a str> {
    let start = format!("<{tag} ");
    let tags = dom.match_indices(&start).filter_map(|(at, _)| dom.get(at..)?.split_once('>'));
    tags.map(|(tag, _)| tag).find(|tag| tag.contains(with))
}
