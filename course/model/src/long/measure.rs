//! The loss by position, far past the length of training.
//!
//! The held-out text is cut into blocks of `s` tokens, the length of training. A window begins at each block and has
//! [`LONGER`] of them. What is asked about are the blocks that can be at every place of a window: all but the first
//! seven. Each band of `s` positions is therefore a mean over the same tokens, and bands differ only in how much comes
//! before them. The first is what a model has that forgets all but its own block.

use crate::batches::Batch;
use crate::corpus::mean;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::sizes::LONGER;

/// Points of a curve in a band.
const POINTS: usize = 4;

/// The blocks that are asked about, of a text of so many tokens.
pub fn blocks(tokens: usize, s: usize) -> std::ops::Range<usize> {
    LONGER - 1..tokens.saturating_sub(1) / s
}

/// Tokens that a text must have: one block to ask about.
pub fn least(s: usize) -> usize {
    LONGER * s + 1
}

/// Tokens `[1, len]`, and those that follow them.
fn window(tokens: &[usize], start: usize, len: usize) -> Batch {
    let row = |shift: usize| tokens[start + shift..start + shift + len].to_vec();
    Batch { ids: row(0), next: row(1), shape: (1, len) }
}

/// Why a model has no position past its training, if it has none.
///
/// # Errors
/// What the library refuses for another reason.
pub fn end(network: &dyn Network, tokens: &[usize], s: usize) -> Result<Option<String>> {
    match network.losses(&window(tokens, 0, s + 1)) {
        Err(Error::Library(error @ quadrivium::Error::Rows { .. })) => Ok(Some(error.to_string())),
        other => other.map(|_| None),
    }
}

/// The mean loss at each of the first `bands * s` positions, of whole windows.
///
/// # Errors
/// What the library refuses.
pub fn by_position(
    network: &dyn Network,
    tokens: &[usize],
    s: usize,
    bands: usize,
) -> Result<Vec<f64>> {
    let asked = blocks(tokens.len(), s);
    let mut sums = vec![0.0; bands * s];
    for first in 0..asked.end {
        let last = (first + bands).min(asked.end);
        if last <= asked.start {
            continue; // it has no block that is asked about
        }
        let losses = network.losses(&window(tokens, first * s, (last - first) * s))?;
        let skipped = asked.start.saturating_sub(first) * s;
        for (sum, loss) in sums.iter_mut().zip(losses).skip(skipped) {
            *sum += loss;
        }
    }
    Ok(sums.into_iter().map(|sum| sum / asked.len() as f64).collect())
}

/// The same for an encoding that depends on the length of the text: each block is the end of its window.
///
/// # Errors
/// What the library refuses.
pub fn by_length(network: &dyn Network, tokens: &[usize], s: usize) -> Result<Vec<f64>> {
    let asked = blocks(tokens.len(), s);
    let mut sums = vec![0.0; LONGER * s];
    for block in asked.clone() {
        for before in 0..LONGER {
            let len = (before + 1) * s;
            let losses = network.losses(&window(tokens, (block - before) * s, len))?;
            for (sum, loss) in sums.iter_mut().zip(losses).skip(before * s) {
                *sum += loss;
            }
        }
    }
    Ok(sums.into_iter().map(|sum| sum / asked.len() as f64).collect())
}

/// The mean of each band of `s` positions.
pub fn bands(losses: &[f64], s: usize) -> Vec<f64> {
    losses.chunks(s).map(mean).collect()
}

