//! 4 rows are not enough for 6 ranks.
use exercises::parallel::ParallelVocabEmbedding;
use exercises::prelude::*;

pub fn bad() -> ParallelVocabEmbedding<4, 3, 6, Cpu> {
    ParallelVocabEmbedding::<4, 3, 6, Cpu>::new(Cpu::default().zeros(), 0)
}
