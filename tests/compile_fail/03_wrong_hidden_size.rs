//! A norm for tokens of 8 elements gets tokens of 6.
use quadrivium::tensor::*;
use quadrivium::GroupRmsNorm;

fn main() {
    let dev = Cpu::default();
    let norm = GroupRmsNorm::<8, 4, f32, Cpu>::new(&dev, Default::default()).unwrap();
    let x: Tensor<Rank3<1, 2, 6>, f32, Cpu> = dev.zeros();
    norm.forward(x);
}
