//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// Below the range from which Linux takes the ports of outgoing connections, so that nobody takes a free port by
/// accident between the moment it is picked here and the moment the broker binds it, and a client that knocks on it until
/// somebody listens does not end up connected to itself.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that can be bound now and is not in `taken`. `start` spreads concurrent callers over the range.
pub(super) fn free(start: u32, taken: &[u16]) -> anyhow::Result<u16> {
    let size = u32::from(RANGE.end - RANGE.start);
    for offset in 0..size {
        let Ok(step) = u16::try_from(start.wrapping_add(offset) % size) else { continue };
        let port = RANGE.start + step;
        if !taken.contains(&port) && is_free(port) {
            return Ok(port);
        }
    }
    bail!("no free port between {} and {} on 127.0.0.1", RANGE.start, RANGE.end - 1)
}

/// Two ports that can be bound now. No other call in this process gives one of them.
pub(super) fn pair() -> anyhow::Result<[u16; 2]> {
    static GIVEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut next = || {
        let port = free(own_start(), &given)?;
        given.push(port);
        anyhow::Ok(port)
    };
    Ok([next()?, next()?])
}

/// Where this process begins to look: other ones begin elsewhere.
pub(super) fn own_start() -> u32 {
    std::process::id().wrapping_mul(97)
}

/// Whether the port can be bound on loopback.
pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_over_bound_and_taken_ports() {
        let first = free(7, &[]).unwrap();
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let second = free(7, &[]).unwrap();
        assert_ne!(first, second);
        assert!(!free(7, &[second]).is_ok_and(|port| port == second || port == first));
        assert!(RANGE.contains(&second));
    }

    #[test]
    fn gives_no_port_of_a_pair_twice() {
        let ([a, b], [c, d]) = (pair().unwrap(), pair().unwrap());
        assert_eq!(std::collections::BTreeSet::from([a, b, c, d]).len(), 4);
    }
}
