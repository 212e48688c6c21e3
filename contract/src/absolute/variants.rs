//! Correct variants of absolute positions.

use crate::absolute::interface::*;
use crate::absolute::oracle::{Ids, PositionLoops, implementation};
use crate::component::Variant;
use crate::oracle::Oracle;
use std::cmp::Reverse;
use std::f64::consts::FRAC_PI_2;
use std::ops::Range;

/// A variant: its name, and the steps that it writes in another way.
macro_rules! variant {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl PositionLoops for $name { $($steps)* }
        || -> Box<dyn AbsolutePositions> { implementation($name) }
    }};
}

/// The variants.
pub static VARIANTS: &[Variant<dyn AbsolutePositions>] = &[
    Variant {
        id: "absolute/in-f32",
        about: "angles in f64, and all else in f32: the table, the sums, the gradient, whose texts come last to first",
        implementation: variant!(InF32 {
            fn pair(&self, angle: f64) -> [f64; 2] {
                Oracle.pair(angle).map(|value| f64::from(value as f32))
            }
            fn sum(&self, x: f64, p: f64, _: usize) -> f64 {
                f64::from(x as f32 + p as f32)
            }
            fn learned_sum(&self, x: f64, p: f64) -> f64 {
                f64::from(x as f32 + p as f32)
            }
            fn dtable(&self, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
                let [b, s, h] = case.shape;
                let mut sums = vec![0.0f32; case.max_seq_len * h];
                for text in (0..b).rev() {
                    let rows = &mut sums[case.offset * h..];
                    let dy = &dy[text * s * h..][..s * h];
                    rows.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
                }
                sums.into_iter().map(f64::from).collect()
            }
        }),
    },
    Variant {
        id: "absolute/exponentials",
        about: "frequencies as e^(−2i·ln(base)/h), as most PyTorch code has them",
        implementation: variant!(Exponentials {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                (2.0 * i as f64 * (-base.ln() / h as f64)).exp()
            }
        }),
    },
    Variant {
        id: "absolute/divided",
        about: "the position divided by base^(2i/h), and each power from the one before",
        implementation: variant!(Divided {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                let step = base.powf(2.0 / h as f64);
                1.0 / (0..i).fold(1.0, |power, _| power * step)
            }
        }),
    },
    Variant {
        id: "absolute/one-sine",
        about: "a cosine is a sine a quarter turn ahead: one function for the whole table",
        implementation: variant!(OneSine {
            fn pair(&self, angle: f64) -> [f64; 2] {
                [0.0, FRAC_PI_2].map(|ahead| (angle + ahead).sin())
            }
        }),
    },
    Variant {
        id: "absolute/recurrence",
        about: "each row from the one before, turned by one step; in f64",
        implementation: variant!(Recurrence {
            fn table(&self, h: usize, base: f64, positions: Range<usize>) -> Vec<f64> {
                let step = self.shift(h, base, 1);
                let mut row = self.row(positions.start, h, base);
                let mut table = Vec::new();
                for _ in positions {
                    table.extend(&row);
                    row = product(&step, &row, h);
                }
                table
            }
        }),
    },
    Variant {
        id: "absolute/shift-by-squares",
        about: "the shift by k as the k-th power of the shift by 1, by repeated squares",
        implementation: variant!(ShiftBySquares {
            fn shift(&self, h: usize, base: f64, steps: usize) -> Vec<f64> {
                let mut square = Oracle.shift(h, base, 1);
                let mut power = Oracle.shift(h, base, 0);
                let mut left = steps;
                while left > 0 {
                    if left % 2 == 1 {
                        power = product(&power, &square, h);
                    }
                    square = product(&square, &square, h);
                    left /= 2;
                }
                power
            }
        }),
    },
    Variant {
        id: "absolute/gradient-row-by-row",
        about: "for each row of the table a sum over all tokens, those of its own position picked out",
        implementation: variant!(GradientRowByRow {
            fn dtable(&self, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
                let [_, s, h] = case.shape;
                let of_row = |(token, _): &(usize, &f32), row: usize, j: usize| {
                    case.offset + token / h % s == row && token % h == j
                };
                let element = |at: usize| {
                    let dy = dy.iter().enumerate();
                    let own = dy.filter(|place| of_row(place, at / h, at % h));
                    own.map(|(_, &dy)| f64::from(dy)).sum()
                };
                (0..case.max_seq_len * h).map(element).collect()
            }
        }),
    },
    Variant {
        id: "absolute/sorted-by-position",
        about: "with position_ids, the gradient of the table from tokens that are sorted by their position, each row's sum in f32",
        implementation: variant!(SortedByPosition {
            fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
                let mut tokens: Vec<_> = ids.of.iter().zip(dy.chunks(h)).collect();
                tokens.sort_by_key(|(id, _)| Reverse(**id));
                let mut sums = vec![0.0f32; ids.rows * h];
                for (id, dy) in tokens {
                    sums[id * h..].iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
                }
                sums.into_iter().map(f64::from).collect()
            }
        }),
    },
];

/// The product of two matrices, or of a matrix and a column; `a` is `[h, h]`, `b` `[h, n]`.
fn product(a: &[f64], b: &[f64], h: usize) -> Vec<f64> {
    let n = b.len() / h;
    let element = |at: usize| (0..h).map(|k| a[at / n * h + k] * b[k * n + at % n]).sum();
    (0..h * n).map(element).collect()
}
