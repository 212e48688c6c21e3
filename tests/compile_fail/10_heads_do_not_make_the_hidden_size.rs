//! Three heads of 4 make 12 elements, not 16.
use quadrivium::attention::GroupedQueryAttention;
use quadrivium::position::NoPosition;
use quadrivium::tensor::Cpu;

fn main() {
    let dev = Cpu::default();
    let _ = GroupedQueryAttention::<16, 3, 1, 4, f32, _, _>::new(&dev, 42, 0.02, NoPosition);
}
