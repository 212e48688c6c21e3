//! The graded cases of a component that takes rows, `[b, s, h]`, an eps and weights.

use super::{BLOCK, Draw, EDGES, combinations, is_short, many, sizes};
use crate::category::Category;
use crate::interface::Manner;
use crate::run::Run;
use crate::violation::{Fault, Step};

/// What a graded case asks. [`PLAIN`] is one token, weights that do nothing, and an eps that is not felt.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// `b` and `s`.
    pub tokens: [usize; 2],
    /// `h`, and how many neighbours of it are one group.
    pub sizes: (usize, usize),
    /// Eps in units of the square of `scale`.
    pub eps: f64,
    /// How large the values of x are.
    pub scale: f64,
    /// What is added to the values of a token, or taken off, in turn.
    pub far: f64,
    /// What the weights are.
    pub weights: Weights,
    /// What is put among the values.
    pub among: Among,
    /// How it is asked.
    pub manner: Manner,
}

/// Gamma, and beta if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Gamma is 0, so that only what is made of the weights is left.
    Zeros,
    /// Gamma is 1 and beta 0: they do nothing.
    Plain,
    /// They are drawn.
    Drawn,
    /// They are drawn, and one gamma is 0: nothing can be divided by it.
    OneZero,
}

/// What is put in the last group of the last token of x, if nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Values like all others.
    Nothing,
    /// Zeros.
    Zeros,
    /// One NaN, and one in the first value of `dy`.
    Nan,
    /// One value that is 3000 times as large.
    Outlier,
    /// The outlier, and the NaN in the first token.
    NanBeforeOutlier,
    /// The NaN, and the outlier in the first token.
    OutlierBeforeNan,
}

/// One token of one group.
pub const PLAIN: Plan = Plan {
    tokens: [1, 1],
    sizes: (6, 6),
    eps: 1.1e-12,
    scale: 1.0,
    far: 0.0,
    weights: Weights::Plain,
    among: Among::Nothing,
    manner: Manner::Plain,
};

/// The plans, over the sizes of a menu. `far` is what is added to tokens that lie far from 0, for a component
/// to which it makes a difference.
pub fn plans(run: &Run, menu: &[(usize, usize)], far: &[f64]) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let near_far = far.first().copied().unwrap_or(0.0);
    let up_to = |most: usize| menu.iter().copied().filter(move |(h, _)| *h <= most);
    let medium: Vec<_> = up_to(200).collect();
    // A group of one element is plain for no implementation.
    let (single, small): (Vec<_>, Vec<_>) = up_to(9).partition(|(_, group)| *group == 1);
    // Something of everything: what a graded case does not ask about is plain no longer.
    let full =
        Plan { tokens: [2, 3], sizes: small[0], eps: 1.1e-3, weights: Weights::OneZero, ..PLAIN };

    // One group first.
    let whole = |(h, group): &(usize, usize)| h != group;
    let mut by_groups = small.clone();
    by_groups.sort_by_key(whole);
    // Before the statistics, which it hides.
    add(Category::Weights, Plan { weights: Weights::Zeros, ..PLAIN });
    for &sizes in &by_groups {
        add(Category::Statistics, Plan { sizes, ..PLAIN });
    }
    for tokens in [[1, 3], [2, 3]] {
        add(Category::Statistics, Plan { tokens, sizes: small[0], ..PLAIN });
    }
    for &sizes in &small {
        add(Category::Weights, Plan { sizes, weights: Weights::Drawn, ..PLAIN });
    }
    add(Category::Special, Plan { sizes: small[0], weights: Weights::OneZero, ..PLAIN });
    for &sizes in &small {
        for scale in [0, -4, -8, -10, -20, 6].map(|j| 2f64.powi(j)) {
            // 0 is an eps as well: nothing is added.
            for eps in [1.1, 0.3, 17.0, 0.0] {
                add(Category::Eps, Plan { sizes, scale, eps, ..PLAIN });
            }
        }
    }
    for scale in [1e-15, 1e-9, 1e9, 1e15] {
        add(Category::Precision, Plan { scale, ..full });
    }
    for &far in far {
        for &sizes in &medium {
            add(Category::Precision, Plan { far, sizes, ..full });
        }
    }
    add(Category::Precision, Plan { among: Among::Outlier, ..full });
    for among in [Among::Zeros, Among::Nan] {
        add(Category::Special, Plan { among, ..full });
    }
    // An eps so large that the results are tiny.
    add(Category::Special, Plan { eps: 1.1e10, ..full });
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..full });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, ..full });
    }
    for manner in [Manner::Again, Manner::Cloned] {
        add(Category::State, Plan { manner, far: near_far, ..full });
        add(Category::State, Plan { manner, among: Among::Nan, ..full });
    }
    for &sizes in &single {
        add(Category::Extent, Plan { sizes, ..PLAIN });
        for scale in [0, -8, -20].map(|j| 2f64.powi(j)) {
            add(Category::Extent, Plan { sizes, scale, eps: 1.1, ..full });
        }
    }
    for &sizes in &medium {
        add(Category::Extent, Plan { sizes, tokens: [3, 7], ..full });
        // The mean of one NaN alone need not be known.
        if sizes.1 > 1 {
            add(Category::Extent, Plan { sizes, tokens: [3, 7], among: Among::Nan, ..full });
        }
    }
    // Once: right code may take h² steps.
    for &sizes in menu.iter().filter(|sizes| !medium.contains(sizes)) {
        add(Category::Extent, Plan { sizes, tokens: [1, 2], ..full });
    }
    for n in sizes(run) {
        // Of any number of tokens: what one has must not reach the others.
        add(Category::Extent, Plan { tokens: [1, n], among: Among::Outlier, ..full });
        add(Category::Extent, Plan { tokens: [n, 1], among: Among::Nan, far: near_far, ..full });
    }
    for tokens in many(run) {
        add(Category::Extent, Plan { tokens, ..full });
    }
    for combination in combinations(run) {
        let manner = combination.pick(0, &Manner::ALL);
        let sizes =
            combination.pick(1, if is_short(combination.tokens) { &medium } else { &small });
        // Rows that are broadcast are equal, and the mean of one NaN alone need not be known.
        let among = match manner {
            Manner::Broadcast => Among::Nothing,
            _ if sizes.1 == 1 => Among::Outlier,
            _ => combination
                .pick(2, &[Among::NanBeforeOutlier, Among::Nothing, Among::OutlierBeforeNan]),
        };
        let far = combination.pick(3, &[0.0, near_far, far.last().copied().unwrap_or(0.0)]);
        let scale = combination.pick(4, &[1.0, 1e-6, 1.0, 2f64.powi(-8), 1e13]);
        let weights = combination.pick(5, &[Weights::Drawn, Weights::OneZero]);
        let far = if scale == 1.0 { far } else { 0.0 };
        let tokens = combination.tokens;
        add(Category::Extent, Plan { tokens, sizes, among, far, scale, weights, manner, ..full });
    }
    plans
}

