//! The recordings of the real 5.0.1 (`proto/tests/recordings`), replayed against `pulsar-5.0.1`: the client's frames and
//! the admin calls go in as they were recorded, and what the simulated broker sends is compared frame by frame, field by
//! field, with what the real one sent.
//!
//! `cargo test -p sim-broker --test recordings -- --nocapture` prints the share of frames that agree, and every
//! difference; `docs/likeness.md` has the reasons.
// A helper of a test may fail the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod compare;
mod replay;
mod row;

use std::collections::BTreeMap;

/// How many frames of each recording agree at least, and when the recorded broker reported loads in it (ms; 0 when it
/// did not). Raise a number when it can be; never lower one without a reason in
/// `docs/likeness.md`.
const AGREE: [(&str, usize, u64); 16] = [
    ("a_producer", 143, 0),
    ("b_split_merge", 272, 0),
    ("c2_stream_drain", 249, 105),
    ("c3_stream_grace", 126, 0),
    ("c_stream", 212, 2745),
    ("d_queue", 155, 8918),
    ("e_checkpoint", 273, 2877),
    ("f_txn", 175, 3701),
    ("g_namespace", 185, 4631),
    ("h2_delete_force", 89, 0),
    ("h_errors", 255, 0),
    ("i_reconnect", 480, 3754),
    ("j2_migrate_live", 304, 7720),
    ("j_migrate", 222, 3400),
    ("k_plain", 35, 0),
    ("p_ping", 38, 510),
];

#[tokio::test(start_paused = true)]
async fn the_simulated_broker_answers_as_the_recorded_one() {
    let (mut agree, mut all, mut extra) = (0, 0, 0);
    let mut fallen = Vec::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (name, least, round_ms) in AGREE {
        let rows = row::read(name);
        let replayed = replay::run(&rows, round_ms).await;
        let compared = compare::compare(&rows, &replayed);
        println!(
            "{name:16} {:4} of {:4} frames agree, {:3} more were sent",
            compared.agree, compared.all, compared.extra
        );
        for difference in &compared.differences {
            println!("    {difference}");
        }
        for (kind, count) in compared.kinds {
            *kinds.entry(kind).or_default() += count;
        }
        if compared.agree < least {
            fallen.push(format!("{name}: {} frames agree, {least} did", compared.agree));
        }
        agree += compared.agree;
        all += compared.all;
        extra += compared.extra;
    }
    println!("differences by kind:");
    for (kind, count) in &kinds {
        println!("    {count:4} {kind}");
    }
    let share = 100.0 * agree as f64 / all as f64;
    println!("{agree} of {all} frames agree ({share:.1} %), {extra} more were sent");
    assert!(fallen.is_empty(), "{fallen:#?}");
}
