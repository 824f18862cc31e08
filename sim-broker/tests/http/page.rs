//! The page of examples: its calls exist, and are refused only where the page shows a refusal.

use stc_proto::pulsar::CommandPing;

use crate::{raw::Client, support::Site};

const PAGE: &str = include_str!("../../../docs/control-api.md");
const SEGMENT: &str = "segment://public/default/orders/0000-7fff-0";

/// A call as the page shows it.
#[derive(Debug, Default)]
struct Example {
    method: Option<String>,
    path: String,
    body: Option<String>,
    shown: String,
}

/// Splits a command into words; quotes are single ones.
fn words(command: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (i, part) in command.split('\'').enumerate() {
        if i % 2 == 1 {
            all.push(part.to_owned());
        } else {
            all.extend(part.split_whitespace().filter(|word| *word != "\\").map(str::to_owned));
        }
    }
    all
}

fn example(block: &str) -> Option<Example> {
    let command = block.strip_prefix("$ curl ")?;
    let (command, shown) = match command.split_once('\n') {
        // Long commands go on in a second line.
        Some((first, rest)) if first.ends_with('\\') => {
            let (second, shown) = rest.split_once('\n').unwrap_or((rest, ""));
            (format!("{first} {}", second.trim_start_matches('>')), shown)
        }
        Some((first, shown)) => (first.to_owned(), shown),
        None => (command.to_owned(), ""),
    };
    let mut example = Example { shown: shown.to_owned(), ..Example::default() };
    let mut words = words(&command).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-X" => example.method = words.next(),
            "-d" => example.body = words.next(),
            "-w" | "-m" => drop(words.next()),
            "|" => break,
            url if url.starts_with("localhost:") => example.path = url[url.find('/').unwrap()..].to_owned(),
            _ => {}
        }
    }
    Some(example)
}

#[tokio::test(start_paused = true)]
async fn the_page_shows_calls_that_exist() {
    let site = Site::new("spec-1.0");
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let examples: Vec<Example> = blocks.filter_map(example).collect();
    assert!(examples.len() > 25, "{examples:?}");
    let mut producer = None;
    for example in examples {
        let method = example.method.as_deref().unwrap_or(if example.body.is_some() { "POST" } else { "GET" });
        // The page's producer sends before the page looks at faults and at held frames.
        if method == "GET" && (example.path.ends_with("/faults") || example.path.ends_with("/held")) {
            if producer.is_none() {
                let mut client = Client::to_owner(&site.cluster, SEGMENT).await;
                client.producer(1, SEGMENT, "shop").await;
                producer = Some(client);
            }
            if let Some(client) = &mut producer {
                for sequence_id in 0..2 {
                    client.publish(1, sequence_id, "hello").await;
                }
                // Once the last one is in the journal the broker has dealt with all.
                let control = site.cluster.control();
                let before = control.cluster().read(|c| c.journal().next_number());
                client.send(CommandPing {}).await;
                control.wait_for_from(before, |record| record.event.name() == "PONG").await;
            }
        }
        if example.path.contains("/follow") {
            continue; // it has no end; tests/http/tcp.rs reads it
        }
        let answer = match &example.body {
            Some(body) => site.call_with(method, &example.path, body.clone()).await,
            None => site.call(method, &example.path).await,
        };
        let refused = example.shown.starts_with(r#"{"reason""#);
        assert_eq!(answer.status.is_success(), !refused, "{example:?}: {} {}", answer.status, answer.body);
        if refused {
            assert_eq!(answer.body, example.shown, "{example:?}");
        }
    }
}
