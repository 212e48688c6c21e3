//! A group has at least one element.
use quadrivium::tensor::Cpu;
use quadrivium::GroupRmsNorm;

fn main() {
    let dev = Cpu::default();
    let _ = GroupRmsNorm::<8, 0, f32, _>::new(&dev, Default::default());
}
