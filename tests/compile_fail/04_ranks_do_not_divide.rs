//! 7 rows can't be shared by 2 ranks.
use quadrivium::tensor::Cpu;
use quadrivium::ParallelVocabEmbedding;

fn main() {
    let dev = Cpu::default();
    let _ = ParallelVocabEmbedding::<7, 4, 2, f32, _>::new(&dev, Default::default());
}
