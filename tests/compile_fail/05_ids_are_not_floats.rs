//! An embedding looks up ids, which are `usize`.
use quadrivium::tensor::*;
use quadrivium::VocabEmbedding;

fn main() {
    let dev = Cpu::default();
    let embedding = VocabEmbedding::<10, 4, f32, Cpu>::new(&dev, Default::default()).unwrap();
    let ids: Tensor<Rank2<1, 3>, f32, Cpu> = dev.zeros();
    embedding.forward(ids);
}
