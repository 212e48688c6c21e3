//! 7 rows can't be cut in 2 equal parts.
use exercises::parallel::ParallelVocabEmbedding;
use exercises::prelude::*;

pub fn bad() -> ParallelVocabEmbedding<7, 3, 2, Cpu> {
    ParallelVocabEmbedding::<7, 3, 2, Cpu>::new(Cpu::default().zeros(), 0)
}
