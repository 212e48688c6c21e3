//! What ranks that talk to each other cost, on paper: seconds from messages, bytes and rows.
//!
//! The model is that of Thakur, Rabenseifner and Gropp 2005: a message of `n` bytes takes `alpha + n beta` seconds, and
//! adding up `n` bytes takes `n gamma`. It knows no network that is shared, no hierarchy of fast and slow links, and no
//! work that hides communication. Nothing here communicates, and no parameter is built in: [`Costs::fitted`] takes them from
//! what was measured.

pub use super::fit::Measured;
use super::ownership::Ownership;
use crate::checks::require;
use crate::error::{Error, Result};

/// What a machine and its network take. All four are seconds, none is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// `alpha`: seconds of a message, however short it is.
    pub message: f64,
    /// `beta`: seconds for each byte of a message, 1 by the bandwidth of a link.
    pub byte: f64,
    /// `gamma`: seconds for each byte that is added to another.
    pub added: f64,
    /// Seconds for each row that a rank looks up in its shard.
    pub row: f64,
}

impl Costs {
    fn check(&self) -> Result<()> {
        let rule = "0 or a positive number of seconds, and finite";
        let all = [
            ("message", self.message),
            ("byte", self.byte),
            ("added", self.added),
            ("row", self.row),
        ];
        all.into_iter().try_for_each(|(name, s)| require(s >= 0.0 && s.is_finite(), name, rule, s))
    }
}

/// How an all-reduce is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllReduce {
    /// Pieces of one `w`-th travel around a ring, twice. The fewest bytes and the most messages. Source: Patarasuk
    /// and Yuan 2009.
    Ring,
    /// All bytes are exchanged with a partner at distance 1, 2, 4 and so on. The fewest messages. Source: Thakur,
    /// Rabenseifner and Gropp 2005.
    RecursiveDoubling,
    /// Half of the bytes, a quarter and so on are exchanged; then the same way back. The bytes of the ring in twice the
    /// messages of recursive doubling: Rabenseifner's algorithm, from the same paper.
    HalvingDoubling,
}

/// What one rank does in an all-reduce, on the longest path from the first message to the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Messages, one after the other.
    pub messages: f64,
    /// Bytes in these.
    pub bytes: f64,
    /// Bytes that are added to others.
    pub added: f64,
}

impl AllReduce {
    // ANCHOR: path
    /// What an all-reduce of `bytes` bytes costs among `world_size` ranks. A world of 1 costs nothing.
    ///
    /// The last two are made for a power of two, `p`. With other world sizes, `w - p` ranks give all they have to a
    /// neighbour before, and get the sum after: two messages more.
    ///
    /// # Errors
    /// A world size of 0; bytes that are negative or not finite.
    pub fn path(self, world_size: usize, bytes: f64) -> Result<Path> {
        if world_size == 0 {
            return Err(Error::Rank { rank: 0, world_size });
        }
        let rule = "0 or a positive number, and finite";
        require(bytes >= 0.0 && bytes.is_finite(), "bytes", rule, bytes)?;
        let w = world_size as f64;
        let levels = world_size.ilog2();
        let p = 2f64.powi(levels as i32);
        let levels = f64::from(levels);
        let inner = match self {
            Self::Ring => {
                let piece = bytes / w;
                let steps = w - 1.0;
                let (messages, bytes) = (2.0 * steps, 2.0 * steps * piece);
                return Ok(Path { messages, bytes, added: steps * piece });
            }
            Self::RecursiveDoubling => {
                Path { messages: levels, bytes: levels * bytes, added: levels * bytes }
            }
            Self::HalvingDoubling => {
                let most = (p - 1.0) / p * bytes;
                Path { messages: 2.0 * levels, bytes: 2.0 * most, added: most }
            }
        };
        let folded = if w == p { 0.0 } else { 1.0 };
        Ok(Path {
            messages: inner.messages + 2.0 * folded,
            bytes: inner.bytes + 2.0 * folded * bytes,
            added: inner.added + folded * bytes,
        })
    }
    // ANCHOR_END: path

    /// Seconds of an all-reduce: `messages alpha + bytes beta + added gamma`.
    ///
    /// # Errors
    /// A world size of 0; a number that is negative or not finite.
    pub fn seconds(self, costs: &Costs, world_size: usize, bytes: f64) -> Result<f64> {
        costs.check()?;
        let Path { messages, bytes, added } = self.path(world_size, bytes)?;
        Ok(messages * costs.message + bytes * costs.byte + added * costs.added)
    }
}

