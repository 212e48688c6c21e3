//! Products of matrices that lie in slices, on one thread. The arithmetic is that of the crate matrixmultiply.
//!
//! dfdx multiplies tensors only. A row of scores that is computed, masked and used while it is in the cache is none.

use crate::tensor::Float;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder};

/// A matrix somewhere in memory.
pub(crate) type Matrix<'m, W> = ArrayView2<'m, W>;
/// A matrix to be written.
pub(crate) type MatrixMut<'m, W> = ArrayViewMut2<'m, W>;

/// The matrix whose rows begin at every `step`-th element of `values`.
pub(crate) fn view<W>(values: &[W], rows: usize, columns: usize, step: usize) -> Matrix<'_, W> {
    let shape = (rows, columns).strides((step, 1));
    ArrayView2::from_shape(shape, values).expect("rows that are in memory")
}

/// The same, to be written. Its rows stand side by side.
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
#[inline(always)]
pub(crate) fn inner<W: Float>(a: &[W], b: &[W]) -> W {
    // Sums side by side: a processor adds sixteen at once, and begins with the next before it is done.
    const LANES: usize = 16;
    const FOUR: usize = 4 * LANES;
    let mut lanes = [W::zero(); FOUR];
    let b = &b[..a.len()];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<FOUR>(), b.as_chunks::<FOUR>());
    let a_long = !a.is_empty();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..FOUR {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let ((a, a_rest), (b, b_rest)) = (a_rest.as_chunks::<LANES>(), b_rest.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    // Of a short list only the first sixteen are in use.
    let halves: &[_] = if a_long { &[32, 16, 8, 4, 2, 1] } else { &[8, 4, 2, 1] };
    for &half in halves {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    a_rest.iter().zip(b_rest).fold(lanes[0], |sum, (a, b)| sum + *a * *b)
}
