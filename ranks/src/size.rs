//! The models of `cargo course ranks`, for each number of ranks that may share one.

use crate::communicator::Order;
use crate::error::Result;
use crate::train::{Grid, Steps, Trainer};
use quadrivium::model::LlamaConfig;
use quadrivium::{NtkAwareRopeConfig, PastCache};

/// A model: its blocks are those of `cargo course model`, and its vocabulary is one that many numbers of ranks divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// `v`.
    pub vocab_size: usize,
    /// `h`.
    pub hidden_size: usize,
    /// `b` and `s`.
    pub batch: (usize, usize),
    tiny: bool,
}

type Small<const N: usize> = Trainer<N, 128, 4, 2, 32, 384, 4>;
type Tiny<const N: usize> = Trainer<N, 16, 2, 1, 8, 48, 2>;

/// Rows that are added up together in the fixed order. They fill every shard.
pub const BLOCK: usize = 4;

impl Size {
    /// 4 blocks of 128 elements.
    pub const SMALL: Self =
        Self { vocab_size: 576, hidden_size: 128, batch: (4, 128), tiny: false };
    /// 2 blocks of 16 elements, for tests.
    pub const TINY: Self = Self { vocab_size: 288, hidden_size: 16, batch: (2, 16), tiny: true };

    /// Refuses a number of ranks that has no shards.
    ///
    /// # Errors
    /// A number that does not divide the vocabulary, or that was not compiled.
    pub fn check(&self, world_size: usize) -> Result<()> {
        let (all, rule): (&[usize], _) = match self.tiny {
            true => (&[1, 2, 3, 4, 6, 8, 9], "1, 2, 3, 4, 6, 8 or 9"),
            false => (&[1, 2, 3, 4, 6, 8, 9, 12, 16], "1, 2, 3, 4, 6, 8, 9, 12 or 16"),
        };
        if all.contains(&world_size) {
            return Ok(());
        }
        let (name, got) = ("the number of ranks that share a model", world_size.to_string());
        let rule = format!("{rule}, which divide its vocabulary of {}", self.vocab_size);
        Err(crate::Error::Setting { name, rule, got })
    }

    /// The model on a grid, untrained.
    ///
    /// # Errors
    /// What [`Size::check`] and [`Trainer::new`] refuse.
    pub fn trainer(&self, grid: Grid, seed: u64, order: Order) -> Result<Box<dyn Steps>> {
        let world_size = grid.shards.world_size();
        self.check(world_size)?;
        let (max_seq_len, past_cache) = (self.batch.1, PastCache::Refuse);
        let rope = NtkAwareRopeConfig { max_seq_len, past_cache, ..Default::default() };
        // As in `cargo course model`: the default is for tokens of some thousand elements.
        let config = LlamaConfig { rope, init_std: 0.04, init_seed: seed, ..Default::default() };
        macro_rules! of_rows {
            ($blocks:ident: $($n:literal)*) => {
                match self.vocab_size / world_size {
                    $($n => Box::new($blocks::<$n>::new(config, grid, order)?),)*
                    _ => {
                        let vocab_size = self.vocab_size;
                        return Err(quadrivium::Error::WorldSize { world_size, vocab_size }.into());
                    }
                }
            };
        }
        Ok(if self.tiny {
            of_rows!(Tiny: 288 144 96 72 48 36 32)
        } else {
            of_rows!(Small: 576 288 192 144 96 72 64 48 36)
        })
    }
}
