//! Six query heads can't share four key heads.
use quadrivium::attention::GroupedQueryAttention;
use quadrivium::position::NoPosition;
use quadrivium::tensor::Cpu;

fn main() {
    let dev = Cpu::default();
    let _ = GroupedQueryAttention::<24, 6, 4, 4, f32, _, _>::new(&dev, 42, 0.02, NoPosition);
}