/// A smooth curve: means of a quarter of a band, each at its middle position, counted from 1.
pub fn curve(losses: &[f64], s: usize) -> Vec<(f64, f64)> {
    let width = (s / POINTS).max(1);
    let point = |(nth, losses): (usize, &[f64])| {
        ((nth * width) as f64 + (losses.len() as f64 + 1.0) / 2.0, mean(losses))
    };
    losses.chunks(width).enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Seen;
    use quadrivium::checkpoint::CheckpointConfig;
    use std::cell::RefCell;
    use std::path::Path;

    /// Its loss of a token is the token's number plus a hundredth of its position. It counts what it is asked.
    struct Counts {
        longest: usize,
        asked: RefCell<Vec<usize>>,
        config: CheckpointConfig,
    }

    impl Counts {
        fn up_to(longest: usize) -> Self {
            let config = crate::sizes::Size::Tiny.config();
            Self { longest, asked: RefCell::default(), config }
        }
    }

    impl Network for Counts {
        fn config(&self) -> &CheckpointConfig {
            &self.config
        }
        fn look(&mut self, _: &Batch) -> Result<Seen> {
            unreachable!("nothing is trained here")
        }
        fn update(&mut self, _: f64) -> Result<()> {
            Ok(())
        }
        fn losses(&self, batch: &Batch) -> Result<Vec<f64>> {
            let (_, s) = batch.shape;
            if s > self.longest {
                return Err(quadrivium::Error::Rows { start: 0, end: s, rows: self.longest }.into());
            }
            self.asked.borrow_mut().push(s);
            Ok(batch.ids.iter().enumerate().map(|(t, id)| *id as f64 + t as f64 / 100.0).collect())
        }
        fn save(&mut self, _: &Path) -> Result<()> {
            Ok(())
        }
        fn load(&mut self, _: &Path, _: usize) -> Result<()> {
            Ok(())
        }
        fn take_weights(&mut self, _: &Path) -> Result<()> {
            Ok(())
        }
    }

    /// Ten blocks of two tokens, and the token after them.
    fn text() -> Vec<usize> {
        (0..21).collect()
    }

    #[test]
    fn every_band_asks_about_the_same_tokens() {
        let (tokens, s) = (text(), 2);
        // Blocks 7, 8 and 9: the tokens 14 to 19, in the mean 16 at a block's first place and 17 at its second.
        let want: Vec<f64> = (0..16).map(|t| (16 + t % 2) as f64 + t as f64 / 100.0).collect();
        let near = |got: &[f64]| {
            got.len() == 16 && got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-9)
        };
        let network = Counts::up_to(99);
        let got = by_position(&network, &tokens, s, LONGER).unwrap();
        assert!(near(&got), "{got:?}");
        // The same numbers from windows that end with their block: 3 blocks at 8 places.
        let network = Counts::up_to(99);
        let got = by_length(&network, &tokens, s).unwrap();
        assert!(near(&got), "{got:?}");
        assert_eq!(network.asked.borrow().len(), 24);
        // And the first band alone, of the same blocks.
        let network = Counts::up_to(2);
        let first = by_position(&network, &tokens, s, 1).unwrap();
        assert!(first.len() == 2 && (first[1] - 17.01).abs() < 1e-9, "{first:?}");
        assert_eq!(*network.asked.borrow(), [2, 2, 2]);
    }

    #[test]
    fn a_table_that_ends_is_no_failure() {
        assert_eq!(end(&Counts::up_to(3), &text(), 2).unwrap(), None);
        let words = end(&Counts::up_to(2), &text(), 2).unwrap().unwrap();
        assert!(words.contains("a table of 2 rows"), "{words}");
    }

    #[test]
    fn bands_and_points_are_means() {
        let losses: Vec<f64> = (1..=16).map(f64::from).collect();
        assert_eq!(bands(&losses, 8), [4.5, 12.5]);
        let points = curve(&losses, 8);
        assert_eq!(points.len(), 8);
        assert_eq!((points[0], points[7]), ((1.5, 1.5), (15.5, 15.5)));
        assert_eq!(curve(&losses[..2], 2), [(1.0, 1.0), (2.0, 2.0)]);
        assert!(blocks(least(16) - 1, 16).is_empty());
        assert_eq!(blocks(least(16), 16), 7..8);
    }
}
