//! A seeded bijection of `0..size`, and its inverse.

use crate::checks::{check_size, require};
use crate::error::Result;

/// Rounds of the network. Each half is changed twice.
const ROUNDS: usize = 4;

/// The numbers below `size` in another order, drawn from a seed.
///
/// A Feistel network with cycle walking. The network splits a number of `k` bits, the fewest that
/// hold `size - 1`, into two halves, and adds to one half, bit by bit, what a function makes of the
/// other. Such a step is undone by itself for any function. What comes out may be `size` or
/// more: then it goes in again, until it is below.
///
/// It promises a bijection for each seed and size, the same on every machine; an inverse that costs
/// as much; and, on the mean over all numbers, fewer than two passes through the network for each. It
/// keeps no table. It does not promise secrecy: Luby and Rackoff's theorem needs functions that no one
/// can distinguish from random ones, and this one is made to be fast. A single number may need more
/// passes, but never more than there are numbers from `size` up to `2^k`, and one.
///
/// Sources: Luby and Rackoff 1988 for the network; Black and Rogaway 2002 for the walk; Steele, Lea
/// and Flood 2014 (SplitMix) for the function and the keys.
///
/// ```
/// use quadrivium::parallel::Shuffle;
///
/// let shuffle = Shuffle::new(10, 42)?;
/// let order: Vec<usize> = (0..10).map(|i| shuffle.apply(i)).collect();
/// let mut sorted = order.clone();
/// sorted.sort_unstable();
/// assert_eq!(sorted, (0..10).collect::<Vec<_>>()); // each number once
/// assert_eq!(shuffle.undo(order[7]), 7);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    size: usize,
    /// Bits of the low half; the high half has as many or one more.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Shuffle {
    /// The bijection of the numbers below `size` that belongs to `seed`.
    ///
    /// # Errors
    /// A size of 0, or of more elements than memory has addresses for.
    pub fn new(size: usize, seed: u64) -> Result<Self> {
        require(size > 0, "size", "at least 1: there is nothing to shuffle", 0.0)?;
        check_size("what is shuffled", &(size,))?;
        let bits = usize::BITS - (size - 1).leading_zeros();
        let low_bits = bits / 2;
        let mask = |bits: u32| (1u64 << bits) - 1;
        let mut state = seed;
        let keys = [(); ROUNDS].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        let (low_mask, high_mask) = (mask(low_bits), mask(bits - low_bits));
        Ok(Self { size, low_bits, low_mask, high_mask, keys })
    }

    /// Where a number goes. A number that is not below the size stays where it is.
    pub fn apply(&self, number: usize) -> usize {
        self.walk(number, |x| self.forth(x))
    }

    /// The number that went there. A number that is not below the size stays where it is.
    pub fn undo(&self, number: usize) -> usize {
        self.walk(number, |x| self.back(x))
    }

    // ANCHOR: walk
    /// Goes on until the number is below the size again. It ends: `step` is a bijection of finitely many
    /// numbers, so going on leads back to `number` itself, which is below the size.
    fn walk(&self, number: usize, step: impl Fn(u64) -> u64) -> usize {
        if number >= self.size {
            return number;
        }
        let mut x = step(number as u64);
        while x >= self.size as u64 {
            x = step(x);
        }
        x as usize
    }

    /// One pass: each round changes one half by what the other half says.
    fn forth(&self, x: u64) -> u64 {
        (0..ROUNDS).fold(x, |x, round| self.round(round, x))
    }

    /// The same rounds from the last to the first.
    fn back(&self, x: u64) -> u64 {
        (0..ROUNDS).rev().fold(x, |x, round| self.round(round, x))
    }

    /// Twice the same round changes nothing: the half that is read stays as it is.
    fn round(&self, round: usize, x: u64) -> u64 {
        let (high, low) = (x >> self.low_bits, x & self.low_mask);
        let key = self.keys[round];
        let (high, low) = match round % 2 {
            0 => (high ^ mix(key ^ low) & self.high_mask, low),
            _ => (high, low ^ mix(key ^ high) & self.low_mask),
        };
        high << self.low_bits | low
    }
    // ANCHOR_END: walk
}

/// The last step of SplitMix64: every bit of the input is in every bit of the output.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The walks of two numbers share no place: each is a piece of a cycle between two numbers below the
    /// size. All walks together therefore have at most as many passes as the network has numbers, and
    /// these are fewer than twice the size.
    #[test]
    fn fewer_than_two_passes_on_the_mean() {
        for size in (1..70).chain([1000, 1024, 1025, 65_537]) {
            let shuffle = Shuffle::new(size, 42).unwrap();
            let passes = Cell::new(0usize);
            let counted = |step: fn(&Shuffle, u64) -> u64| {
                passes.set(0);
                for number in 0..size {
                    shuffle.walk(number, |x| {
                        passes.set(passes.get() + 1);
                        step(&shuffle, x)
                    });
                }
                passes.get()
            };
            let numbers = size.next_power_of_two();
            assert!((size..=numbers).contains(&counted(Shuffle::forth)), "{size}");
            assert!((size..=numbers).contains(&counted(Shuffle::back)), "{size}");
        }
    }

    /// The first outputs of SplitMix64 from seed 0, as its authors' program prints them.
    #[test]
    fn the_keys_are_those_of_splitmix64() {
        let keys = Shuffle::new(1, 0).unwrap().keys;
        assert_eq!(
            keys[..3],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]
        );
    }
}
