//! The models of `cargo course ranks`, for each number of ranks that may share one.

use crate::communicator::Order;
use crate::error::Result;
use crate::model::Trunk;
use crate::tensor_parallel::TensorParallel;
use crate::train::{Grid, Steps, Trainer};
use model::sizes;
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::model::LlamaConfig;

/// A model: its blocks are those of `cargo course model`, and its vocabulary is one that many numbers of ranks divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// `v`.
    pub vocab_size: usize,
    /// `h`.
    pub hidden_size: usize,
    /// `b` and `s`.
    pub batch: (usize, usize),
}

type Small<const N: usize> = Trainer<N, 128, Trunk<128, 4, 2, 32, 384, 4>>;
/// Cut blocks: all of each on one rank, and half of each on one of two.
type SmallCut1<const N: usize> = Trainer<N, 128, TensorParallel<128, 4, 2, 32, 384, 4>>;
type SmallCut2<const N: usize> = Trainer<N, 128, TensorParallel<128, 2, 1, 32, 192, 4>>;
type Tiny<const N: usize> = Trainer<N, 16, Trunk<16, 2, 1, 8, 48, 2>>;
type TinyCut<const N: usize> = Trainer<N, 16, TensorParallel<16, 2, 1, 8, 48, 2>>;

/// Rows that are added up together in the fixed order. They fill every shard.
pub const BLOCK: usize = 4;

impl Size {
    /// 4 blocks of 128 elements.
    pub const SMALL: Self = Self { vocab_size: 576, hidden_size: 128, batch: (4, 128) };
    /// The same with the vocabulary of `cargo course model train`.
    pub const OF_MODEL: Self = Self { vocab_size: sizes::SMALL_VOCAB, ..Self::SMALL };
    /// 2 blocks of 16 elements, for tests.
    pub const TINY: Self = Self { vocab_size: 288, hidden_size: 16, batch: (2, 16) };

    /// The one that settings describe, or else one that is like it.
    pub fn of(config: &CheckpointConfig) -> Self {
        let all = [Self::TINY, Self::SMALL, Self::OF_MODEL];
        let mut alike = all.into_iter().filter(|size| size.hidden_size == config.hidden_size);
        let found = alike.clone().find(|size| size.vocab_size == config.vocab_size);
        found.or_else(|| alike.next()).unwrap_or(Self::SMALL)
    }

    /// What `config.json` says of a model of this size.
    pub fn config(&self) -> CheckpointConfig {
        let tiny = self.hidden_size == Self::TINY.hidden_size;
        let alike = if tiny { sizes::Size::Tiny } else { sizes::Size::Small };
        CheckpointConfig { vocab_size: self.vocab_size, ..alike.config() }
    }

    /// Refuses a number of ranks that has no shards, or no heads where the blocks are cut too.
    ///
    /// # Errors
    /// A number that does not divide the vocabulary or the heads, or that was not compiled.
    pub fn check(&self, world_size: usize, tensor_parallel: bool) -> Result<()> {
        let heads = self.config().num_key_value_heads;
        let all: &[usize] = match self.vocab_size {
            _ if tensor_parallel && heads == 1 => &[1],
            _ if tensor_parallel => &[1, 2],
            288 => &[1, 2, 3, 4, 6, 8, 9],
            512 => &[1, 2, 4, 8, 16],
            _ => &[1, 2, 3, 4, 6, 8, 9, 12, 16],
        };
        if all.contains(&world_size) {
            return Ok(());
        }
        let (name, got) = ("the number of ranks that share a model", world_size.to_string());
        let rule = all.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ");
        let whole = match tensor_parallel {
            true => format!("{heads} key and value heads"),
            false => format!("vocabulary of {}", self.vocab_size),
        };
        let rule = format!("one of {rule}, which divide its {whole}");
        Err(crate::Error::Setting { name, rule, got })
    }

    /// The settings of a model of this size, with the weights of a seed.
    pub fn settings(&self, seed: u64) -> LlamaConfig {
        sizes::settings(&self.config(), seed)
    }

    /// The model on a grid, untrained, with its blocks on every rank or cut.
    ///
    /// # Errors
    /// What [`Size::check`] and [`Trainer::new`] refuse.
    pub fn trainer(
        &self,
        grid: Grid,
        config: LlamaConfig,
        order: Order,
        tensor_parallel: bool,
    ) -> Result<Box<dyn Steps>> {
        let world_size = grid.shards.world_size();
        self.check(world_size, tensor_parallel)?;
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
        let is_tiny = self.hidden_size == Self::TINY.hidden_size;
        Ok(match (is_tiny, tensor_parallel, world_size) {
            (true, false, _) => of_rows!(Tiny: 288 144 96 72 48 36 32),
            (true, true, _) => of_rows!(TinyCut: 288),
            (false, false, _) => of_rows!(Small: 576 512 288 256 192 144 128 96 72 64 48 36 32),
            (false, true, 1) => of_rows!(SmallCut1: 576 512),
            (false, true, _) => of_rows!(SmallCut2: 288 256),
        })
    }
}
