//! SwiGLU: `y = W_2 (silu(W_1 x) * (W_3 x))`, each token for itself.

use crate::feedforward::interface::{Manner, Reply, SizeCase, SwiGlu, SwiGluCase, SwiGluGrads};
use crate::oracle::{Loops, Oracle};
use std::rc::Rc;

/// Forward and backward in `f64`.
#[derive(Debug, Clone, Default)]
pub struct Passes {
    /// `W_1 x`, `[b, s, f]`.
    pub a: Vec<f64>,
    /// `W_3 x`, `[b, s, f]`.
    pub b: Vec<f64>,
    /// `silu(a) * b`, `[b, s, f]`.
    pub z: Vec<f64>,
    /// `[b, s, h]`.
    pub y: Vec<f64>,
    /// The gradient that arrives at `z`, `[b, s, f]`.
    pub dz: Vec<f64>,
    /// `[b, s, f]`.
    pub da: Vec<f64>,
    /// `[b, s, f]`.
    pub db: Vec<f64>,
    /// `[b, s, h]`.
    pub dx: Vec<f64>,
    /// `[f, h]`.
    pub dgate: Vec<f64>,
    /// `[f, h]`.
    pub dup: Vec<f64>,
    /// `[h, f]`.
    pub ddown: Vec<f64>,
}

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsSwiGluLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn SwiGluLoops;
}

impl<L: SwiGluLoops> AsSwiGluLoops for L {
    fn as_loops(&self) -> &dyn SwiGluLoops {
        self
    }
}

/// The steps of the network. A bug writes one of them wrong.
pub trait SwiGluLoops: AsSwiGluLoops {
    /// Two thirds of `4h`, cut to a whole number.
    fn two_thirds(&self, hidden_size: usize) -> usize {
        2 * 4 * hidden_size / 3
    }

    /// That size, times the multiplier, cut to a whole number.
    fn multiplied(&self, size: usize, multiplier: Option<f64>) -> usize {
        multiplier.map_or(size, |multiplier| (multiplier * size as f64) as usize)
    }

    /// Up to the next multiple.
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        size.div_ceil(multiple_of) * multiple_of
    }

    /// The size between.
    fn size(&self, case: &SizeCase) -> usize {
        let size = self.multiplied(self.two_thirds(case.hidden_size), case.multiplier);
        self.rounded(size, case.multiple_of)
    }

    /// One element of a matrix of `rows` rows and `columns` columns.
    fn weight(&self, matrix: &[f32], [_, columns]: [usize; 2], [row, column]: [usize; 2]) -> f64 {
        f64::from(matrix[row * columns + column])
    }

    /// The products of `x` and a row of weights, added up.
    fn inner(&self, products: &mut dyn ExactSizeIterator<Item = f64>) -> f64 {
        products.sum()
    }

    /// The gate: how far it is open.
    fn sigmoid(&self, a: f64) -> f64 {
        1.0 / (1.0 + (-a).exp())
    }

    /// `a`, times how far the gate is open for it.
    fn silu(&self, a: f64) -> f64 {
        a * self.sigmoid(a)
    }

    /// What goes on.
    fn between(&self, a: f64, b: f64) -> f64 {
        self.silu(a) * b
    }

    /// The slope of silu.
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 + a * (1.0 - open))
    }

    /// The gradient of one element of `W_1 x`.
    fn da(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * b * self.slope(a)
    }

    /// The gradient of one element of `W_3 x`.
    fn db(&self, dz: f64, a: f64, _b: f64) -> f64 {
        dz * self.silu(a)
    }

    /// One element of `dx`, from what comes through `W_1` and through `W_3`.
    fn dx(&self, through_gate: f64, through_up: f64) -> f64 {
        through_gate + through_up
    }

    /// Both passes over all tokens. Without a `dy` there is no way back: its sums are 0.
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        passes(self.as_loops(), case, dy)
    }
}

impl SwiGluLoops for Oracle {}

fn passes(loops: &dyn SwiGluLoops, case: &SwiGluCase, dy: &[f32]) -> Passes {
    let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
    let gate = |k, j| loops.weight(&case.gate, [f, h], [k, j]);
    let up = |k, j| loops.weight(&case.up, [f, h], [k, j]);
    let down = |j, k| loops.weight(&case.down, [h, f], [j, k]);
    let inner = |n: usize, product: &dyn Fn(usize) -> f64| loops.inner(&mut (0..n).map(product));
    let mut out = Passes {
        dgate: vec![0.0; f * h],
        dup: vec![0.0; f * h],
        ddown: vec![0.0; h * f],
        ..Passes::default()
    };
    for (token, x) in case.x.chunks(h).enumerate() {
        let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let a: Vec<f64> = (0..f).map(|k| inner(h, &|j| gate(k, j) * x[j])).collect();
        let b: Vec<f64> = (0..f).map(|k| inner(h, &|j| up(k, j) * x[j])).collect();
        let z: Vec<f64> = (0..f).map(|k| loops.between(a[k], b[k])).collect();
        out.y.extend((0..h).map(|j| inner(f, &|k| down(j, k) * z[k])));
        out.a.extend(&a);
        out.b.extend(&b);
        out.z.extend(&z);
        let Some(dy) = dy.chunks(h).nth(token) else { continue };

        let dy: Vec<f64> = dy.iter().map(|&dy| f64::from(dy)).collect();
        let dz: Vec<f64> = (0..f).map(|k| inner(h, &|j| down(j, k) * dy[j])).collect();
        let da: Vec<f64> = (0..f).map(|k| loops.da(dz[k], a[k], b[k])).collect();
        let db: Vec<f64> = (0..f).map(|k| loops.db(dz[k], a[k], b[k])).collect();
        for j in 0..h {
            let through_gate = inner(f, &|k| gate(k, j) * da[k]);
            let through_up = inner(f, &|k| up(k, j) * db[k]);
            out.dx.push(loops.dx(through_gate, through_up));
            for k in 0..f {
                out.dgate[k * h + j] += da[k] * x[j];
                out.dup[k * h + j] += db[k] * x[j];
                out.ddown[j * f + k] += dy[j] * z[k];
            }
        }
        out.dz.extend(dz);
        out.da.extend(da);
        out.db.extend(db);
    }
    out
}

/// The implementation of some loops.
pub fn implementation(loops: impl SwiGluLoops + 'static) -> Box<dyn SwiGlu> {
    Box::new(Loops::<dyn SwiGluLoops>(Rc::new(loops)))
}

impl SwiGlu for Loops<dyn SwiGluLoops> {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        Ok(self.0.size(case))
    }

    fn forward_in(&self, _: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        let passes = self.0.passes(case, &[]);
        Ok(passes.y.iter().map(|&y| y as f32).collect())
    }

    fn backward_in(&self, _: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let Passes { dx, dgate, dup, ddown, .. } = self.0.passes(case, dy);
        let round = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        let (dgate, dup, ddown) = (round(dgate), round(dup), round(ddown));
        Ok(SwiGluGrads { dx: round(dx), dgate, dup, ddown })
    }
}
