//! Code of the page "The Rust that this course uses, and no more", run. Each piece is between two marks.

use quadrivium::tensor::*;
use std::ops::Range;

// ANCHOR: ownership
/// Reads the values, and gives them back when it returns.
fn total(values: &[f32]) -> f32 {
    values.iter().sum()
}

/// Changes the values where they are.
fn double(values: &mut [f32]) {
    for value in values {
        *value *= 2.0;
    }
}

#[test]
fn values_are_lent_and_moved() {
    let mut x = vec![1.0, 2.0, 3.0]; // x owns three numbers
    double(&mut x); //                  lent, to be changed
    assert_eq!(total(&x), 12.0); //     lent, to be read
    let y = x; //                       moved: from here on there is no x
    assert_eq!(y, [2.0, 4.0, 6.0]);
}
// ANCHOR_END: ownership

// ANCHOR: module
/// One learned factor for each of `H` elements.
struct Scale<const H: usize, D: Device<f32>> {
    /// `[h]`.
    weight: Tensor<Rank1<H>, f32, D>,
}

impl<const H: usize, D: Device<f32>> Scale<H, D> {
    /// The factors times each token, `[b, s, h]`.
    fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D, T>,
    ) -> Tensor<(B, S, Const<H>), f32, D, T> {
        let weight = self.weight.retaped::<T>(); //                         [h]
        let weight = weight.broadcast_like::<_, Axes2<0, 1>>(x.shape()); // [b, s, h]
        weight * x
    }
}
// ANCHOR_END: module

#[test]
fn a_scale_scales() {
    let dev = Cpu::default();
    let scale = Scale { weight: dev.tensor([2.0, 3.0]) };
    assert_eq!(scale.forward(dev.tensor([[[1.0, 10.0]]])).array(), [[[2.0, 30.0]]]);
    assert_eq!(summary(&scale), "2 numbers to learn");
}

// ANCHOR: traits
/// What can be counted.
trait Count {
    /// How many numbers it learns.
    fn count(&self) -> usize;
}

impl<const H: usize, D: Device<f32>> Count for Scale<H, D> {
    fn count(&self) -> usize {
        H
    }
}

fn summary(part: &impl Count) -> String {
    format!("{} numbers to learn", part.count())
}
// ANCHOR_END: traits

// ANCHOR: results
/// The exercises' result: its error is a sentence.
type Result<T> = std::result::Result<T, String>;

/// The positions of `s` tokens, of which the first is at `offset`.
fn positions(offset: usize, s: usize, longest: usize) -> Result<Range<usize>> {
    match offset.checked_add(s) {
        Some(end) if end <= longest => Ok(offset..end),
        _ => Err(format!("{s} tokens from position {offset} on: at most {longest} are allowed")),
    }
}

fn last_position(offset: usize, s: usize) -> Result<usize> {
    let all = positions(offset, s, 2048)?; // an error leaves the function here
    all.last().ok_or("no tokens".to_string())
}
// ANCHOR_END: results

#[test]
fn results_are_handed_on() {
    assert_eq!(last_position(5, 3), Ok(7));
    assert!(last_position(2047, 3).unwrap_err().starts_with("3 tokens from position 2047 on"));
    assert!(last_position(0, 0).is_err());
}

#[test]
fn iterators_and_slices() {
    // ANCHOR: iterators
    let (x, y) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0f32, 0.0, 0.0, 0.0, 0.0, 1.0]);

    let squares: Vec<f32> = x.iter().map(|x| x * x).collect();
    let product: f32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
    let rows: Vec<f32> = x.chunks(3).map(|row| row.iter().sum()).collect();
    let large = x.iter().position(|&x| x > 3.5);

    assert_eq!(squares[5], 36.0);
    assert_eq!((product, rows, large), (7.0, vec![6.0, 15.0], Some(3)));
    // ANCHOR_END: iterators
    // ANCHOR: slices
    let width = 3;
    let mut table = vec![0.0f32; 2 * width]; //   two rows of zeros
    let id = 1;
    let row = &mut table[id * width..][..width]; // from the start of row 1, as long as a row
    row.copy_from_slice(&x[..width]);
    assert_eq!(table, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
    // ANCHOR_END: slices
}
