//! Tables that are cut in equal parts.
use exercises::parallel::ParallelVocabEmbedding;
use exercises::prelude::*;

pub fn halves() -> ParallelVocabEmbedding<8, 3, 2, Cpu> {
    ParallelVocabEmbedding::<8, 3, 2, Cpu>::new(Cpu::default().zeros(), 1)
}

pub fn alone() -> ParallelVocabEmbedding<7, 3, 1, Cpu> {
    ParallelVocabEmbedding::<7, 3, 1, Cpu>::new(Cpu::default().zeros(), 0)
}
