//! The graded cases of SwiGLU: what is asked, from the plainest question on.

use crate::category::Category;
use crate::feedforward::interface::*;
use crate::feedforward::laws::{
    Asked, matches_ddown, matches_dgate, matches_dup, matches_dx, matches_size, matches_y,
};
use crate::feedforward::menu::{FEEDFORWARD, LARGE};
use crate::feedforward::oracle::SwiGluLoops;
use crate::graded_cases::{BLOCK, Draw, EDGES, GradedCase, combinations, is_short, many, sizes};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::Step;

type Network = dyn SwiGlu;
type Judge = fn(&Network, &Asked) -> Step;

/// What is put among the values of the last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// Zeros, and in the first row of `dy` too.
    Zeros,
    /// One NaN, and one in the first value of `dy`.
    Nan,
    /// A NaN in the first token instead.
    NanFirst,
    /// One value that is 3000 times as large: its gates are shut or open.
    Outlier,
}

/// For combinations: zeros twice, which sums are asked about too.
const AMONG: [Among; 6] =
    [Among::Zeros, Among::Nothing, Among::Nan, Among::Outlier, Among::Zeros, Among::NanFirst];

/// What a graded case asks. [`PLAIN`] is one number.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `b` and `s`.
    tokens: [usize; 2],
    /// `h` and `f`.
    sizes: (usize, usize),
    /// How large the values of x are.
    scale: f64,
    among: Among,
    manner: Manner,
}

const PLAIN: Plan = Plan {
    tokens: [1, 1],
    sizes: (1, 1),
    scale: 1.0,
    among: Among::Nothing,
    manner: Manner::Plain,
};

/// Something of all that the formula has, in round sizes.
const TYPICAL: Plan = Plan { tokens: [2, 8], sizes: (8, 16), ..PLAIN };

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let full = Plan { tokens: [2, 3], sizes: FEEDFORWARD[0], ..PLAIN };
    for scale in [1.0, 0.25, -1.0, -0.25, 3.0, -3.0] {
        add(Category::Gate, Plan { scale, ..PLAIN });
    }
    for sizes in [FEEDFORWARD[0], FEEDFORWARD[1], FEEDFORWARD[3]] {
        add(Category::Order, Plan { sizes, ..PLAIN });
    }
    add(Category::Order, full);
    // Far from 0, where the gate is open or shut, and near it, where it is half open.
    for scale in [1e-12, 1e-4, 40.0, -40.0, 1e4, 1e9] {
        add(Category::Precision, Plan { scale, ..PLAIN });
        add(Category::Precision, Plan { scale, ..full });
    }
    add(Category::Precision, Plan { among: Among::Outlier, ..full });
    for among in [Among::Zeros, Among::Nan, Among::NanFirst] {
        add(Category::Special, Plan { among, ..full });
    }
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Plan { manner, ..full });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Plan { manner, ..full });
    }
    for manner in [Manner::Again, Manner::Cloned] {
        add(Category::State, Plan { manner, ..full });
        add(Category::State, Plan { manner, among: Among::Nan, ..full });
    }
    let large = LARGE.into_iter().filter(|_| run.every_size);
    let menu: Vec<_> = FEEDFORWARD.into_iter().chain(large).collect();
    for &sizes in &menu {
        add(Category::Extent, Plan { sizes, tokens: [3, 7], ..full });
        add(Category::Extent, Plan { sizes, among: Among::Zeros, ..full });
    }
    for n in sizes(run) {
        // Of any number of tokens: what one has must not reach the others.
        add(Category::Extent, Plan { tokens: [1, n], among: Among::Outlier, ..full });
        add(Category::Extent, Plan { tokens: [n, 1], among: Among::Nan, ..full });
    }
    for n in EDGES.into_iter().filter(|n| *n > 1 && run.every_size) {
        add(Category::Extent, Plan { tokens: [n, 1], among: Among::Zeros, ..full });
    }
    for tokens in many(run) {
        add(Category::Extent, Plan { tokens, ..full });
    }
    for combination in combinations(run) {
        let manner = combination.pick(0, &Manner::ALL);
        let sizes = combination
            .pick(1, if is_short(combination.tokens) { &menu } else { &FEEDFORWARD[..3] });
        // Rows that are broadcast are equal.
        let among = match manner {
            Manner::Broadcast => Among::Nothing,
            _ => combination.pick(2, &AMONG),
        };
        let scale = combination.pick(3, &[1.0, 1e-3, 1.0, -30.0]);
        add(Category::Extent, Plan { tokens: combination.tokens, sizes, scale, among, manner });
    }
    plans
}

