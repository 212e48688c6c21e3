//! Products of matrices that lie in slices, on one thread. The arithmetic is that of the crate matrixmultiply.
//!
//! dfdx multiplies tensors only. A row of scores that is computed, masked and used while it is in the cache is none.

use crate::tensor::Float;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder};
use std::array::from_fn;

/// A matrix somewhere in memory.
pub(crate) type Matrix<'m, W> = ArrayView2<'m, W>;
/// A matrix to be written.
pub(crate) type MatrixMut<'m, W> = ArrayViewMut2<'m, W>;

/// The matrix whose rows begin at every `step`-th element of `values`.
pub(crate) fn view<W>(values: &[W], rows: usize, columns: usize, step: usize) -> Matrix<'_, W> {
    let shape = (rows, columns).strides((step, 1));
    ArrayView2::from_shape(shape, values).expect("rows that are in memory")
}

/// The same, to be written. Its rows lie side by side.
pub(crate) fn view_mut<W>(values: &mut [W], rows: usize, columns: usize) -> MatrixMut<'_, W> {
    ArrayViewMut2::from_shape((rows, columns), values).expect("rows that are in memory")
}

/// `c = a b`. What was in `c` is not looked at.
pub(crate) fn multiply<W: Float>(a: Matrix<W>, b: Matrix<W>, mut c: MatrixMut<W>) {
    general_mat_mul(W::one(), &a, &b, W::zero(), &mut c);
}

/// `c = c + a b`
pub(crate) fn multiply_add<W: Float>(a: Matrix<W>, b: Matrix<W>, mut c: MatrixMut<W>) {
    general_mat_mul(W::one(), &a, &b, W::one(), &mut c);
}

/// Cuts a matrix into tiles of at most so many rows and columns. Each has the place of its first element.
pub(crate) fn tiles<W>(
    matrix: MatrixMut<W>,
    [rows, columns]: [usize; 2],
) -> Vec<(usize, usize, MatrixMut<W>)> {
    let mut cut = Vec::new();
    for (row, matrix) in along(matrix, 0, rows) {
        let tiles = along(matrix, 1, columns).into_iter();
        cut.extend(tiles.map(|(column, tile)| (row, column, tile)));
    }
    cut
}

/// Cuts along one axis, into parts of at most `size`.
fn along<W>(matrix: MatrixMut<W>, axis: usize, size: usize) -> Vec<(usize, MatrixMut<W>)> {
    let (mut cut, mut first, mut rest) = (Vec::new(), 0, matrix);
    while rest.len_of(Axis(axis)) > size {
        let (part, after) = rest.split_at(Axis(axis), size);
        cut.push((first, part));
        (first, rest) = (first + size, after);
    }
    cut.push((first, rest));
    cut
}

/// The inner product of a list with the beginning of another.
///
/// It adds sums side by side: a processor adds sixteen at once.
#[inline(always)]
pub(crate) fn inner<W: Float>(a: &[W], b: &[W]) -> W {
    let b = &b[..a.len()];
    let (blocks, a_rest) = a.as_chunks::<16>();
    let (b_blocks, b_rest) = b.as_chunks::<16>();
    let sum = if a.len() < 64 { few(blocks, b_blocks) } else { many(a, b) };
    a_rest.iter().zip(b_rest).fold(sum, |sum, (a, b)| sum + *a * *b)
}

/// In sixteen sums. The compiler knows how many they are, so that they stay in registers.
#[inline(always)]
fn few<W: Float>(a: &[[W; 16]], b: &[[W; 16]]) -> W {
    let mut sums = [W::zero(); 16];
    for (a, b) in a.iter().zip(b) {
        sums = from_fn(|lane| sums[lane] + a[lane] * b[lane]);
    }
    let sums: [W; 8] = from_fn(|lane| sums[lane] + sums[lane + 8]);
    let sums: [W; 4] = from_fn(|lane| sums[lane] + sums[lane + 4]);
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// In four times as many: a processor begins with the next sixteen before it is done.
#[inline(always)]
fn many<W: Float>(a: &[W], b: &[W]) -> W {
    let mut lanes = [W::zero(); 64];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..64 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    for (a, b) in a_rest.as_chunks::<16>().0.iter().zip(b_rest.as_chunks::<16>().0) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    for half in [32, 16, 8, 4, 2, 1] {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    lanes[0]
}
