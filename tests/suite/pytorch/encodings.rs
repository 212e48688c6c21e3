//! What the tests of position encodings share. transformers 5.23 and PyTorch computed their numbers, all in float64:
//! `tests/goldens/` has a module for each file.

use super::*;

/// `[b, s, nh, hd]`, and other shapes of four.
pub type Four = (usize, usize, usize, usize);

impl<'a> Goldens {
    /// The cases of one kind.
    pub fn of_kind(&'a self, kind: &str) -> Vec<Case<'a>> {
        let cases: Vec<_> =
            self.cases("f64").filter(|case| case.settings["kind"] == kind).collect();
        assert!(!cases.is_empty(), "no case of {kind}");
        cases
    }
}

impl Case<'_> {
    /// A number that not every case has.
    pub fn given(&self, key: &str) -> Option<f64> {
        self.settings[key].as_f64()
    }

    pub fn numbers(&self, key: &str) -> Vec<f64> {
        let list =
            self.settings[key].as_array().unwrap_or_else(|| panic!("{}: no {key}", self.name));
        list.iter().map(|x| x.as_f64().unwrap()).collect()
    }

    pub fn heads(&self) -> Four {
        (self.size("b"), self.size("s"), self.size("nh"), self.size("hd"))
    }
}

/// A rotation whose tables are `f32` and whose arithmetic is `f64`: each of two products has the rounding of a cosine or
/// a sine, of numbers up to `scale`. An angle at position `far` is off by some `far 2^-52`.
#[track_caller]
pub fn assert_turned(got: &[f64], want: &[f64], from: &[f64], scale: f64, far: usize) {
    let bound = (2.0 * U32 + 16.0 * (far as f64 + 1.0) * U64) * scale * largest(from);
    assert_within(got, want, |_| bound);
}

/// `x` of a case turned by `rotate`, and its gradient.
#[track_caller]
pub fn turned<const HD: usize>(
    case: &Case,
    [x, dy, y, dx]: [&str; 4],
    (scale, far): (f64, usize),
    rotate: impl Fn(Heads<HD, OwnedTape<f64, Dev>>) -> Heads<HD, OwnedTape<f64, Dev>>,
) {
    let (b, s, nh, _) = case.heads();
    let (x, dy) = (case.f64(x), case.f64(dy));
    let input: Heads<HD> = tensor(&x, (b, s, nh, Const));
    let got = rotate(input.leaky_trace());
    assert_turned(&got.as_vec(), &case.f64(y), &x, scale, far);
    let got = backward(got, &dy).get(&input).as_vec();
    assert_turned(&got, &case.f64(dx), &dy, scale, far);
}

pub type Heads<const HD: usize, T = NoneTape> =
    Tensor<(usize, usize, usize, Const<HD>), f64, Dev, T>;

pub const NAMES: [&str; 4] = ["x", "dy", "y", "dx"];