/// Something of all that the formula has, in round sizes.
pub fn typical(sizes: (usize, usize)) -> Plan {
    Plan { tokens: [2, 8], sizes, eps: 0.5, weights: Weights::Drawn, ..PLAIN }
}

/// With a gamma of 0 a wrong answer is about the weights. No answer is about nothing: the next question decides.
pub fn if_answered(judged: Step) -> Step {
    judged.or_else(|violation| match violation.fault {
        Fault::Differs { .. } => Err(violation),
        _ => Ok(()),
    })
}

/// The values of a plan.
pub struct Rows {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// Eps.
    pub eps: f64,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
    /// `[b, s, h]`.
    pub dy: Vec<f32>,
    /// Numbers for the weights.
    pub draw: Draw,
}

impl Plan {
    /// The values.
    pub fn rows(self, run: &Run) -> Rows {
        let Self { tokens: [b, s], sizes: (h, group), scale, manner, .. } = self;
        let mut draw = Draw::new(run, (b * 1000 + s * 100 + h + group) as u64);
        let row = s * h;
        let mut x: Vec<f32> = Vec::with_capacity(b * row);
        for i in 0..b * row {
            // Tokens differ in size, so that a mean over several of them shows.
            let token = i / h;
            let far = if token % 2 == 0 { self.far } else { -self.far };
            let size = 2f64.powi((token % 5) as i32 - 2);
            let value = (f64::from(draw.value()) * size * scale + far) as f32;
            x.push(if manner == Manner::Broadcast && i >= row { x[i - row] } else { value });
        }
        let last = x.len() - group;
        match self.among {
            Among::Nothing => {}
            Among::Zeros => x[last..].fill(0.0),
            Among::Nan => x[last] = f32::NAN,
            Among::Outlier => x[last] *= 3000.0,
            // An outlier is not a token's first value: who shifts by that one is right elsewhere.
            Among::NanBeforeOutlier => {
                x[b * row - 1] *= 3000.0;
                x[0] = f32::NAN;
            }
            Among::OutlierBeforeNan => {
                x[h - 1] *= 3000.0;
                x[last] = f32::NAN;
            }
        }
        let mut dy = draw.values(b * row);
        if manner == Manner::Broadcast {
            (row..b * row).for_each(|i| dy[i] = dy[i - row]);
        }
        // One that comes back, to another token.
        if self.among == Among::Nan && b * s > 1 {
            dy[0] = f32::NAN;
        }
        Rows { shape: [b, s, h], eps: self.eps * scale * scale, x, dy, draw }
    }

    /// The category of this question about a gradient: statistics over another group, or the gradient's own sums.
    pub fn category_of_gradient(self, category: Category) -> Category {
        let (h, group) = self.sizes;
        match category {
            Category::Statistics if h == group || self.tokens != PLAIN.tokens => Category::Gradient,
            other => other.of_gradient(),
        }
    }

    /// Whether it is asked of what is summed over the tokens. Each other number of tokens is asked of the values
    /// and of `dx`.
    pub fn is_for_sums(self) -> bool {
        let [b, s] = self.tokens;
        EDGES.contains(&b.max(s)) || b * s > BLOCK
    }

    /// Whether it can be asked of a gradient. There is a tape anyway. Right formulas for it have the cube of the root, which leaves f32 before the values do.
    pub fn has_gradient(self) -> bool {
        let cubes = (1e-10..1e10).contains(&self.scale);
        cubes && self.manner != Manner::Traced && self.weights != Weights::Zeros
    }

    /// Whether it can be asked of values.
    pub fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}
