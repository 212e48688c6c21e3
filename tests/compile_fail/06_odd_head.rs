//! Dimensions turn in pairs, so 5 of them can't.
use quadrivium::tensor::Cpu;
use quadrivium::NtkAwareRope;

fn main() {
    let dev = Cpu::default();
    let _ = NtkAwareRope::<5, _>::new(&dev, Default::default());
}
