//! A table of no rows can't be looked up.
use quadrivium::tensor::Cpu;
use quadrivium::VocabEmbedding;

fn main() {
    let dev = Cpu::default();
    let _ = VocabEmbedding::<0, 4, f32, _>::new(&dev, Default::default());
}
