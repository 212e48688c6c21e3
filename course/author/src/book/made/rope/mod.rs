//! Made for the chapters on RoPE and on longer texts.

mod clocks;
mod curves;
mod listings;
mod numbers;
mod planes;
mod scores;

use super::kinds::{Figure, Listing, Made};
use crate::error::Result;
use crate::figures::{BLUE, GREEN, INK, VERMILLION, axes, axis_font, legend, save, whole, write};
use notebook_support::chart::line;
use notebook_support::rope::product;
use plotters::prelude::*;
use quadrivium::rope::rotary_frequencies;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "rope-clocks", draw: clocks::clocks },
        Figure { name: "rope-wavelengths", draw: planes::wavelengths },
        Figure { name: "rope-slowing", draw: planes::slowing },
        Figure { name: "rope-stripes", draw: scores::stripes },
        Figure { name: "rope-stale-keys", draw: scores::stale_keys },
        Figure { name: "rope-decay", draw: curves::decay },
        Figure { name: "rope-drift", draw: curves::drift },
        Figure { name: "rope-ratio", draw: curves::ratio },
    ],
    listings: &[
        Listing { name: "rope-planes", text: listings::planes },
        Listing { name: "rope-precision", text: listings::precision },
        Listing { name: "rope-decode", text: listings::decode },
        Listing { name: "rope-long-calls", text: listings::long_calls },
    ],
    numbers: numbers::numbers,
};

/// The base of all examples but the one by hand.
const BASE: f64 = 10_000.0;
/// The head size of a large model.
const HEAD: usize = 128;
/// Planes of such a head.
const PLANES: usize = HEAD / 2;
/// `ms` of the examples of that size.
const TRAINED: usize = 4096;

/// The frequencies of a large model's head.
fn frequencies(ratio: f64) -> Result<Vec<f64>> {
    Ok(rotary_frequencies(HEAD, BASE, ratio)?)
}

/// A module that leaves its cache as it is.
fn module<const HD: usize>(
    base: f64,
    max_seq_len: usize,
    ratio: usize,
    dynamic: bool,
) -> Result<NtkAwareRope<HD, Cpu>> {
    let config = NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic, ..Default::default() };
    Ok(NtkAwareRope::new(&Cpu::default(), config)?)
}

/// Rows of one head, `[1, s, 1, HD]`.
type Rows<const HD: usize> = Tensor<(usize, usize, usize, Const<HD>), f32, Cpu>;

fn rows<const HD: usize>(x: &[f32]) -> Rows<HD> {
    Cpu::default().tensor_from_vec(x.to_vec(), (1, x.len() / HD, 1, Const))
}

/// One head, turned to a position by the library.
fn turned<const HD: usize>(
    rope: &NtkAwareRope<HD, Cpu>,
    x: &[f32],
    position: usize,
) -> Result<Vec<f32>> {
    Ok(rope.try_forward((rows(x), position))?.as_vec())
}

/// An inner product in `f64`.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}
