//! The graded cases of stretched RoPE: what is asked, from the plainest question on.

use crate::category::Category;
use crate::frequencies::interface::*;
use crate::frequencies::laws::{
    Asked, answers_dx, answers_y, matches_dtheta, matches_dx, matches_frequencies, matches_y,
};
use crate::frequencies::menu;
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::graded_cases::{BLOCK, Draw, GradedCase, combinations, edges, many, sizes};
use crate::oracle::Oracle;
use crate::run::Run;

type Any = dyn StretchedRope;
type Judge = fn(&Any, &Asked) -> crate::violation::Step;

// --- frequencies ----------------------------------------------------------------------------

/// A rule in general: with a factor, a trained length, and a draw for what else it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interpolated,
    Ntk,
    Dynamic,
    Yarn,
    Llama3,
    LongRope,
}

const KINDS: [Kind; 6] =
    [Kind::Interpolated, Kind::Ntk, Kind::Dynamic, Kind::Yarn, Kind::Llama3, Kind::LongRope];

/// What a question about frequencies is made of.
#[derive(Debug, Clone, Copy)]
struct Setting {
    factor: f64,
    ms: usize,
    d: usize,
    head_dim: usize,
    base: f64,
    offset: usize,
    seq_len: usize,
    /// Limits, and whether YaRN rounds.
    band: [f64; 2],
    truncate: bool,
}

/// Head size and base at which each plane is 10 times slower than the one before, in a text of 4 trained lengths.
const PLAIN: Setting = Setting {
    factor: 4.0,
    ms: 1000,
    d: 8,
    head_dim: 8,
    base: 10_000.0,
    offset: 0,
    seq_len: 4000,
    band: [1.0, 32.0],
    truncate: true,
};

impl Setting {
    fn case(self, kind: Kind) -> FrequenciesCase {
        let Self { factor, ms: max_seq_len, d, head_dim, base, offset, seq_len, .. } = self;
        let [slow, fast] = self.band;
        let rule = match kind {
            Kind::Interpolated => Stretch::Interpolated { factor },
            Kind::Ntk => Stretch::Ntk { factor },
            Kind::Dynamic => Stretch::DynamicNtk { factor, max_seq_len },
            Kind::Yarn => Stretch::Yarn {
                factor,
                max_seq_len,
                beta_fast: fast,
                beta_slow: slow,
                truncate: self.truncate,
            },
            Kind::Llama3 => Stretch::Llama3 {
                factor,
                max_seq_len,
                low_freq_factor: slow,
                high_freq_factor: fast / 8.0,
            },
            Kind::LongRope => {
                let list = |step: usize, by: f64| {
                    (1..=d / 2).map(|i| 0.75 + by * (i * step % 8) as f64).collect()
                };
                let (short_factor, long_factor) = (list(3, 0.125), list(5, factor));
                Stretch::LongRope { factor, max_seq_len, short_factor, long_factor }
            }
        };
        FrequenciesCase { rule, head_dim, rotary_dim: d, base, offset, seq_len }
    }
}

/// Whether a rule has an answer that no rounding decides: YaRN's ramp has planes, and its ends are no whole numbers.
fn is_clear(case: &FrequenciesCase) -> bool {
    let Stretch::Yarn { max_seq_len, beta_fast, beta_slow, truncate, .. } = case.rule else {
        return true;
    };
    let (d, ms) = (case.rotary_dim as f64, max_seq_len as f64);
    let ends = Oracle.yarn_ends([beta_fast, beta_slow], d, case.base, ms);
    let [first, last] = Oracle.yarn_within(Oracle.yarn_rounded(ends, truncate), d);
    // Roundings in f32 move an end by less than a thousandth: see tolerance.rs.
    first + 0.5 < last && ends.iter().all(|end| (end - end.round()).abs() > 1e-3)
}