/// Seconds of a lookup and the sum over the ranks: the `rows` that the busiest rank looks up, then an all-reduce of
/// `bytes` bytes, which are `b s e` values.
///
/// `rows` is `b s` if each rank looks up a row for each token, and that of the busiest rank,
/// [`busiest_rows`], if a rank looks up its own only. The backward pass communicates nothing.
///
/// # Errors
/// A world size of 0; a number that is negative or not finite.
pub fn lookup_seconds(
    costs: &Costs,
    all_reduce: AllReduce,
    world_size: usize,
    rows: f64,
    bytes: f64,
) -> Result<f64> {
    require(rows >= 0.0 && rows.is_finite(), "rows", "0 or a positive number, and finite", rows)?;
    Ok(rows * costs.row + all_reduce.seconds(costs, world_size, bytes)?)
}

/// The rows that the busiest rank looks up for `tokens` tokens of a text with these counts: `tokens` times its share.
///
/// # Errors
/// More counts than there are ids; no tokens counted.
pub fn busiest_rows(ownership: &Ownership, counts: &[u64], tokens: f64) -> Result<f64> {
    let ratio = ownership.load(counts)?.max_over_mean();
    let rule = "of at least one token: otherwise no rank is the busiest";
    let ratio = ratio.ok_or(Error::Setting { name: "counts", rule, got: 0.0 })?;
    Ok(ratio / ownership.world_size() as f64 * tokens)
}

/// Numbers that are all-reduced for each token in a cross-entropy over a vocabulary that is cut: the largest logit, the
/// sum of exponentials, and the target's logit.
pub const CROSS_ENTROPY_NUMBERS: usize = 3;

// ANCHOR: cross_entropy
/// Seconds of the communication of a cross-entropy over a vocabulary that is cut, for `tokens` tokens and numbers of
/// `width` bytes.
///
/// Two all-reduces: the largest logits first, because the exponentials wait for them, then the sums together
/// with the targets' logits. Megatron-LM takes three. The gradient of the logits needs no communication.
/// The gradient of what the logits were computed from does: an all-reduce of `b s e` values, as after a lookup.
///
/// # Errors
/// A world size of 0; a number that is negative or not finite.
pub fn cross_entropy_seconds(
    costs: &Costs,
    all_reduce: AllReduce,
    world_size: usize,
    tokens: f64,
    width: f64,
) -> Result<f64> {
    let largest = all_reduce.seconds(costs, world_size, tokens * width)?;
    let rest = (CROSS_ENTROPY_NUMBERS - 1) as f64;
    Ok(largest + all_reduce.seconds(costs, world_size, rest * tokens * width)?)
}

