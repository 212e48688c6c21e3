//! With 2 dimensions the NTK exponent d / (d - 2) divides by zero.
use quadrivium::tensor::Cpu;
use quadrivium::NtkAwareRope;

fn main() {
    let dev = Cpu::default();
    let _ = NtkAwareRope::<2, _>::new(&dev, Default::default());
}
