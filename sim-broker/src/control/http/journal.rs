//! Reading the journal over HTTP: a part of it, the next record that matches, and all that follows as a stream.

use std::{convert::Infallible, marker::PhantomData, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures_util::stream;

use super::{
    table::{Call, Given, Lines, Refusal},
    types::{Line, Page, Part, Since, Wait},
};
use crate::control::Control;

/// How many records go into one chunk of a stream.
const CHUNK: usize = 500;

/// A part of the journal, at once.
pub(super) async fn read(control: Control, call: Call<Given<Part>, ()>) -> Result<Given<Page>, Refusal> {
    let Given(Part { from, limit }) = call.query;
    if !(1..=10_000).contains(&limit) {
        return Err(Refusal::bad_request(format!("limit: {limit} is not in 1..=10000")));
    }
    let (records, next, dropped) = control.cluster().read(|cluster| {
        let journal = cluster.journal();
        let records: Vec<_> = journal.from(from).take(limit).cloned().collect();
        let next = records.last().map_or_else(|| journal.next_number(), |last| last.n + 1);
        (records, next, journal.dropped())
    });
    // Rendering is the slow part; it does not hold the cluster up.
    Ok(Given(Page { records: records.iter().map(Line::from).collect(), next, dropped }))
}

/// The first record that matches: one that is there already, or the next that comes.
pub(super) async fn wait(control: Control, call: Call<(), Given<Wait>>) -> Result<Given<Line>, Refusal> {
    let Given(wait) = call.body;
    if let Some(nonsense) = wait.nonsense() {
        return Err(Refusal::bad_request(nonsense));
    }
    let limit = Duration::from_millis(wait.timeout_ms);
    tokio::select! {
        record = control.wait_for_from(wait.from, |record| wait.matches(record)) => Ok(Given(Line::from(&record))),
        () = tokio::time::sleep(limit) => {
            let reason = format!("no such record came within {} ms", wait.timeout_ms);
            Err(Refusal(StatusCode::REQUEST_TIMEOUT, reason))
        }
        () = control.cluster().stopped() => {
            Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, "the cluster shuts down".into()))
        }
    }
}

/// Every record from a number on, as they come, until the reader goes away.
pub(super) async fn follow(control: Control, call: Call<Given<Since>, ()>) -> Result<Lines<Line>, Refusal> {
    let Given(Since { from }) = call.query;
    let chunks = stream::unfold((control, from), async |(control, from)| {
        // A cluster that shuts down waits for its readers: they end with it.
        tokio::select! {
            _ = control.wait_for_from(from, |_| true) => {}
            () = control.cluster().stopped() => return None,
        }
        let records: Vec<_> =
            control.cluster().read(|cluster| cluster.journal().from(from).take(CHUNK).cloned().collect());
        let next = records.last().map_or(from, |last| last.n + 1);
        let text: String = records.iter().map(|record| format!("{}\n", record.to_json())).collect();
        Some((Ok::<_, Infallible>(Bytes::from(text)), (control, next)))
    });
    Ok(Lines(Body::from_stream(chunks), PhantomData))
}