/// Seconds of the other way: every rank gathers all logits, `[b, s, v]`, around a ring, and computes alone.
///
/// # Errors
/// A world size of 0; a number that is negative or not finite.
pub fn gathered_logits_seconds(
    costs: &Costs,
    world_size: usize,
    tokens: f64,
    vocab_size: usize,
    width: f64,
) -> Result<f64> {
    costs.check()?;
    // The second round of the ring: nothing is added.
    let Path { messages, bytes, .. } =
        AllReduce::Ring.path(world_size, tokens * vocab_size as f64 * width)?;
    Ok(messages / 2.0 * costs.message + bytes / 2.0 * costs.byte)
}
// ANCHOR_END: cross_entropy

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { message: 3.0, byte: 0.5, added: 0.25, row: 7.0 };

    /// What the busiest rank has done in each step of a simulated all-reduce, added up.
    #[derive(Default)]
    struct Ledger {
        messages: usize,
        numbers: usize,
        added: usize,
    }

    impl Ledger {
        /// A step in which no rank sends or receives more than `numbers`, and the longest adds `added`.
        fn step(&mut self, numbers: usize, added: usize) {
            self.messages += 1;
            self.numbers += numbers;
            self.added += added;
        }

        /// Compares with the formula, where a number is one byte. Halves and thirds are not exact, so the bound is
        /// that of a few roundings: 8 of 2^-53, of numbers that are all positive.
        fn compare(&self, path: Path, name: &str) {
            let of = [self.messages, self.numbers, self.added].map(|n| n as f64);
            for (counted, formula) in of.into_iter().zip([path.messages, path.bytes, path.added]) {
                let off = (counted - formula).abs();
                assert!(off <= 4.0 * f64::EPSILON * counted, "{name}: {of:?}, not {path:?}");
            }
        }
    }

    /// What `w` ranks hold: rank `r` has `r + 1` everywhere, so that each sum is `w (w + 1) / 2`.
    fn held(w: usize, numbers: usize) -> Vec<Vec<usize>> {
        (1..=w).map(|r| vec![r; numbers]).collect()
    }

    fn expect_sums(held: &[Vec<usize>]) {
        let w = held.len();
        assert!(held.iter().flatten().all(|&x| x == w * (w + 1) / 2), "{held:?}");
    }

    /// The ring, message by message: the numbers that the formula counts are those that travel.
    #[test]
    fn the_ring_is_counted_right() {
        for w in 1..=9 {
            let piece = 4;
            let (mut held, mut ledger) = (held(w, w * piece), Ledger::default());
            for step in 0..2 * (w - 1) {
                let before = held.clone();
                let adds = step < w - 1;
                for (rank, mine) in held.iter_mut().enumerate() {
                    let from = (rank + w - 1) % w;
                    // In both rounds piece `r - 1 - step` comes; in the second it is finished.
                    let nth = (from + 2 * w - step) % w;
                    for at in nth * piece..(nth + 1) * piece {
                        let old = if adds { mine[at] } else { 0 };
                        mine[at] = old + before[from][at];
                    }
                }
                ledger.step(piece, if adds { piece } else { 0 });
            }
            expect_sums(&held);
            ledger.compare(AllReduce::Ring.path(w, (w * piece) as f64).unwrap(), &format!("{w}"));
        }
    }

    /// Adds the ranks that are too many to their neighbours, runs `inner` on the others, and gives the sums back.
    fn folded(w: usize, numbers: usize, inner: impl Fn(&mut [Vec<usize>], &mut Ledger)) -> Ledger {
        let p = 1 << w.ilog2();
        let (mut held, mut ledger) = (held(w, numbers), Ledger::default());
        if p < w {
            let (kept, extra) = held.split_at_mut(p);
            for (kept, extra) in kept.iter_mut().zip(extra) {
                kept.iter_mut().zip(extra).for_each(|(x, y)| *x += *y);
            }
            ledger.step(numbers, numbers);
        }
        inner(&mut held[..p], &mut ledger);
        if p < w {
            let (kept, extra) = held.split_at_mut(p);
            kept.iter().zip(extra).for_each(|(kept, extra)| extra.clone_from(kept));
            ledger.step(numbers, 0);
        }
        expect_sums(&held);
        ledger
    }

    #[test]
    fn recursive_doubling_is_counted_right() {
        for w in 1..=17 {
            let ledger = folded(w, 12, |held, ledger| {
                for distance in (0..held.len().ilog2()).map(|level| 1 << level) {
                    let before = held.to_vec();
                    for (rank, mine) in held.iter_mut().enumerate() {
                        let partner = &before[rank ^ distance];
                        mine.iter_mut().zip(partner).for_each(|(x, y)| *x += *y);
                    }
                    ledger.step(12, 12);
                }
            });
            ledger.compare(AllReduce::RecursiveDoubling.path(w, 12.0).unwrap(), &format!("{w}"));
        }
    }

    #[test]
    fn halving_and_doubling_is_counted_right() {
        for w in 1..=17 {
            let ledger = folded(w, 32, |held, ledger| {
                let levels = held.len().ilog2();
                let mut owned: Vec<_> = held.iter().map(|_| 0..32usize).collect();
                for distance in (0..levels).rev().map(|level| 1 << level) {
                    let before = held.to_vec();
                    for (rank, (mine, range)) in held.iter_mut().zip(&mut owned).enumerate() {
                        let middle = (range.start + range.end) / 2;
                        let upper = rank & distance != 0;
                        *range = if upper { middle..range.end } else { range.start..middle };
                        for at in range.clone() {
                            mine[at] += before[rank ^ distance][at];
                        }
                    }
                    ledger.step(owned[0].len(), owned[0].len());
                }
                for distance in (0..levels).map(|level| 1 << level) {
                    let (before, parts) = (held.to_vec(), owned.clone());
                    for (rank, (mine, own)) in held.iter_mut().zip(&mut owned).enumerate() {
                        let partner = rank ^ distance;
                        let other = parts[partner].clone();
                        mine[other.clone()].copy_from_slice(&before[partner][other.clone()]);
                        *own = own.start.min(other.start)..own.end.max(other.end);
                    }
                    ledger.step(parts[0].len(), 0);
                }
            });
            ledger.compare(AllReduce::HalvingDoubling.path(w, 32.0).unwrap(), &format!("{w}"));
        }
    }

    #[test]
    fn seconds_by_hand() {
        let lookup = |all_reduce, w| lookup_seconds(&COSTS, all_reduce, w, 10.0, 8.0).unwrap();
        assert_eq!(lookup(AllReduce::Ring, 1), 70.0);
        // 6 messages, 6 pieces of 2 bytes, 3 of them added.
        assert_eq!(lookup(AllReduce::Ring, 4), 70.0 + 18.0 + 6.0 + 1.5);
        // 2 messages of 8 bytes.
        assert_eq!(lookup(AllReduce::RecursiveDoubling, 4), 70.0 + 6.0 + 8.0 + 4.0);
        // 4 messages of 4, 2, 2 and 4 bytes.
        assert_eq!(lookup(AllReduce::HalvingDoubling, 4), 70.0 + 12.0 + 6.0 + 1.5);
        // 5 ranks: one gives its 8 bytes to a neighbour before, and gets them back after.
        assert_eq!(lookup(AllReduce::RecursiveDoubling, 5), 70.0 + 12.0 + 16.0 + 6.0);
    }

    /// 3 numbers a token for any vocabulary; the logits are `v` numbers.
    #[test]
    fn a_cross_entropy_sends_three_numbers_a_token() {
        let bytes = Costs { message: 0.0, byte: 1.0, added: 0.0, row: 0.0 };
        let (w, tokens, width) = (4, 64.0, 4.0);
        let all = cross_entropy_seconds(&bytes, AllReduce::Ring, w, tokens, width).unwrap();
        assert_eq!(all, 1.5 * 3.0 * tokens * width);
        let gathered = gathered_logits_seconds(&bytes, w, tokens, 1000, width).unwrap();
        assert_eq!(gathered, 0.75 * 1000.0 * tokens * width);
        let messages = Costs { message: 1.0, byte: 0.0, ..bytes };
        let all = |all_reduce| cross_entropy_seconds(&messages, all_reduce, w, tokens, width);
        assert_eq!(all(AllReduce::Ring), Ok(12.0));
        assert_eq!(all(AllReduce::RecursiveDoubling), Ok(4.0));
        assert_eq!(gathered_logits_seconds(&messages, w, tokens, 1000, width), Ok(3.0));
    }

    #[test]
    fn the_busiest_rank_has_its_share() {
        use super::super::Sharing;
        let blocks = Ownership::new(Sharing::Contiguous, 4, 2).unwrap();
        assert_eq!(busiest_rows(&blocks, &[6, 3, 2, 1], 120.0), Ok(90.0));
        assert!(matches!(busiest_rows(&blocks, &[0; 4], 1.0), Err(Error::Setting { .. })));
        assert!(matches!(busiest_rows(&blocks, &[1; 5], 1.0), Err(Error::NoOwner { .. })));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let all_reduces =
            [AllReduce::Ring, AllReduce::RecursiveDoubling, AllReduce::HalvingDoubling];
        for all_reduce in all_reduces {
            let none = Err(Error::Rank { rank: 0, world_size: 0 });
            assert_eq!(all_reduce.seconds(&COSTS, 0, 1.0), none);
            for bad in [-1.0, f64::NAN, f64::INFINITY] {
                assert!(all_reduce.seconds(&COSTS, 2, bad).is_err());
                assert!(lookup_seconds(&COSTS, all_reduce, 2, bad, 1.0).is_err());
                assert!(cross_entropy_seconds(&COSTS, all_reduce, 2, bad, 4.0).is_err());
                assert!(gathered_logits_seconds(&COSTS, 2, bad, 10, 4.0).is_err());
                for costs in [
                    Costs { message: bad, ..COSTS },
                    Costs { byte: bad, ..COSTS },
                    Costs { added: bad, ..COSTS },
                    Costs { row: bad, ..COSTS },
                ] {
                    assert!(matches!(
                        lookup_seconds(&costs, all_reduce, 2, 1.0, 1.0),
                        Err(Error::Setting { .. })
                    ));
                    assert!(gathered_logits_seconds(&costs, 2, 1.0, 10, 4.0).is_err());
                }
            }
        }
    }
}