impl Plan {
    /// The values. Weights are such that a gate is neither open nor shut where x is of size 1.
    fn asked(self, run: &Run) -> Asked {
        let Self { tokens: [b, s], sizes: (h, f), scale, among, manner } = self;
        let mut draw = Draw::new(run, (b * 1000 + s * 100 + h * 10 + f) as u64);
        let share = 0.5 / h.next_power_of_two() as f32;
        let gate = draw.values(f * h).into_iter().map(|w| if h == 1 { w.abs() } else { w * share });
        let gate = gate.collect();
        let (up, down) = (draw.values(f * h), draw.values(h * f));
        let row = s * h;
        let mut x: Vec<f32> = Vec::with_capacity(b * row);
        for i in 0..b * row {
            // Tokens differ in size, so that one in another's place shows.
            let size = 2f64.powi((i / h % 4) as i32 - 1);
            // Of one number, the sign is that of the scale.
            let drawn = f64::from(draw.value());
            let drawn = if h == 1 && b * s == 1 { drawn.abs() / 2.0 } else { drawn };
            let value = (drawn * size * scale) as f32;
            x.push(if manner == Manner::Broadcast && i >= row { x[i - row] } else { value });
        }
        let mut dy = draw.values(b * row);
        if manner == Manner::Broadcast {
            (row..b * row).for_each(|i| dy[i] = dy[i - row]);
        }
        let last = x.len() - h;
        match among {
            Among::Nothing => {}
            Among::Zeros => {
                x[last] = 0.0;
                dy[0] = 0.0;
            }
            Among::Nan => {
                x[last] = f32::NAN;
                // One that comes back, to another token.
                if b * s > 1 {
                    dy[0] = f32::NAN;
                }
            }
            Among::NanFirst => x[0] = f32::NAN,
            Among::Outlier => x[last] *= 3000.0,
        }
        let case = SwiGluCase { shape: [b, s, h], ffn_hidden_size: f, gate, up, down, x };
        Asked { manner, case, dy }
    }

    /// Whether it is asked of what is summed over the tokens. A NaN would be in every sum, so once is enough.
    fn is_for_sums(self) -> bool {
        let [b, s] = self.tokens;
        let edge = EDGES.contains(&b.max(s)) || b * s > BLOCK;
        edge && (self.among != Among::Nan || self.sizes == FEEDFORWARD[0])
    }

    /// Whether it can be asked of a gradient. There is a tape anyway.
    fn has_gradient(self) -> bool {
        self.manner != Manner::Traced
    }

    /// Whether it can be asked of values.
    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}

/// Questions about the size: every small one, powers of 2 and their neighbours, each multiple with each multiplier.
fn size_cases(run: &Run) -> Vec<SizeCase> {
    let mut cases = Vec::new();
    let mut add = |hidden_size, multiple_of, multiplier| {
        cases.push(SizeCase { hidden_size, multiple_of, multiplier });
    };
    let large = [256, 257, 1000, 4096, 5120, 65_537, 1 << 20];
    for h in (1..=70).chain(large).filter(|h| run.every_size || *h < 10 || *h == 4096) {
        add(h, 1, None);
        for multiple_of in [2, 3, 64, 100, 256, 4096] {
            add(h, multiple_of, None);
        }
        for multiplier in [1.0, 1.3, 1.5, 0.5, 0.75, 2.0, 0.9999] {
            add(h, 1, Some(multiplier));
            add(h, 16, Some(multiplier));
            add(h, 1024, Some(multiplier));
        }
    }
    // What is cut is the product in f64, not what it should be on paper: 0.29 · 200 is 57.99999999999999.
    for (h, multiplier) in [(75, 0.29), (75, 0.53), (150, 1.05), (300, 1.13), (75, 1.15)] {
        add(h, 1, Some(multiplier));
        add(h, 2, Some(multiplier));
    }
    // What is off by one before it is rounded up is off by a multiple after it.
    for multiple_of in [64, 256, 1024, 4096] {
        add(3545, multiple_of, Some(1.3));
    }
    cases
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Network>> {
    let mut graded: Vec<GradedCase<Network>> = Vec::new();
    for case in size_cases(run) {
        graded.push(GradedCase::new("size", Category::Extent, move |swiglu| {
            matches_size(swiglu, &case, Oracle.size(&case))
        }));
    }
    let run = *run;
    let judges: [(_, Judge); 5] = [
        ("forward", matches_y),
        ("backward (dx)", matches_dx),
        ("backward (dgate)", matches_dgate),
        ("backward (dup)", matches_dup),
        ("backward (ddown)", matches_ddown),
    ];
    graded.extend(judges.map(|(call, judge)| {
        GradedCase::typical(call, move |swiglu| judge(swiglu, &TYPICAL.asked(&run)))
    }));
    for (category, plan) in plans(&run) {
        let of_gradient = category.of_gradient();
        for (call, judge) in judges {
            let (asked, category) = match call {
                "forward" => (plan.has_values(), category),
                "backward (dx)" => (plan.has_gradient(), of_gradient),
                _ => (plan.has_gradient() && plan.is_for_sums(), of_gradient),
            };
            if asked {
                graded.push(GradedCase::new(call, category, move |swiglu| {
                    judge(swiglu, &plan.asked(&run))
                }));
            }
        }
    }
    graded
}
