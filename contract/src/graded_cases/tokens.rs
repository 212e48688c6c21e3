//! The graded cases of a component that looks ids up in a table: ids `[b, s]`, rows of `e` elements.

use super::{Combination, Draw, combinations, is_short, many, sizes};
use crate::category::Category;
use crate::interface::Manner;
use crate::run::Run;

/// What a graded case asks. [`PLAIN`] is one token.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// `b` and `s`.
    pub tokens: [usize; 2],
    /// `v` and `e`.
    pub sizes: (usize, usize),
    /// Which ids.
    pub ids: Ids,
    /// How large the gradient is.
    pub scale: f32,
    /// Whether there are NaN, infinities and zeros.
    pub special: bool,
    /// Whether they are in the table's even rows, and not in the odd ones.
    pub even: bool,
    /// How it is asked.
    pub manner: Manner,
}

/// Which ids a plan has.
#[derive(Debug, Clone, Copy)]
pub enum Ids {
    /// This one, everywhere.
    One(usize),
    /// Any. The first two tokens have the last id, the last token the first one.
    Any,
    /// Each another one, and none 0.
    Apart,
    /// Any from two before the first of these to two past the end, as far as they exist.
    Near(usize, usize),
}

/// One token.
pub const PLAIN: Plan = Plan {
    tokens: [1, 1],
    sizes: (7, 2),
    ids: Ids::Any,
    scale: 1.0,
    special: false,
    even: false,
    manner: Manner::Plain,
};

/// The plans, over tables of these sizes.
pub fn plans(run: &Run, menu: &[(usize, usize)]) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let full = Plan { tokens: [2, 3], sizes: menu[0], ..PLAIN };
    for &sizes in menu {
        let (v, _) = sizes;
        for id in [v / 2, v - 1] {
            add(Category::Lookup, Plan { sizes, ids: Ids::One(id), ..PLAIN });
        }
    }
    for &sizes in menu {
        // Id 0 is a row like any other, and no mark of what is to be left out.
        add(Category::Mask, Plan { sizes, ids: Ids::One(0), ..PLAIN });
    }
    add(Category::Lookup, Plan { tokens: [1, 5], ..full });
    // An id that comes again: its gradients add up.
    add(Category::Gradient, Plan { ids: Ids::One(3), ..full });
    add(Category::Order, full);
    add(Category::Order, Plan { tokens: [4, 2], ..full });
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, ..full });
    }
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..full });
    }
    // Of a table that is cut: nothing in it for most ranks.
    add(Category::Gradient, Plan { ids: Ids::One(0), manner: Manner::Continued, ..full });
    for scale in [1e-12, 1e12] {
        add(Category::Precision, Plan { scale, ..full });
    }
    for &sizes in menu.iter().filter(|(v, _)| *v < 1000) {
        add(Category::Special, Plan { special: true, tokens: [3, 5], sizes, ..full });
    }
    for manner in [Manner::Again, Manner::Cloned] {
        add(Category::State, Plan { manner, special: true, tokens: [3, 5], ..full });
    }
    for &sizes in menu {
        add(Category::Extent, Plan { sizes, ..full });
    }
    for n in sizes(run) {
        add(Category::Extent, Plan { tokens: [1, n], ..full });
        add(Category::Extent, Plan { tokens: [n, 1], special: n > 2, ..full });
    }
    add(Category::Extent, Plan { tokens: [9, 17], ..full });
    for tokens in many(run) {
        // With a scale that is no power of 2, sums round, and their order shows.
        add(Category::Extent, Plan { tokens, scale: 0.3, ..full });
    }
    plans
}

/// Plans in which nothing is plain, over tables of these sizes.
pub fn mixed(run: &Run, menu: &[(usize, usize)]) -> Vec<Plan> {
    let plan = |combination: Combination| {
        let manner = combination.pick(0, &Manner::ALL);
        let plain = matches!(manner, Manner::Plain | Manner::Again | Manner::Cloned);
        let narrow = menu.iter().copied().filter(|(_, e)| is_short(combination.tokens) || *e < 10);
        let sizes = combination.pick(1, &narrow.collect::<Vec<_>>());
        let special = plain && combination.pick(2, &[true, true, false]);
        let even = combination.pick(3, &[false, true]);
        Plan { tokens: combination.tokens, sizes, special, even, manner, ..PLAIN }
    };
    combinations(run).into_iter().map(plan).collect()
}

/// The values of a plan.
pub struct Tokens {
    /// `[b, s]`.
    pub ids: Vec<usize>,
    /// `[v, e]`.
    pub table: Vec<f32>,
    /// `[b, s, e]`.
    pub dy: Vec<f32>,
}

/// What arithmetic does not keep. The first is the smallest number of `f32`.
pub const SPECIAL: [f32; 8] = [
    1e-45,
    f32::INFINITY,
    -0.0,
    f32::NAN,
    f32::MAX,
    f32::NEG_INFINITY,
    f32::MIN_POSITIVE / 3.0,
    1.000_000_1,
];

