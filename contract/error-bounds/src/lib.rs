//! The arithmetic of a model, exactly or as `f32` does it, and the gradient of what is computed with it.
//!
//! How far `f32` takes a whole model from the truth can't be written down in a line. A bound that adds up the worst
//! of each operation is too large to be of use: 8 % of a gradient, for two blocks. The roundings are therefore made, by
//! `contract/src/model/bounds.rs`. It is a separate crate, so that it is optimized: a learner waits for it.

use std::cell::RefCell;

/// What becomes of the result of each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// It stays as it is.
    All,
    /// It is rounded to `f32`. Sums are made in this order.
    F32(Order),
}

/// The order of a sum's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the first.
    Left,
    /// From the last.
    Right,
    /// Halves, each by itself.
    Halves,
}

impl Digits {
    fn keep(self, value: f64) -> f64 {
        if self == Self::All { value } else { f64::from(value as f32) }
    }

    fn sum(self, terms: &[f64]) -> f64 {
        let add = |sum: f64, term: &f64| self.keep(sum + term);
        match self {
            Self::F32(Order::Right) => terms.iter().rev().fold(0.0, add),
            Self::F32(Order::Halves) if terms.len() > 1 => {
                let (left, right) = terms.split_at(terms.len() / 2);
                self.keep(self.sum(left) + self.sum(right))
            }
            _ => terms.iter().fold(0.0, add),
        }
    }
}

/// A number on a [`Tape`], by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At(usize);

impl At {
    /// Its place among the results of [`Tape::back`].
    pub fn place(self) -> usize {
        self.0
    }
}

/// All that was computed, in its order. If its gradient is wanted, it knows how each number changes with those that
/// it was made of.
pub struct Tape {
    digits: Digits,
    keeps_slopes: bool,
    made: RefCell<Made>,
}

#[derive(Default)]
struct Made {
    values: Vec<f64>,
    /// Where the slopes of each number end.
    ends: Vec<usize>,
    slopes: Vec<(At, f64)>,
}

impl Tape {
    /// An empty one.
    pub fn new(digits: Digits, keeps_slopes: bool) -> Self {
        Self { digits, keeps_slopes, made: RefCell::default() }
    }

    fn put(&self, value: f64, from: impl IntoIterator<Item = (At, f64)>) -> At {
        let mut made = self.made.borrow_mut();
        if self.keeps_slopes {
            made.slopes.extend(from);
            let end = made.slopes.len();
            made.ends.push(end);
        }
        made.values.push(self.digits.keep(value));
        At(made.values.len() - 1)
    }

    /// A weight, or another number that is given.
    pub fn given(&self, value: f64) -> At {
        self.put(value, [])
    }

    /// The value at a place.
    pub fn value(&self, at: At) -> f64 {
        self.made.borrow().values[at.0]
    }

    /// The sum.
    pub fn sum(&self, terms: &[At]) -> At {
        let values: Vec<f64> = terms.iter().map(|&term| self.value(term)).collect();
        self.put(self.digits.sum(&values), terms.iter().map(|&term| (term, 1.0)))
    }

    /// The sum of products.
    pub fn dot(&self, x: &[At], y: &[At]) -> At {
        let pairs: Vec<[(At, f64); 2]> =
            x.iter().zip(y).map(|(&x, &y)| [(x, self.value(x)), (y, self.value(y))]).collect();
        let products: Vec<f64> =
            pairs.iter().map(|[(_, x), (_, y)]| self.digits.keep(x * y)).collect();
        let slopes = pairs.iter().flat_map(|&[(at, x), (other, y)]| [(at, y), (other, x)]);
        self.put(self.digits.sum(&products), slopes)
    }

    /// `x y`.
    pub fn product(&self, x: At, y: At) -> At {
        let (a, b) = (self.value(x), self.value(y));
        self.put(a * b, [(x, b), (y, a)])
    }

    /// `factor x`.
    pub fn scaled(&self, x: At, factor: f64) -> At {
        let factor = self.digits.keep(factor);
        self.put(factor * self.value(x), [(x, factor)])
    }

    /// `1 / sqrt(x + eps)`.
    pub fn inverse_root(&self, x: At, eps: f64) -> At {
        let value = self.digits.keep(self.value(x) + eps);
        let inverse = self.digits.keep(1.0 / self.digits.keep(value.sqrt()));
        self.put(inverse, [(x, self.digits.keep(-0.5 * inverse / value))])
    }

    /// `x / y`.
    pub fn quotient(&self, x: At, y: At) -> At {
        let (a, b) = (self.value(x), self.value(y));
        let value = self.digits.keep(a / b);
        self.put(value, [(x, self.digits.keep(1.0 / b)), (y, self.digits.keep(-value / b))])
    }

    /// `exp(x)`.
    pub fn exp(&self, x: At) -> At {
        let value = self.digits.keep(self.value(x).exp());
        self.put(value, [(x, value)])
    }

    /// `ln(x)`.
    pub fn ln(&self, x: At) -> At {
        let value = self.value(x);
        self.put(value.ln(), [(x, self.digits.keep(1.0 / value))])
    }

    /// `x / (1 + exp(-x))`.
    pub fn silu(&self, x: At) -> At {
        let value = self.value(x);
        let gate = self.digits.keep(1.0 / self.digits.keep(1.0 + (-value).exp()));
        self.put(value * gate, [(x, self.digits.keep(gate * (1.0 + value * (1.0 - gate))))])
    }

    /// The gradient of `end` with respect to all that came before it.
    pub fn back(&self, end: At) -> Vec<f64> {
        let made = self.made.borrow();
        let mut gradient = vec![0.0; made.values.len()];
        gradient[end.0] = 1.0;
        for at in (0..=end.0).rev() {
            let start = at.checked_sub(1).map_or(0, |before| made.ends[before]);
            for (from, slope) in &made.slopes[start..made.ends[at]] {
                let term = self.digits.keep(gradient[at] * slope);
                gradient[from.0] = self.digits.keep(gradient[from.0] + term);
            }
        }
        gradient
    }
}
