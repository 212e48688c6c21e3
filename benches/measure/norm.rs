//! GroupRMSNorm.

use super::{Race, Size};
use benches::{input, loops, values};
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};
use std::hint::black_box;

/// Beyond so many rows of 4,096 the composed code's intermediate results would fill the memory.
const COMPOSED: usize = 4096;

pub fn race(race: &mut Race) {
    one::<4096, 128>(race, 2048);
    one::<4096, 4096>(race, 2048);
    if race.every_size {
        [256, 1024, 4096, 16_384].into_iter().for_each(|rows| one::<4096, 128>(race, rows));
        one::<512, 128>(race, 2048);
        one::<8192, 128>(race, 2048);
    }
}

fn one<const H: usize, const GZ: usize>(race: &mut Race, rows: usize) {
    let dev = race.dev.clone();
    let x = input(&dev, (Const::<1>, rows, Const::<H>));
    let norm = GroupRmsNorm::<H, GZ, f32, _>::new(&dev, Default::default()).expect("a norm");
    let (elements, eps) = (rows * H, GroupRmsNormConfig::default().eps as f32);
    let (values, gamma) = (values(elements), norm.weight.as_vec());
    let (mut y, mut dx, mut dgamma) = (vec![0.0; elements], vec![0.0; elements], vec![0.0; H]);
    let size = format!("[1, {rows}, {H}] gz {GZ}");
    let with_composed = rows <= COMPOSED;

    let of = Size { name: "norm forward", size: &size, elements };
    let mut module = || drop(black_box(norm.forward(x.clone())));
    race.run(&of, &mut module, with_composed, &mut || {
        loops::norm(&values, &gamma, GZ, eps, black_box(&mut y));
    });
    let of = Size { name: "norm forward and backward of a sum", ..of };
    let mut module = || drop(norm.forward(x.leaky_trace()).sum::<Rank0, _>().backward());
    let dy = vec![1.0; elements];
    race.run(&of, &mut module, with_composed, &mut || {
        loops::norm(&values, &gamma, GZ, eps, &mut y);
        black_box(y.iter().sum::<f32>());
        loops::norm_backward(&values, &gamma, (GZ, eps), &dy, &mut dx, black_box(&mut dgamma));
    });
}
