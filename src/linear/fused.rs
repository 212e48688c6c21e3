//! The product in tiles, on a CPU. What it computes is defined in `formula.rs`.
//!
//! A tile of the result is one piece of work. Its part of the weight is read once, for all of its rows.

use crate::cpu::{
    MatrixMut, Source, Values, each, gradient, in_wide, in_wide_registers, inner, is_fused,
    multiply, multiply_add, record, threads, tiles, view, view_mut, wide, zeros,
};
use crate::tensor::*;

/// The sides of a tile of an `[m, n]` result. Each tile packs its part of both factors, so there are only about two for each thread, in
/// the grid that packs least. No sum depends on it.
fn tile(m: usize, n: usize, threads: usize) -> [usize; 2] {
    const MOST: usize = 1024; // a thread has a copy of so many rows of the weight
    let tiles = if threads > 1 { 2 * threads } else { 1 };
    let grids = (1..=tiles).filter(|rows| tiles % rows == 0).map(|rows| [rows, tiles / rows]);
    let [rows, columns] =
        grids.min_by_key(|[rows, columns]| rows * n + columns * m).unwrap_or([1, 1]);
    // What a processor multiplies at once divides 32.
    [m.div_ceil(rows), n.div_ceil(columns)].map(|side| side.next_multiple_of(32).min(MOST))
}

/// Rows of the weight that are read at a time in the backward pass.
const ROWS: usize = 1024;
/// Up to so many tokens are multiplied with each row of the weight as it is read: that takes as long as reading it.
const FEW_TOKENS: usize = 4;

/// `y`, with its gradient on the tape. `None` on other devices. `x` and `weight` must be contiguous.
///
/// Kept for the backward pass: `x` and `weight`, shared.
pub(super) fn linear<B: Dim, S: Dim, I: Dim, O: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, I), F, D>,
    weight: &Tensor<(O, I), F, D>,
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, O), F, D>>, D> {
    let (Some(values), Some(matrix), true) = (Values::of(x), Values::of(weight), is_fused::<D>())
    else {
        return Ok(None);
    };
    let (b, s, i) = *x.shape();
    let o = weight.shape().0;
    let product = Product { m: b.size() * s.size(), n: o.size(), k: i.size() };
    let mut y = zeros::<F, D>(x.device(), product.m * product.n)?;
    in_wide(&mut y, |y| product.forward(&values.all(), &matrix, y));
    let y: Tensor<_, F, D> = x.device().try_tensor_from_vec(y, (b, s, o))?;
    if T::OWNS_TAPE {
        let (x, weight) = (x.clone(), weight.clone());
        record(tape, &y, move |dy, grads| {
            let dy = wide(dy);
            in_wide(gradient(grads, &x)?, |dx| product.add_dx(&dy, &matrix, dx));
            in_wide(gradient(grads, &weight)?, |dw| product.add_dweight(&dy, &values.all(), dw));
            Ok(())
        });
    }
    Ok(Some(y))
}

/// `y = x weight^T` with `x` `[m, k]`, `weight` `[n, k]`, `y` `[m, n]`.
#[derive(Clone, Copy)]
struct Product {
    m: usize,
    n: usize,
    k: usize,
}

impl Product {
    fn forward<F: Float<Wide = W>, W: Float<Wide = W>>(
        &self,
        x: &[W],
        weight: &Values<F>,
        y: &mut [W],
    ) {
        let Self { m, n, k } = *self;
        let y = view_mut(y, m, n);
        if m <= FEW_TOKENS {
            let columns = (32_768 / k).max(1);
            let work = |(_, first, y): (usize, usize, MatrixMut<W>)| few(x, weight, first, y);
            return each(n * k / 4, tiles(y, [m, columns]).into_iter(), work);
        }
        each(self.work(), tiles(y, self.tile(m, n)).into_iter(), |(token, first, y)| {
            let (rows, columns) = y.dim();
            let mut part = vec![W::zero(); columns * k]; //                   [columns, k]
            weight.widen(first * k, &mut part);
            multiply(view(&x[token * k..], rows, k, k), view(&part, columns, k, k).t(), y);
        });
    }

    /// `dx = dx + dy weight`
    fn add_dx<F: Float<Wide = W>, W: Float>(&self, dy: &[W], weight: &Values<F>, dx: &mut [W]) {
        let Self { m, n, k } = *self;
        let tiles = tiles(view_mut(dx, m, k), self.tile(m, k));
        each(self.work(), tiles.into_iter(), |(token, first, mut dx)| {
            let (rows, columns) = dx.dim();
            let mut part = vec![W::zero(); ROWS.min(n) * columns]; //         [some of n, columns]
            for row in (0..n).step_by(ROWS) {
                let count = ROWS.min(n - row);
                for (r, part) in part.chunks_mut(columns).take(count).enumerate() {
                    weight.widen((row + r) * k + first, part);
                }
                let dy = view(&dy[token * n + row..], rows, count, n);
                multiply_add(dy, view(&part, count, columns, columns), dx.view_mut());
            }
        });
    }

    /// `dweight = dweight + dy^T x`
    fn add_dweight<W: Float>(&self, dy: &[W], x: &[W], dweight: &mut [W]) {
        let Self { m, n, k } = *self;
        let work = |(output, first, dweight): (usize, usize, MatrixMut<W>)| {
            let (rows, columns) = dweight.dim();
            let (dy, x) = (view(&dy[output..], m, rows, n), view(&x[first..], m, columns, k));
            multiply_add(dy.reversed_axes(), x, dweight);
        };
        each(self.work(), tiles(view_mut(dweight, n, k), self.tile(n, k)).into_iter(), work);
    }

    fn tile(&self, rows: usize, columns: usize) -> [usize; 2] {
        tile(rows, columns, threads(self.work()))
    }

    /// How much there is to do, in elements that are touched once: a processor multiplies faster than it reads.
    fn work(&self) -> usize {
        self.m * self.n * self.k / 64
    }
}

/// Some columns of `y`, from column `first` on: the inner products of few tokens with rows of the weight.
fn few<F: Float<Wide = W>, W: Float<Wide = W>>(
    x: &[W],
    weight: &Values<F>,
    first: usize,
    mut y: MatrixMut<W>,
) {
    let k = x.len() / y.nrows();
    let at_once = (8192 / k).clamp(1, y.ncols()); // rows of the weight, few enough for the cache
    let mut part = vec![W::zero(); at_once * k]; //                           [some, k]
    for column in (0..y.ncols()).step_by(at_once) {
        let count = at_once.min(y.ncols() - column);
        weight.widen((first + column) * k, &mut part[..count * k]);
        for (token, x) in x.chunks_exact(k).enumerate() {
            let y = y.row_mut(token).into_slice().expect("elements that stand side by side");
            products(x, &part, &mut y[column..column + count]);
        }
    }
}

in_wide_registers! {
    /// The inner product of `x` with each row of a matrix.
    fn products<'a, W>(x: &'a [W], rows: &'a [W], y: &'a mut [W]) -> () {
        for (y, row) in y.iter_mut().zip(rows.chunks_exact(x.len())) {
            *y = inner(x, row);
        }
    }
}
