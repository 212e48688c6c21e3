//! Hidden size 8 has no groups of 3.
use quadrivium::tensor::Cpu;
use quadrivium::GroupRmsNorm;

fn main() {
    let dev = Cpu::default();
    let _ = GroupRmsNorm::<8, 3, f32, _>::new(&dev, Default::default());
}
