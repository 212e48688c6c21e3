//! The same shapes, right.
use quadrivium::tensor::*;
use quadrivium::*;

fn main() {
    let dev = Cpu::default();
    let norm = GroupRmsNorm::<8, 4, f32, _>::new(&dev, Default::default()).unwrap();
    let x: Tensor<Rank3<1, 2, 8>, f32, Cpu> = dev.zeros();
    let _: Tensor<Rank3<1, 2, 8>, f32, Cpu> = norm.forward(x);
    ParallelVocabEmbedding::<8, 4, 2, f32, _>::new(&dev, Default::default()).unwrap();
    NtkAwareRope::<6, _>::new(&dev, Default::default()).unwrap();
}