fn settings(run: &Run) -> Vec<(Category, Setting)> {
    let mut all = Vec::new();
    let mut add = |category, setting| all.push((category, setting));
    add(Category::Frequencies, PLAIN);
    for factor in [1.0, 2.0, 1.5, 8.0, 32.0] {
        add(Category::Frequencies, Setting { factor, ..PLAIN });
    }
    for base in [100.0, 500_000.0, 1e6] {
        add(Category::Frequencies, Setting { base, ..PLAIN });
    }
    // A text so long for a base so small that YaRN's ramp would end past the planes.
    for truncate in [true, false] {
        add(Category::Frequencies, Setting { base: 10.0, truncate, ..PLAIN });
    }
    for ms in [100, 4096, 8192, 131_072] {
        add(Category::Frequencies, Setting { ms, ..PLAIN });
    }
    for band in [[1.0, 16.0], [2.0, 40.0], [0.5, 64.0]] {
        add(Category::Frequencies, Setting { band, ..PLAIN });
        add(Category::Frequencies, Setting { band, truncate: false, ..PLAIN });
    }
    for seq_len in [1, 500, 999, 1000, 1001, 1500, 64_000] {
        add(Category::Extent, Setting { seq_len, ..PLAIN });
    }
    for (offset, seq_len) in [(999, 1), (1000, 1), (500, 500), (500, 501), (3000, 7)] {
        add(Category::Offset, Setting { offset, seq_len, ..PLAIN });
    }
    for (d, head_dim) in [(4, 8), (6, 8), (8, 64), (64, 128)] {
        add(Category::Frequencies, Setting { d, head_dim, ..PLAIN });
    }
    let every: Vec<usize> = if run.every_size { (2..=70).collect() } else { vec![2, 3, 16] };
    for d in every.into_iter().map(|half| 2 * half) {
        add(Category::Extent, Setting { d, head_dim: d, ..PLAIN });
        add(Category::Extent, Setting { d, head_dim: d, seq_len: 500, ..PLAIN });
        add(Category::Extent, Setting { d, head_dim: d, ms: 300, truncate: false, ..PLAIN });
    }
    for combination in combinations(run).into_iter().step_by(3) {
        let d = 2 * combination.pick(1, &[2, 3, 4, 16, 32, 64]);
        let ms = combination.pick(2, &[100, 1000, 2048, 8192]);
        add(
            Category::Extent,
            Setting {
                factor: combination.pick(3, &[1.0, 2.0, 3.5, 40.0]),
                ms,
                d,
                head_dim: d * combination.pick(4, &[1, 2]),
                base: combination.pick(5, &[1000.0, 10_000.0, 500_000.0]),
                offset: combination.pick(6, &[0, ms - 1, ms / 2, 3 * ms]),
                seq_len: combination.pick(7, &[1, 2, ms / 2, ms]),
                band: combination.pick(8, &[[1.0, 32.0], [2.0, 24.0]]),
                truncate: combination.pick(9, &[true, false]),
            },
        );
    }
    all
}

// --- the rotation ---------------------------------------------------------------------------

/// What is put among the values of the last head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// Zeros, and in `dy` too.
    Zeros,
    /// One NaN, and one in the first value of `dy`.
    Nan,
}

/// What a graded case asks.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `b`, `s` and `nh`.
    heads: [usize; 3],
    hd: usize,
    planes: usize,
    offset: usize,
    scale: f64,
    among: Among,
    manner: Manner,
}

/// One plane of two turns at position 1: x is 0 elsewhere.
const FIRST: Plan = Plan {
    heads: [1, 1, 1],
    hd: 4,
    planes: 2,
    offset: 1,
    scale: 1.0,
    among: Among::Nothing,
    manner: Manner::Plain,
};

/// Something of all that the formula has, in round sizes.
const TYPICAL: Plan = Plan { heads: [2, 8, 2], hd: 8, planes: 3, offset: 8, scale: 1.25, ..FIRST };

