//! Correct variants of NTK-aware RoPE.

use crate::component::Variant;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::{Machine, RopeLoops, implementation};
use std::ops::Range;

/// A variant: its name, and the steps that it writes in another way.
macro_rules! variant {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl RopeLoops for $name { $($steps)* }
        || -> Box<dyn NtkAwareRope> { implementation($name) }
    }};
}

/// The variants.
pub static VARIANTS: &[Variant<dyn NtkAwareRope>] = &[
    Variant {
        id: "rope/f32-angles",
        about: "f32 throughout, the angles too, as PyTorch models do; less exact, and told so",
        implementation: variant!(F32Angles {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                let d = d as f32;
                let base = base as f32 * (ratio as f32).powf(d / (d - 2.0));
                f64::from(1.0 / base.powf(2.0 * i as f32 / d))
            }
            fn angle(&self, position: usize, theta: f64) -> f64 {
                f64::from(position as f32 * theta as f32)
            }
            fn cos_sin(&self, angle: f64) -> (f64, f64) {
                let angle = angle as f32;
                (f64::from(angle.cos()), f64::from(angle.sin()))
            }
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                fused(case, &case.x, 1.0)
            }
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                fused(case, dy, -1.0)
            }
        }),
    },
    Variant {
        id: "rope/f32-exponentials",
        about: "frequencies as e^(−ln(base)·2i/d), and angles, in f32",
        implementation: variant!(F32Exponentials {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                let base = self.ntk_base(base, ratio, d) as f32;
                f64::from((-base.ln() * (2.0 * i as f32 / d as f32)).exp())
            }
            fn angle(&self, position: usize, theta: f64) -> f64 {
                f64::from(position as f32 * theta as f32)
            }
        }),
    },
    Variant {
        id: "rope/fused-loop",
        about: "one loop over pairs in f32, as fused kernels do; the gradient changes the sign \
                of sin",
        implementation: variant!(FusedLoop {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                fused(case, &case.x, 1.0)
            }
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                fused(case, dy, -1.0)
            }
        }),
    },
    Variant {
        id: "rope/complex",
        about: "complex numbers: z = x_i + i·x_{i+d/2} times e^{imθ}, the gradient times its \
                conjugate",
        implementation: variant!(ComplexForm {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                product(x, [cos[0], sin[0]])
            }
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                product(dy, [cos[0], -sin[0]])
            }
        }),
    },
    Variant {
        id: "rope/rolled",
        about: "x rolled by half a head, and a sin with signs, all in f32",
        implementation: variant!(Rolled {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                rolled(case, &case.x, |x, cos, partner, sin| x * cos + partner * sin)
            }
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                rolled(case, dy, |dy, cos, partner, sin| dy * cos - partner * sin)
            }
        }),
    },
    Variant {
        id: "rope/multiply-add",
        about: "products and sums in one rounding, as GPUs do",
        implementation: variant!(MultiplyAdd {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                let [x0, x1, c, s] = [x[0], x[1], cos[0], sin[0]].map(|value| value as f32);
                [x0.mul_add(c, -(x1 * s)), x1.mul_add(c, x0 * s)].map(f64::from)
            }
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                self.turn(dy, cos, sin.map(|s| -s))
            }
        }),
    },
    Variant {
        id: "rope/pairs-of-cos-and-sin",
        about: "the table as one array of (cos, sin) per plane, spread over both halves at the \
                end",
        implementation: variant!(PairTable {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                let thetas = self.frequencies(d, base, ratio);
                let turn = |m: usize, theta: &f64| {
                    let (sin, cos) = (m as f64 * theta).sin_cos();
                    [cos as f32, sin as f32]
                };
                let row = |m| thetas.iter().map(move |theta| turn(m, theta));
                let pairs: Vec<[f32; 2]> = positions.flat_map(row).collect();
                let spread = |part: usize| {
                    let rows = pairs.chunks(d / 2);
                    rows.flat_map(|row| row.iter().chain(row)).map(|pair| pair[part]).collect()
                };
                Tables { cos: spread(0), sin: spread(1) }
            }
        }),
    },
    Variant {
        id: "rope/recurrence",
        about: "each row of the table from the one before, by the addition theorem in f64",
        implementation: variant!(Recurrence {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                let thetas = self.frequencies(d, base, ratio);
                let start = positions.start as f64;
                let unit = |theta: f64, m: f64| [(m * theta).cos(), (m * theta).sin()];
                let mut now: Vec<[f64; 2]> = thetas.iter().map(|&t| unit(t, start)).collect();
                let mut tables = Tables { cos: Vec::new(), sin: Vec::new() };
                for _ in positions {
                    for turn in now.iter().chain(&now) {
                        tables.cos.push(turn[0] as f32);
                        tables.sin.push(turn[1] as f32);
                    }
                    for (turn, &theta) in now.iter_mut().zip(&thetas) {
                        *turn = product(*turn, unit(theta, 1.0));
                    }
                }
                tables
            }
        }),
    },
    Variant {
        id: "rope/divide-by-beta",
        about: "each frequency is the one before divided by c·β",
        implementation: variant!(DivideByBeta {
            fn frequencies(&self, d: usize, base: f64, ratio: f64) -> Vec<f64> {
                let beta = base.powf(2.0 / d as f64);
                let c = ratio.powf(2.0 / (d as f64 - 2.0));
                let theta = std::iter::successors(Some(1.0), |theta| Some(theta / (c * beta)));
                theta.take(d / 2).collect()
            }
        }),
    },
    Variant {
        id: "rope/interleave-inside",
        about: "half-split heads are interleaved, turned as neighbours, and split again",
        implementation: variant!(InterleaveInside {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                through_neighbours(case, &case.x, |case| Oracle.rotate(case))
            }
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                through_neighbours(case, dy, |case| Oracle.rotate_backward(case, &case.x))
            }
        }),
    },
    Variant {
        id: "rope/no-cache",
        about: "rows computed at each call from the ratio alone; the cache is only reported",
        implementation: variant!(NoCache {
            fn cached_rows(&self, machine: &Machine, positions: Range<usize>) -> Tables {
                self.long_rows(machine, machine.state.ratio, positions)
            }
        }),
    },
    Variant {
        id: "rope/whole-table",
        about: "a long call builds all ms·k' rows and takes its own from them, as PyTorch \
                models do",
        implementation: variant!(WholeTable {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                let settings = RopeSettings { ratio, ..machine.settings };
                match self.fresh(&settings) {
                    Ok(state) => self.cached_rows(&Machine { state, settings }, rows),
                    Err(_) => Oracle.long_rows(machine, ratio, rows),
                }
            }
        }),
    },
    Variant {
        id: "rope/text-by-text",
        about: "with position_ids each text is a call of its own, with an offset",
        implementation: variant!(TextByText {
            fn call_at(&self, machine: &mut Machine, case: &RopeCase, ids: &[usize]) -> Reply<Vec<f64>> {
                let mut y = Vec::new();
                for text in case.runs(ids)? {
                    y.extend(self.call(&mut machine.clone(), &text)?);
                }
                Ok(y)
            }
        }),
    },
];