impl Plan {
    /// The values.
    pub fn tokens(self, run: &Run) -> Tokens {
        let Self { tokens: [b, s], sizes: (v, e), scale, .. } = self;
        let mut draw = Draw::new(run, (b * 1000 + s * 100 + v + e) as u64);
        let mut ids: Vec<usize> = (0..b * s)
            .map(|t| match self.ids {
                Ids::One(id) => id,
                Ids::Any => draw.below(v),
                Ids::Apart => 1 + (5 * t + 2) % (v - 1),
                Ids::Near(first, end) => {
                    let (first, end) = (first.saturating_sub(2), v.min(end + 2));
                    first + draw.below(end - first)
                }
            })
            .collect();
        if let Ids::Any = self.ids {
            ids[0] = v - 1;
            if b * s > 3 {
                ids[1] = v - 1; // an id comes again, in every size of a table
            }
            ids[b * s - 1] = 0;
        }
        if self.manner == Manner::Broadcast {
            (s..b * s).for_each(|t| ids[t] = ids[t - s]);
        }
        let mut table = draw.values(v * e);
        let mut dy: Vec<f32> = draw.values(b * s * e).iter().map(|dy| scale * dy).collect();
        // The elements of a row may add up to 0, and the row is not 0.
        if e > 1 {
            dy[1] = -dy[0];
            dy[2..e].fill(0.0);
        }
        if self.special {
            // Every other row is special, each in its own way.
            let is_special = |i: usize| (i / e).is_multiple_of(2) == self.even;
            for (i, value) in table.iter_mut().enumerate().filter(|(i, _)| is_special(*i)) {
                *value = SPECIAL[(i / e / 2 + i % e) % SPECIAL.len()];
            }
            for (t, value) in [(1, f32::NAN), (2, f32::INFINITY)] {
                dy.get_mut(t * e).into_iter().for_each(|dy| *dy = value);
            }
        }
        Tokens { ids, table, dy }
    }

    /// Whether it can be asked of a gradient.
    pub fn has_gradient(self) -> bool {
        self.manner != Manner::Traced
    }

    /// Whether it can be asked of values.
    pub fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}

/// Several sentences, with ids that come again.
pub const TYPICAL: Plan = Plan { tokens: [2, 8], sizes: (16, 4), ..PLAIN };

/// Tokens in a row, each with another id: whose gradient is wrong?
pub const APART: Plan = Plan { tokens: [1, 8], sizes: (12, 5), ids: Ids::Apart, ..PLAIN };

/// Of [`APART`], whether the tokens that are not near an end have their gradient: no other token has their row.
pub fn middle_is_right(ids: &[usize], got: &[f32], expected: &[f64]) -> bool {
    let e = APART.sizes.1;
    let same = |id: usize| {
        let mut pairs = got[id * e..].iter().zip(&expected[id * e..]).take(e);
        pairs.all(|(&got, &expected)| f64::from(got) == expected)
    };
    got.len() == expected.len() && ids[2..6].iter().all(|&id| same(id))
}

/// A batch with bad ids.
pub struct Bad {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// The bad ids, each with its place among the tokens.
    pub ids: Vec<(usize, usize)>,
}

/// Batches with one bad id in which nothing is plain: the manner, and the batch for a table of `v` rows.
pub fn mixed_bad(combination: Combination, v: usize) -> (Manner, Bad) {
    let manners = [Manner::Plain, Manner::Again, Manner::Cloned, Manner::Traced];
    let ids = [v, v + 1, 2 * v, (1 << 16) + v, (1 << 32) + 3, 1 << 63, usize::MAX];
    let [b, s] = combination.tokens;
    let place = combination.pick(4, &[b * s - 1, b * s / 2]);
    let ids = vec![(place, combination.pick(5, &ids))];
    (combination.pick(6, &manners), Bad { shape: combination.tokens, ids })
}

/// Batches with ids that a table of `v` rows does not have.
pub fn bad_batches(run: &Run, v: usize) -> Vec<Bad> {
    let mut batches = Vec::new();
    let mut add = |shape, ids: &[(usize, usize)]| batches.push(Bad { shape, ids: ids.to_vec() });
    add([4, 5], &[(13, 977)]);
    add([4, 5], &[(13, 977), (14, 31), (19, usize::MAX)]);
    add([4, 5], &[(9, 977), (10, 31)]); // the first row's comes first, in a later column
    add([4, 5], &[(9, v + 31), (10, v + 977)]); // neither the largest nor the last is named
    add([5, 4], &[(0, v)]);
    add([5, 4], &[(19, v + 1)]);
    // What becomes small if it is cut, negative if it has a sign, or wraps around if it is multiplied.
    for huge in [(1 << 8) + 3, (1 << 16) + 3, (1 << 32) + 3, 1 << 63, usize::MAX, usize::MAX - 2] {
        add([2, 3], &[(4, huge)]);
    }
    for n in sizes(run) {
        add([1, n], &[(n - 1, v)]);
        add([n, 2], &[(2 * n - 1, v + n)]);
    }
    batches
}