fn plans(run: &Run) -> Vec<(Category, Plan)> {
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    let full = Plan { heads: [2, 3, 2], hd: 6, planes: 3, ..FIRST };
    add(Category::Rotation, FIRST);
    add(Category::Rotation, Plan { offset: 0, ..FIRST });
    add(Category::Rotation, Plan { scale: 1.25, ..FIRST });
    for hd in menu::HEAD_DIM {
        add(Category::Rotation, Plan { hd, planes: hd / 2, ..FIRST });
    }
    for (planes, hd) in [(1, 4), (2, 6), (2, 8), (3, 8)] {
        add(Category::Order, Plan { hd, planes, ..FIRST });
        add(Category::Order, Plan { hd, planes, scale: 1.25, ..full });
    }
    add(Category::Order, full);
    for offset in [0, 2, 7, 100, 1000] {
        add(Category::Offset, Plan { offset, ..full });
    }
    for among in [Among::Zeros, Among::Nan] {
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
    for n in sizes(run) {
        add(Category::Extent, Plan { heads: [1, n, 1], ..full });
    }
    for n in edges(run) {
        add(Category::Extent, Plan { heads: [n, 2, 1], ..full });
        add(Category::Extent, Plan { heads: [1, 2, n], among: Among::Zeros, ..full });
        add(Category::Extent, Plan { heads: [1, 2, n], scale: 1.25, offset: 1000, ..full });
        add(Category::Extent, Plan { heads: [1, 1, 2], hd: 2 * n + 2, planes: n + 1, ..full });
    }
    for [b, s] in many(run) {
        add(Category::Extent, Plan { heads: [b, s, 2], ..full });
    }
    // With a scale, where all of a head turns and where a part of it does, so that all of the formula shows.
    let whole = Plan { scale: 1.25, offset: 3, ..full };
    for scaled in [whole, Plan { hd: 8, ..whole }] {
        for manner in Manner::OTHERS {
            add(Category::Extent, Plan { manner, ..scaled });
        }
        for among in [Among::Zeros, Among::Nan] {
            add(Category::Extent, Plan { among, ..scaled });
        }
        for offset in [0, 1, 2, 10, 70, 300] {
            add(Category::Extent, Plan { offset, ..scaled });
        }
        for n in edges(run) {
            add(Category::Extent, Plan { heads: [n, 2, 2], ..scaled });
            add(Category::Extent, Plan { heads: [2, n, 2], ..scaled });
            add(Category::Extent, Plan { heads: [2, 2, n], ..scaled });
            let more = scaled.hd - 2 * scaled.planes;
            add(Category::Extent, Plan { hd: 2 * n + 2 + more, planes: n + 1, ..scaled });
        }
    }
    for combination in combinations(run).into_iter().step_by(2) {
        let hd = combination.pick(1, &menu::HEAD_DIM);
        let manner = combination.pick(2, &Manner::ALL);
        let among = match manner {
            Manner::Broadcast => Among::Nothing,
            _ => combination.pick(3, &[Among::Nothing, Among::Zeros, Among::Nan]),
        };
        let [b, s] = combination.tokens;
        add(
            Category::Extent,
            Plan {
                heads: [b, s, combination.pick(4, &[1, 2, 3])],
                hd,
                planes: hd / 2 - combination.pick(5, &[0, 0, 1]),
                offset: combination.pick(6, &[0, 1, 63, 500]),
                scale: combination.pick(7, &[1.0, 1.0, 1.375]),
                among,
                manner,
            },
        );
    }
    plans
}

impl Plan {
    fn asked(self, run: &Run) -> Asked {
        let Self { heads: [b, s, nh], hd, planes, offset, scale, among, manner } = self;
        let mut draw = Draw::new(run, (b * 10_000 + s * 1000 + nh * 100 + hd) as u64);
        let row = s * nh * hd;
        let mut x = draw.values(b * row);
        let mut dy = draw.values(b * row);
        if manner == Manner::Broadcast {
            for i in row..b * row {
                (x[i], dy[i]) = (x[i - row], dy[i - row]);
            }
        }
        let last = x.len() - hd;
        match among {
            Among::Nothing => {}
            Among::Zeros => {
                x[last] = 0.0;
                dy[last + hd - 1] = 0.0;
            }
            Among::Nan => {
                x[last] = f32::NAN;
                dy[0] = f32::NAN;
            }
        }
        // Numbers of f32, so that trained frequencies hold them: 1, and each next one 3/8 of it.
        let frequencies = (0..planes).map(|i| 0.375f64.powi(i as i32)).map(|t| f64::from(t as f32));
        let frequencies = frequencies.collect();
        let case = StretchedRopeCase { shape: [b, s, nh, hd], offset, frequencies, scale, x };
        Asked { manner, case, dy }
    }

    /// Whether the frequencies have a gradient: they are trained where all of a head turns.
    fn is_trained(self) -> bool {
        2 * self.planes == self.hd
    }

    /// Whether it is asked of the sums over tokens and heads. Many small ones say nothing new.
    fn is_for_sums(self) -> bool {
        let [b, s, nh] = self.heads;
        self.is_trained() && (b.max(s).max(nh) < 20 || b * s > BLOCK || s.is_power_of_two())
    }

    fn has_values(self) -> bool {
        !matches!(self.manner, Manner::UsedTwice | Manner::Continued)
    }
}

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Any>> {
    let run = *run;
    let mut graded: Vec<GradedCase<Any>> = Vec::new();
    for kind in KINDS {
        let typical =
            Setting { d: 64, head_dim: 128, ms: 4096, seq_len: 16_384, ..PLAIN }.case(kind);
        let call = typical.rule.call();
        graded.push(GradedCase::typical(call, move |rope| matches_frequencies(rope, &typical)));
        for (category, setting) in settings(&run) {
            let case = setting.case(kind);
            if is_clear(&case) {
                graded.push(GradedCase::new(call, category, move |rope| {
                    matches_frequencies(rope, &case)
                }));
            }
        }
    }
    let judges: [(_, Judge); 3] = [
        ("forward", matches_y),
        ("backward (dx)", matches_dx),
        ("backward (dtheta)", matches_dtheta),
    ];
    graded.extend(judges.map(|(call, judge)| {
        // Frequencies are trained where all of a head turns.
        let planes = if call == "backward (dtheta)" { TYPICAL.hd / 2 } else { TYPICAL.planes };
        GradedCase::typical(call, move |rope| judge(rope, &Plan { planes, ..TYPICAL }.asked(&run)))
    }));
    for offset in [TYPICAL.offset + 1, TYPICAL.offset - 1, 0] {
        let other = move |asked: &Asked| StretchedRopeCase { offset, ..asked.case.clone() };
        graded.push(GradedCase::elsewhere("forward", move |rope| {
            let asked = TYPICAL.asked(&run);
            answers_y(rope, &asked, &other(&asked))
        }));
        graded.push(GradedCase::elsewhere("backward (dx)", move |rope| {
            let asked = TYPICAL.asked(&run);
            answers_dx(rope, &asked, &other(&asked))
        }));
    }
    for (category, plan) in plans(&run) {
        for (call, judge) in judges {
            let (asked, category) = match call {
                "forward" => (plan.has_values(), category),
                "backward (dx)" => (plan.manner != Manner::Traced, category.of_gradient()),
                _ => (plan.manner != Manner::Traced && plan.is_for_sums(), category.of_gradient()),
            };
            if asked {
                graded.push(GradedCase::new(call, category, move |rope| {
                    judge(rope, &plan.asked(&run))
                }));
            }
        }
    }
    graded
}
