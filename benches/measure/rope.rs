//! NTK-aware RoPE.

use super::{Race, Size};
use benches::{input, loops, values};
use quadrivium::functional::Layout;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};
use std::hint::black_box;

/// Beyond so many rows of 32 heads the composed code's intermediate results would fill the memory.
const COMPOSED: usize = 4096;

/// The longest context.
const LONGEST: usize = 131_072;

pub fn race(race: &mut Race) {
    one::<32>(race, 2048, Layout::HalfSplit);
    one::<32>(race, 2048, Layout::Interleaved);
    if race.every_size {
        [256, 1024, 4096, 16_384]
            .into_iter()
            .for_each(|rows| one::<32>(race, rows, Layout::HalfSplit));
        one::<1>(race, LONGEST, Layout::HalfSplit);
        [0, LONGEST - 1].into_iter().for_each(|offset| token(race, offset));
    }
}

fn rope(dev: &Cpu, max_seq_len: usize, layout: Layout) -> NtkAwareRope<128, Cpu> {
    let config = NtkAwareRopeConfig { max_seq_len, layout, ..Default::default() };
    NtkAwareRope::new(dev, config).expect("a rope")
}

/// The cached tables.
fn tables(rope: &NtkAwareRope<128, Cpu>, dev: &Cpu) -> (Vec<f32>, Vec<f32>) {
    let tables = rope.tables(dev).expect("tables");
    (tables.cos.as_vec(), tables.sin.as_vec())
}

fn one<const NH: usize>(race: &mut Race, rows: usize, layout: Layout) {
    let dev = race.dev.clone();
    let x = input(&dev, (Const::<1>, rows, Const::<NH>, Const::<128>));
    let rope = rope(&dev, rows, layout);
    let elements = rows * NH * 128;
    let values = values(elements);
    let (cos, sin) = tables(&rope, &dev);
    let (mut y, mut dx) = (vec![0.0; elements], vec![0.0; elements]);
    let size = format!("[1, {rows}, {NH}, 128] {layout:?}");
    let with_composed = rows * NH <= COMPOSED * 32;

    let of = Size { name: "rope forward", size: &size, elements };
    let mut module = || drop(black_box(rope.forward(x.clone())));
    // The loop knows one layout. The bytes are the same in the other.
    race.run(&of, &mut module, with_composed, &mut || {
        loops::rope(&values, (&cos, &sin), 128, 1.0, black_box(&mut y));
    });
    let of = Size { name: "rope forward and backward of a sum", ..of };
    let mut module = || drop(rope.forward(x.leaky_trace()).sum::<Rank0, _>().backward());
    let dy = vec![1.0; elements];
    race.run(&of, &mut module, with_composed, &mut || {
        loops::rope(&values, (&cos, &sin), 128, 1.0, &mut y);
        black_box(y.iter().sum::<f32>());
        loops::rope(&dy, (&cos, &sin), 128, -1.0, black_box(&mut dx));
    });
}

/// One token of 32 heads, as a model that writes text asks for it.
fn token(race: &mut Race, offset: usize) {
    let x = input(&race.dev, (Const::<1>, Const::<1>, Const::<32>, Const::<128>));
    let rope = rope(&race.dev, LONGEST, Layout::HalfSplit);
    let elements = 32 * 128;
    let values = values(elements);
    let (cos, sin) = tables(&rope, &race.dev);
    let row = |table: &[f32]| table[offset * 128..][..128].to_vec();
    let (cos, sin) = (row(&cos), row(&sin));
    let mut y = vec![0.0; elements];
    let size = format!("position {offset}");
    let of = Size { name: "rope of one token", size: &size, elements };
    let mut module = || drop(black_box(rope.forward((x.clone(), offset))));
    race.run(&of, &mut module, true, &mut || {
        loops::rope(&values, (&cos, &sin), 128, 1.0, black_box(&mut y));
    });
}
