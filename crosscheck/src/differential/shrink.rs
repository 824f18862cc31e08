//! Makes a diverging sequence shorter for as long as it still diverges.

use super::compare::Divergence;
use super::op::{Op, Pick};

/// A sequence that diverges, and where.
pub struct Shrunk {
    /// The steps that are left.
    pub ops: Vec<Op>,
    /// Where they diverge.
    pub divergence: Divergence,
}

/// Takes steps away, and makes those that stay smaller, with at most `budget` tries. `diverges` runs a sequence.
pub fn shrink(
    ops: &[Op],
    divergence: Divergence,
    mut budget: usize,
    mut diverges: impl FnMut(&[Op]) -> Option<Divergence>,
) -> Shrunk {
    let mut best = Shrunk { ops: ops.to_vec(), divergence };
    let mut attempt = |best: &mut Shrunk, ops: Vec<Op>| {
        if budget == 0 || ops == best.ops {
            return false;
        }
        budget -= 1;
        let Some(divergence) = diverges(&ops) else { return false };
        *best = Shrunk { ops, divergence };
        true
    };
    loop {
        let before = best.ops.clone();
        let mut shorter = best.ops.clone();
        shorter.truncate(best.divergence.step + 1);
        attempt(&mut best, shorter);
        for size in [4, 1] {
            let mut at = best.ops.len();
            while at > 0 {
                at = at.saturating_sub(size);
                let mut fewer = best.ops.clone();
                fewer.drain(at..(at + size).min(fewer.len()));
                attempt(&mut best, fewer);
            }
        }
        for at in 0..best.ops.len() {
            for smaller in best.ops.get(at).map(smaller).unwrap_or_default() {
                let mut ops = best.ops.clone();
                if let Some(op) = ops.get_mut(at) {
                    *op = smaller;
                }
                attempt(&mut best, ops);
            }
        }
        if best.ops == before {
            return best;
        }
    }
}

/// Simpler forms of one step, the simplest first.
fn smaller(op: &Op) -> Vec<Op> {
    match op {
        Op::Create { topic, segments } if *segments > 1 => vec![Op::Create { topic: *topic, segments: 1 }],
        Op::Produce { producer, keys } if keys.len() > 1 => {
            let few =
                |n: usize| Op::Produce { producer: *producer, keys: keys.iter().take(n).copied().collect() };
            vec![few(1), few(keys.len() / 2)]
        }
        Op::OpenProducer { producer, client, topic, exclusive, name, .. } => {
            let plain = |exclusive, batching, name| Op::OpenProducer {
                producer: *producer,
                client: *client,
                topic: *topic,
                exclusive,
                batching,
                name,
            };
            vec![plain(false, false, None), plain(*exclusive, false, *name), plain(*exclusive, false, None)]
        }
        Op::Split { topic, segment: Pick::Active(1..) } => {
            vec![Op::Split { topic: *topic, segment: Pick::Active(0) }]
        }
        _ => Vec::new(),
    }
}
