//! A bias for three heads is in a model of two.
use quadrivium::model::LlamaTransformer;
use quadrivium::position::{Alibi, NoPosition};
use quadrivium::tensor::*;

fn main() {
    let dev = Cpu::default();
    let model = LlamaTransformer::<9, 8, 2, 1, 4, 16, 1, f32, _>::new(&dev, Default::default()).unwrap();
    let model = model.with_position(|_| Ok(NoPosition), Alibi::<3>).unwrap();
    model.forward(dev.tensor([[7, 2]]));
}