/// `a · b` of complex numbers.
fn product(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// All pairs in `f32`. `sign` is -1 to turn back.
fn fused(case: &RotateCase, values: &[f32], sign: f32) -> Vec<f64> {
    let [_, s, nh, d] = case.shape;
    let step = if case.layout == Layout::HalfSplit { (1, d / 2) } else { (2, 1) };
    let mut out = vec![0.0; values.len()];
    for (head, values) in values.chunks(d).enumerate() {
        let row = head / nh % s * d;
        for i in 0..d / 2 {
            let (a, b) = (i * step.0, i * step.0 + step.1);
            let (cos, sin) = (case.tables.cos[row + a], sign * case.tables.sin[row + a]);
            out[head * d + a] = f64::from(values[a] * cos - values[b] * sin);
            out[head * d + b] = f64::from(values[a] * sin + values[b] * cos);
        }
    }
    out
}

/// Each value with its partner, and sin with a minus in the first dimension of each pair.
fn rolled(
    case: &RotateCase,
    values: &[f32],
    combine: impl Fn(f32, f32, f32, f32) -> f32,
) -> Vec<f64> {
    let [_, s, nh, d] = case.shape;
    let value = |i: usize| {
        let (start, j) = (i - i % d, i % d);
        let (partner, first) = match case.layout {
            Layout::HalfSplit => ((j + d / 2) % d, j < d / 2),
            Layout::Interleaved => (j ^ 1, j % 2 == 0),
        };
        let at = i / d / nh % s * d + j;
        let sin = if first { -case.tables.sin[at] } else { case.tables.sin[at] };
        f64::from(combine(values[i], case.tables.cos[at], values[start + partner], sin))
    };
    (0..values.len()).map(value).collect()
}

/// A half-split rotation by way of the interleaved one.
fn through_neighbours(
    case: &RotateCase,
    values: &[f32],
    turn: impl Fn(&RotateCase) -> Vec<f64>,
) -> Vec<f64> {
    let inside = RotateCase { x: values.to_vec(), ..case.clone() };
    if case.layout == Layout::Interleaved {
        return turn(&inside);
    }
    let d = case.shape[3];
    let to = |values: &[f32]| Oracle.to_interleaved(d, values);
    let tables = Tables { cos: to(&case.tables.cos), sin: to(&case.tables.sin) };
    let inside = RotateCase { tables, x: to(values), layout: Layout::Interleaved, ..inside };
    let y = turn(&inside);
    let place = |j: usize| if j < d / 2 { 2 * j } else { 2 * (j - d / 2) + 1 };
    (0..y.len()).map(|i| y[i - i % d + place(i % d)]).collect()
}
