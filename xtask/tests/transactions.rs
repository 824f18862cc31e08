//! The explorer of transactions: it finds nothing at the reference client, and finds what is broken on purpose.

use stc_runner::client::reference::Deviant;
use xtask::transactions::explore;

#[test]
fn every_transaction_is_whole_or_not_at_all() {
    let outcome = explore(1..101, None).unwrap();
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.missing(), [""; 0], "{:?}", outcome.figures);
}

#[test]
fn what_breaks_transactions_is_found() {
    let breaking = [
        "abort-commits",
        "acks-at-once",
        "acks-outside-transaction",
        "commit-aborts",
        "commit-waits-for-nothing",
        "first-part-only",
        "no-transaction-timeout",
        "sends-outside-transaction",
        "skips-parts",
    ];
    for name in breaking {
        let deviant = Deviant::by_name(name).unwrap();
        let outcome = explore(1..21, Some(deviant)).unwrap();
        assert!(!outcome.violations.is_empty(), "nothing was found at {name}");
    }
}

#[test]
fn a_seed_decides_everything() {
    let figures = || format!("{:?}", explore(7..10, None).unwrap().figures);
    assert_eq!(figures(), figures());
}
