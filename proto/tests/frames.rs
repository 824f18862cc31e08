//! Frames: any command survives the wire, and no bytes from a peer can harm the decoder.
// A helper of a test may fail the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use bytes::{Buf, Bytes, BytesMut};
use proptest::prelude::*;
use stc_proto::{Command, Decoder, Entry, Frame, FrameError};

mod support;

use support::arbitrary::any_command;

/// A limit that random sizes exceed as often as not.
const LIMIT: usize = 600;

/// Feeds bytes in pieces of these sizes; gives the frames, and the error that ended the stream.
fn feed(bytes: &[u8], pieces: &[usize]) -> (Vec<Frame>, Option<FrameError>) {
    let (decoder, mut buf, mut frames) = (Decoder::new(LIMIT), BytesMut::new(), Vec::new());
    let mut rest = bytes;
    let mut pieces = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at((*pieces.next().unwrap()).min(rest.len()));
        rest = behind;
        buf.extend_from_slice(piece);
        loop {
            let held = buf.len();
            match decoder.decode(&mut buf) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                // Taken off the buffer, so that the stream can go on.
                Err(FrameError::UnknownCommand(_)) => assert!(buf.len() < held),
                Err(error) => return (frames, Some(error)),
            }
        }
        // BytesMut may double what it is asked for.
        assert!(buf.len() < 4 + LIMIT, "{} bytes are kept for one frame", buf.len());
        assert!(buf.capacity() <= 2 * (4 + LIMIT + piece.len()), "{} bytes are reserved", buf.capacity());
    }
    (frames, None)
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let payload = prop::option::of(prop::collection::vec(any::<u8>(), 1..40).prop_map(Bytes::from));
    (any_command(), payload).prop_map(|(command, payload)| Frame { command, payload })
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..50, 1..8)
}

/// Bytes that look like frames: the sizes fit often enough to get past the first checks.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let sizes = (0u32..40, 0u32..40);
    let framed =
        (sizes, prop::collection::vec(any::<u8>(), 0..40)).prop_map(|((slack, command), mut body)| {
            let mut bytes = (command + 4 + slack % 3).to_be_bytes().to_vec();
            bytes.extend(command.to_be_bytes());
            bytes.append(&mut body);
            bytes
        });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), framed]
}

proptest! {
    #[test]
    fn any_sequence_of_frames_survives_any_fragmentation(
        frames in prop::collection::vec(any_frame(), 1..4),
        pieces in pieces(),
    ) {
        let mut bytes = BytesMut::new();
        let small: Vec<Frame> = frames.into_iter().filter(|frame| frame.to_bytes().len() <= LIMIT).collect();
        small.iter().for_each(|frame| frame.encode(&mut bytes));
        prop_assert_eq!(feed(&bytes, &pieces), (small, None));
    }

    #[test]
    fn any_command_keeps_its_length_and_its_fields(command in any_command()) {
        let mut bytes = BytesMut::new();
        command.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), command.encoded_len());
        let json = command.fields();
        prop_assert_eq!(stc_proto::fields::command_from_json(command.name(), &json).unwrap(), command);
    }

    #[test]
    fn soup_gives_frames_or_an_error(bytes in soup(), pieces in pieces()) {
        let (frames, _) = feed(&bytes, &pieces);
        for frame in frames {
            frame.command.fields();
            frame.payload.map(Entry::parse);
        }
    }

    #[test]
    fn a_damaged_frame_gives_frames_or_an_error(
        frame in any_frame(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
        pieces in pieces(),
    ) {
        let mut bytes = frame.to_bytes().to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for whole in [&bytes[..], &bytes[..end.index(bytes.len())]] {
            for frame in feed(whole, &pieces).0 {
                // What was accepted goes on unchanged. NaN is not equal to itself, so as JSON.
                let again = Decoder::default().decode(&mut BytesMut::from(&frame.to_bytes()[..])).unwrap().unwrap();
                prop_assert_eq!(again.command.fields(), frame.command.fields());
            }
        }
    }
}

/// A frame of a `BaseCommand` given as bytes.
fn frame_of(command: &[u8]) -> BytesMut {
    let size = command.len() as u32;
    let mut bytes = BytesMut::from(&(size + 4).to_be_bytes()[..]);
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(command);
    bytes
}

fn decode(mut bytes: BytesMut) -> Result<Option<Frame>, FrameError> {
    Decoder::new(LIMIT).decode(&mut bytes)
}

#[test]
fn sizes_that_cannot_be_are_refused_as_soon_as_they_are_seen() {
    let limit_plus_1 = &601u32.to_be_bytes()[..];
    assert_eq!(decode(limit_plus_1.into()), Err(FrameError::TooLarge { size: 601, limit: LIMIT }));
    assert_eq!(decode([0, 0, 0, 3][..].into()), Err(FrameError::CommandSize { command: 0, total: 3 }));
    let longer = [0, 0, 0, 9, 0, 0, 0, 6];
    assert_eq!(decode(longer[..].into()), Err(FrameError::CommandSize { command: 6, total: 9 }));
    assert_eq!(decode([0, 0, 2, 88][..].into()), Ok(None));
}

#[test]
fn commands_without_type_or_body_are_refused() {
    assert_eq!(decode(frame_of(&[])), Err(FrameError::NoType));
    assert_eq!(decode(frame_of(&[8, 6])), Err(FrameError::NoBody("SEND")));
    // The body of another type does not count.
    assert_eq!(decode(frame_of(&[8, 6, 0x9a, 1, 0])), Err(FrameError::NoBody("SEND")));
    assert_eq!(decode(frame_of(&[8, 69])), Err(FrameError::UnknownCommand(69)));
    assert!(matches!(decode(frame_of(&[8, 18, 0x92, 1, 5])), Err(FrameError::Malformed(_))));
}

#[test]
fn the_type_may_follow_the_body_and_the_last_of_each_counts() {
    let ping = Ok(Some(Frame::from(Command::Ping(Default::default()))));
    assert_eq!(decode(frame_of(&[0x92, 1, 0, 8, 18])), ping);
    assert_eq!(decode(frame_of(&[0x92, 1, 0, 8, 19, 8, 18])), ping);
    assert_eq!(decode(frame_of(&[8, 19, 0x92, 1, 0, 8, 18])), ping);
    assert_eq!(decode(frame_of(&[8, 19, 0x9a, 1, 0, 8, 18])), Err(FrameError::NoBody("PING")));
}

#[test]
fn an_unknown_command_leaves_the_next_frame_readable() {
    let mut bytes = frame_of(&[8, 69, 0xaa, 4, 0]);
    Frame::from(Command::Ping(Default::default())).encode(&mut bytes);
    assert_eq!(Decoder::default().decode(&mut bytes), Err(FrameError::UnknownCommand(69)));
    let ping = Decoder::default().decode(&mut bytes).unwrap().unwrap();
    assert_eq!(ping.command.name(), "PING");
    assert!(!bytes.has_remaining());
}
