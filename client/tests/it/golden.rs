//! Bytes that earlier releases wrote and applications keep (stability §4.3): every release restores them.

use std::{fs, path::Path};

use stc_client::{Category, Checkpoint, MessageId};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The lines of a golden file: names and bytes.
fn golden(file: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, hex) = line.split_once(' ').unwrap();
            (name.to_owned(), bytes(hex))
        })
        .collect()
}

#[test]
fn message_identifiers_of_version_1_are_restored_in_their_order() {
    let golden = golden("message-ids-v1.hex");
    assert_eq!(golden.len(), 10);
    let restored: Vec<MessageId> =
        golden.iter().map(|(name, bytes)| MessageId::from_bytes(bytes).expect(name)).collect();
    assert_eq!(restored.first(), Some(&MessageId::earliest()));
    assert_eq!(restored.last(), Some(&MessageId::latest()));
    assert!(restored.windows(2).all(|pair| pair[0] < pair[1]), "{restored:?}");
    for (id, (name, bytes)) in restored.iter().zip(&golden) {
        assert_eq!(&id.to_bytes(), bytes, "{name}");
    }
}

#[test]
fn checkpoints_of_version_1_are_restored() {
    let golden = golden("checkpoints-v1.hex");
    assert_eq!(golden.len(), 5);
    for (name, bytes) in golden {
        let restored = Checkpoint::from_bytes(&bytes).expect(&name);
        assert_eq!(restored.to_bytes(), bytes, "{name}");
        assert_eq!(restored == Checkpoint::earliest(), name == "earliest");
        assert_eq!(restored == Checkpoint::latest(), name == "latest");
    }
}

#[test]
fn what_is_no_identifier_is_refused_whatever_it_is() {
    for (name, mut bytes) in golden("message-ids-v1.hex") {
        bytes.push(0);
        assert!(MessageId::from_bytes(&bytes).is_err(), "{name} with a byte more");
        bytes.truncate(bytes.len() - 2);
        let error = MessageId::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.category(), Category::InvalidConfiguration, "{name} with a byte less");
    }
    assert!(MessageId::from_bytes(&[2, 0]).is_err(), "a version that is not known");
}
