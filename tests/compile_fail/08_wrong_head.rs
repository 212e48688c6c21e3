//! A rotation for heads of 8 gets heads of 4.
use quadrivium::tensor::*;
use quadrivium::NtkAwareRope;

fn main() {
    let dev = Cpu::default();
    let rope = NtkAwareRope::<8, Cpu>::new(&dev, Default::default()).unwrap();
    let x: Tensor<Rank4<1, 2, 1, 4>, f32, Cpu> = dev.zeros();
    rope.forward(x);
}
