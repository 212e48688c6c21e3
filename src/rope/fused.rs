//! The rotation in one pass over memory, on a CPU. What it computes is defined in `formula.rs`.

use super::layouts::{Layout, Pairs};
use crate::cpu::{Source, Values, each, is_fused, record, rows_of_a_piece, vector, zeros};
use crate::positions::Places;
use crate::tensor::*;

/// `y`, with its gradient on the tape. Each token takes the row of the tables that is its place; they are read where they
/// are. `None` on other devices. All must be contiguous.
///
/// Kept for the backward pass: the tables, shared.
pub(crate) fn apply_rotary<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: &Tensor<(B, S, N, H), F, D>,
    (cos, sin): (&Tensor<(usize, H), f32, D>, &Tensor<(usize, H), f32, D>),
    places: &Places,
    tape: &mut T,
    pairs: Pairs,
) -> Raw<Option<Tensor<(B, S, N, H), F, D>>, D> {
    let (Some(values), Some(cos), Some(sin), true) =
        (Values::of(x), Values::of(cos), Values::of(sin), is_fused::<D>())
    else {
        return Ok(None);
    };
    let (_, _, nh, hd) = *x.shape();
    let (nh, hd) = (nh.size(), hd.size());
    let turn = Turn { cos, sin, width: hd, place: of_token(places), nh, hd, pairs };
    let mut y = zeros::<F, D>(x.device(), x.shape().num_elements())?;
    turn.forward(&values, &mut y);
    let y: Tensor<_, F, D> = x.device().try_tensor_from_vec(y, *x.shape())?;
    if T::OWNS_TAPE {
        let x = x.ghost(); // its values are not needed any more
        record(tape, &y, move |dy, grads| {
            turn.backward(dy, vector::<F, D>(grads.get_or_alloc_mut(&x)?));
            Ok(())
        });
    }
    Ok(Some(y))
}

/// The row of a token in its tables.
fn of_token(places: &Places) -> impl Fn(usize) -> usize + Send + Sync + use<> {
    let places = places.clone();
    move |token| places.of_token(token)
}

/// Heads, and the tables by whose rows they turn.
pub(crate) struct Turn<S, P> {
    /// Rows of `width` numbers, of which the first `rotary_dim` are read.
    pub(crate) cos: S,
    pub(crate) sin: S,
    pub(crate) width: usize,
    /// The row of a token.
    pub(crate) place: P,
    pub(crate) nh: usize,
    pub(crate) hd: usize,
    pub(crate) pairs: Pairs,
}

impl<S: Source<f32>, P: Fn(usize) -> usize + Sync> Turn<S, P> {
    pub(crate) fn forward<F: Scalar>(&self, x: &impl Source<F>, y: &mut [F]) {
        let row = self.nh * self.hd;
        self.each_token(y, |token, cos, sin, turned, y| {
            x.widen(token * row, turned);
            self.each_plane(turned, cos, sin, |[a, b], cos, sin| {
                [a * cos[0] + -b * sin[0], b * cos[1] + a * sin[1]]
            });
            y.iter_mut().zip(turned).for_each(|(y, turned)| *y = F::narrow(*turned));
        });
    }

    /// Adds to `dx`.
    pub(crate) fn backward<F: Scalar>(&self, dy: &[F], dx: &mut [F]) {
        let row = self.nh * self.hd;
        self.each_token(dx, |token, cos, sin, turned, dx| {
            let dy = &dy[token * row..][..row];
            turned.iter_mut().zip(dy).for_each(|(turned, dy)| *turned = dy.wide());
            self.each_plane(turned, cos, sin, |[a, b], cos, sin| {
                [a * cos[0] + b * sin[1], b * cos[1] - a * sin[0]]
            });
            let sums = dx.iter_mut().zip(turned);
            sums.for_each(|(dx, turned)| *dx = F::narrow(dx.wide() + *turned));
        });
    }

    /// Works on each token's heads, with its rows of the tables and memory for as many values as it has.
    fn each_token<F: Scalar>(
        &self,
        out: &mut [F],
        work: impl Fn(usize, &[F::Wide], &[F::Wide], &mut [F::Wide], &mut [F]) + Send + Sync,
    ) {
        let row = self.nh * self.hd;
        let rows = rows_of_a_piece(row);
        each(out.len(), out.chunks_mut(rows * row).enumerate(), |(nth, out)| {
            let rotary_dim = self.pairs.rotary_dim;
            let mut memory = vec![F::Wide::default(); 2 * rotary_dim + row];
            let (cos, rest) = memory.split_at_mut(rotary_dim);
            let (sin, turned) = rest.split_at_mut(rotary_dim);
            for (t, out) in out.chunks_mut(row).enumerate() {
                let token = nth * rows + t;
                let first = (self.place)(token) * self.width;
                for (table, row) in [(&self.cos, &mut *cos), (&self.sin, &mut *sin)] {
                    for (j, value) in row.iter_mut().enumerate() {
                        *value = F::Wide::nearest(f64::from(table.at(first + j)));
                    }
                }
                work(token, cos, sin, turned, out);
            }
        });
    }

    /// Turns both values of each plane of each head, with their cosines and sines.
    #[inline(always)]
    fn each_plane<W: Float>(
        &self,
        heads: &mut [W],
        cos: &[W],
        sin: &[W],
        turn: impl Fn([W; 2], [W; 2], [W; 2]) -> [W; 2],
    ) {
        let Pairs { layout, rotary_dim } = self.pairs;
        let half = rotary_dim / 2;
        for head in heads.chunks_exact_mut(self.hd) {
            let head = &mut head[..rotary_dim]; // the rest stays
            match layout {
                Layout::HalfSplit => {
                    let (a, b) = head.split_at_mut(half);
                    let ((cos_a, cos_b), (sin_a, sin_b)) = (cos.split_at(half), sin.split_at(half));
                    let values = a.iter_mut().zip(b);
                    let tables = cos_a.iter().zip(cos_b).zip(sin_a.iter().zip(sin_b));
                    for ((a, b), ((cos_a, cos_b), (sin_a, sin_b))) in values.zip(tables) {
                        [*a, *b] = turn([*a, *b], [*cos_a, *cos_b], [*sin_a, *sin_b]);
                    }
                }
                Layout::Interleaved => {
                    let tables = cos.as_chunks().0.iter().zip(sin.as_chunks().0);
                    for (pair, (cos, sin)) in head.as_chunks_mut().0.iter_mut().zip(tables) {
                        *pair = turn(*pair, *cos, *sin);
                    }
                }
            }
        }
    }
}
