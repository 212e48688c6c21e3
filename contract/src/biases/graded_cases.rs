//! The graded cases of biases in the scores: what is asked, from the plainest question on.

use crate::biases::interface::*;
use crate::biases::laws::*;
use crate::biases::tolerance::is_decided;
use crate::category::Category;
use crate::graded_cases::{Draw, EDGES, GradedCase, combinations, edges, sizes};
use crate::run::Run;
use crate::violation::holds;

type Biases = dyn ScoreBiases;

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Biases>> {
    let mut graded = Vec::new();
    slopes(run, &mut graded);
    alibi(*run, &mut graded);
    buckets(run, &mut graded);
    t5(*run, &mut graded);
    kerple(*run, &mut graded);
    transformer_xl(*run, &mut graded);
    graded
}

fn slopes(run: &Run, graded: &mut Vec<GradedCase<Biases>>) {
    graded.push(GradedCase::typical("slopes", |biases| matches_slopes(biases, 12)));
    let mut add = |category, num_heads| {
        graded.push(GradedCase::new("slopes", category, move |biases| {
            matches_slopes(biases, num_heads)
        }));
    };
    for num_heads in [8, 1, 2, 4, 16, 12, 6, 20] {
        add(Category::Frequencies, num_heads);
    }
    for num_heads in sizes(run) {
        add(Category::Extent, num_heads);
    }
    for num_heads in [96, 112, 128].into_iter().filter(|_| run.every_size) {
        add(Category::Extent, num_heads);
    }
}

/// What is put among the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Nothing,
    /// Zeros and a subnormal.
    Zeros,
    /// A NaN.
    Nan,
    /// A query whose score with itself is far below any number that is taken for minus infinity.
    Low,
}

/// Puts it into the first `one` elements of queries and keys.
fn put(among: Among, one: usize, q: &mut [f32], k: &mut [f32]) {
    match among {
        Among::Zeros => (q[0], k[0]) = (0.0, 1e-40),
        Among::Low => q[..one].iter_mut().zip(k).for_each(|(q, k)| *q = -1e12 * *k),
        _ => (),
    }
}

fn alibi(run: Run, graded: &mut Vec<GradedCase<Biases>>) {
    graded.push(GradedCase::typical("alibi", move |biases| {
        matches_alibi(biases, &alibi_text([3, 8, 4, 8], &run))
    }));
    // Right without a past, and wrong with one.
    graded.push(GradedCase::elsewhere("alibi", move |biases| {
        let judge = |shape| matches_alibi(biases, &alibi_text(shape, &run));
        judge([5, 5, 3, 4])?;
        holds("alibi", judge([3, 8, 4, 8]).is_err(), || "a past is right as well".to_string())
    }));
    let mut add = |category, shape, among| {
        graded.push(GradedCase::new("alibi", category, move |biases| {
            let mut case = alibi_text(shape, &run);
            put(among, shape[2] * shape[3], &mut case.q, &mut case.k);
            matches_alibi(biases, &case)
        }));
    };
    add(Category::Statistics, [1, 2, 1, 1], Among::Nothing);
    add(Category::Statistics, [1, 5, 1, 1], Among::Nothing);
    add(Category::Order, [1, 4, 3, 1], Among::Nothing);
    add(Category::Wiring, [1, 4, 2, 4], Among::Nothing);
    add(Category::Offset, [2, 5, 2, 4], Among::Nothing);
    add(Category::Mask, [4, 4, 2, 4], Among::Nothing);
    add(Category::Special, [4, 6, 3, 4], Among::Zeros);
    add(Category::Mask, [3, 3, 2, 4], Among::Low);
    for n in sizes(&run) {
        add(Category::Extent, [2, n + 2, 2, 2], Among::Nothing);
        add(Category::Extent, [n, n + 2, 1, 2], Among::Nothing);
        add(Category::Extent, [2, 4, n, 2], Among::Nothing);
        // The last of a text, with heads that are no power of two.
        add(Category::Extent, [1, n, 12, 1], Among::Nothing);
    }
    // Of three heads, and divided by a root that is not 1, so that all of the formula shows.
    for n in edges(&run) {
        add(Category::Extent, [2, 4, 3, n], Among::Nothing);
        add(Category::Extent, [1, 4, 3, n], Among::Nothing);
        add(Category::Extent, [n, n, 3, 2], Among::Zeros);
        add(Category::Extent, [n, n + 3, 3, 2], Among::Nothing);
        add(Category::Extent, [1, 3, n, 4], Among::Nothing);
        add(Category::Extent, [2, 5, n, 4], Among::Nothing);
    }
    for [s, t] in short_texts(&run) {
        add(Category::Extent, [s, t, 3, 4], Among::Nothing);
    }
    for combination in combinations(&run).into_iter().step_by(2) {
        let [s, more] = combination.tokens;
        let shape = [
            s,
            s + combination.pick(0, &[0, more, 1]),
            combination.pick(1, &[1, 2, 5, 12]),
            combination.pick(2, &[1, 4, 9]),
        ];
        add(Category::Extent, shape, combination.pick(3, &[Among::Nothing, Among::Zeros]));
    }
}

/// Up to eight keys, and of these the last queries: one, half of them, all.
fn short_texts(run: &Run) -> Vec<[usize; 2]> {
    let longest = if run.every_size { 8 } else { 3 };
    let texts = |t: usize| [[1, t], [t.div_ceil(2), t], [t, t]];
    (2..=longest).flat_map(texts).collect()
}

/// Buckets of one direction and the longest distance. Of each rule, one distance beyond 2⁷ at least is in another
/// bucket if the longest is taken for one less; of the last two, one beyond 2¹⁰.
const FAR: [(usize, usize); 6] =
    [(8, 200), (12, 250), (16, 350), (8, 450), (32, 2500), (16, 12_000)];

/// The last distances of a rule's buckets, and the first ones of the next.
fn both_sides(num_buckets: usize, max_distance: usize) -> impl Iterator<Item = usize> {
    let exact = num_buckets / 2;
    let more = num_buckets - exact;
    let ratio = max_distance as f64 / exact as f64;
    let edge = move |nth| exact as f64 * ratio.powf(f64::from(nth as u32) / f64::from(more as u32));
    (1..more).map(edge).flat_map(|edge| [edge as usize, edge as usize + 1])
}

/// Buckets of one direction, the longest distance, and a distance that begins a bucket: ln(d / e) / ln(longest / e) · (n − e) is a
/// whole number.
const WHOLE: [(usize, usize, i64); 6] =
    [(8, 16, 8), (16, 32, 16), (16, 512, 64), (32, 256, 64), (32, 256, 128), (32, 1024, 128)];

/// Every near distance in both directions, and far ones, by every rule.
fn buckets(run: &Run, graded: &mut Vec<GradedCase<Biases>>) {
    let case = |(num_buckets, max_distance, bidirectional), relative| BucketCase {
        relative,
        bidirectional,
        num_buckets,
        max_distance,
    };
    graded.push(GradedCase::typical("bucket", move |biases| {
        matches_bucket(biases, &published(-40, false))
    }));
    let mut add = |category, case: BucketCase| {
        if is_decided(&case) {
            graded.push(GradedCase::new("bucket", category, move |biases| {
                matches_bucket(biases, &case)
            }));
        }
    };
    let near: Vec<i64> = match run.every_size {
        true => (0..140).collect(),
        false => vec![0, 1, 3, 7, 8, 15, 16, 19, 40, 90, 127, 128, 130],
    };
    for rule in RULES {
        for &distance in &near {
            let category = if rule.1 == 128 { Category::Range } else { Category::Extent };
            add(category, case(rule, -distance));
            add(Category::Mask, case(rule, distance));
        }
        for far in [1 << 10, 1 << 20, 1 << 31, 1 << 40] {
            add(Category::Extent, case(rule, -far));
            add(Category::Extent, case(rule, far));
        }
    }
    // More buckets than 16 bits can count.
    for buckets in [1usize << 18].into_iter().filter(|_| run.every_size) {
        for relative in [buckets / 8, buckets, 5 * buckets].map(|d| -(d as i64)) {
            add(Category::Extent, case((buckets, 40 * buckets, false), relative));
            add(Category::Extent, case((buckets, 40 * buckets, true), relative));
        }
    }
    for (n, longest) in FAR.into_iter().filter(|_| run.every_size) {
        for distance in both_sides(n, longest) {
            add(Category::Extent, case((n, longest, false), -(distance as i64)));
            add(Category::Extent, case((2 * n, longest, true), -(distance as i64)));
        }
    }
    // Any number of buckets, and longest distances.
    for n in sizes(run) {
        for (longest, both) in [(3 * n, false), (n + 1, false), (500, true)] {
            if both && n < 4 {
                continue;
            }
            for relative in [0, 1, 2, n / 4, n / 2, n, 2 * n, 5 * n].map(|d| -(d as i64)) {
                add(Category::Extent, case((n, longest, both), relative));
            }
            add(Category::Extent, case((n, longest, both), n as i64));
        }
    }
    // Where the logarithms give a whole number, and their last digits one less. PyTorch's f32 gives it too.
    for (n, longest, distance) in WHOLE {
        for (n, both) in [(n, false), (2 * n, true)] {
            let case = case((n, longest, both), -distance);
            let judge = move |biases: &Biases| matches_bucket(biases, &case);
            graded.push(GradedCase::new("bucket", Category::Precision, judge));
        }
    }
}

/// Some table, and a gradient.
fn t5_asked(
    shape: [usize; 2],
    num_heads: usize,
    (num_buckets, max_distance, bidirectional): (usize, usize, bool),
    (among, manner): (Among, Manner),
    run: &Run,
) -> Asked<T5Case> {
    let [s, t] = shape;
    let mut draw = Draw::new(run, (s * 7 + t * 11 + num_heads * 13 + num_buckets) as u64);
    let (mut table, mut dy) =
        (draw.values(num_buckets * num_heads), draw.values(num_heads * s * t));
    match among {
        Among::Nothing | Among::Low => {}
        Among::Zeros => {
            table[0] = 0.0;
            table[num_heads] = 1e-40;
            dy[0] = 0.0;
        }
        Among::Nan => {
            table[0] = f32::NAN;
            dy[0] = f32::NAN;
        }
    }
    let case = T5Case { shape, num_heads, bidirectional, num_buckets, max_distance, table };
    Asked { manner, case, dy }
}

fn t5(run: Run, graded: &mut Vec<GradedCase<Biases>>) {
    // One distance is in another bucket if the longest is taken for one less.
    const SMALL: (usize, usize, bool) = (6, 9, false);
    const BOTH: (usize, usize, bool) = (12, 50, true);
    let plain = (Among::Nothing, Manner::Plain);
    let typical = move || t5_asked([4, 16], 2, SMALL, plain, &run);
    graded.push(GradedCase::typical("t5", move |biases| matches_t5(biases, &typical())));
    graded
        .push(GradedCase::typical("t5_backward", move |biases| matches_dtable(biases, &typical())));
    let mut add = |category: Category,
                   shape: [usize; 2],
                   num_heads,
                   rule,
                   how: (Among, Manner),
                   sums: bool| {
        let asked = move || t5_asked(shape, num_heads, rule, how, &run);
        if !matches!(how.1, Manner::UsedTwice | Manner::Continued) {
            graded
                .push(GradedCase::new("t5", category, move |biases| matches_t5(biases, &asked())));
        }
        if sums && how.1 != Manner::Traced {
            let category = category.of_gradient();
            graded.push(GradedCase::new("t5_backward", category, move |biases| {
                matches_dtable(biases, &asked())
            }));
        }
    };
    add(Category::Lookup, [1, 1], 1, SMALL, plain, true);
    add(Category::Lookup, [1, 14], 1, SMALL, plain, true);
    add(Category::Order, [1, 14], 3, SMALL, plain, true);
    add(Category::Offset, [3, 9], 2, SMALL, plain, true);
    add(Category::Mask, [9, 9], 2, SMALL, plain, true);
    add(Category::Mask, [9, 9], 2, BOTH, plain, true);
    for rule in RULES {
        add(Category::Extent, [3, 60], 2, rule, plain, true);
    }
    add(Category::Extent, [2, 140], 1, RULES[0], plain, true);
    for among in [Among::Zeros, Among::Nan] {
        add(Category::Special, [3, 9], 2, SMALL, (among, Manner::Plain), true);
        add(Category::Special, [5, 70], 3, BOTH, (among, Manner::Plain), true);
    }
    for manner in [Manner::Traced, Manner::Permuted, Manner::UsedTwice, Manner::Continued] {
        let category =
            if manner == Manner::Permuted { Category::Order } else { Category::Gradient };
        add(category, [3, 12], 2, SMALL, (Among::Nothing, manner), true);
        add(category, [5, 20], 3, BOTH, (Among::Nothing, manner), true);
    }
    for n in sizes(&run) {
        let sums = EDGES.contains(&n);
        let rule = if n % 2 == 0 { (5, 9, true) } else { SMALL };
        add(Category::Extent, [2, n + 12], 2, rule, plain, sums);
        add(Category::Extent, [n, n + 12], 2, SMALL, plain, sums);
        add(Category::Extent, [2, 15], n, SMALL, plain, sums);
        if sums {
            add(Category::Extent, [n, n + 12], 2, (5, 9, true), plain, true);
            add(Category::Extent, [2, 15], n, BOTH, plain, true);
            add(Category::Extent, [3, 14], 2, (2 * n.max(2), 6 * n.max(2) + 1, true), plain, true);
        }
        add(Category::Extent, [2, 14], 2, (n.max(4), 3 * n.max(4) + 1, n % 3 == 0), plain, sums);
    }
    for rule in [SMALL, BOTH] {
        add(Category::Extent, [1, 14], 2, rule, plain, true);
        add(Category::Extent, [2, 15], 1, rule, plain, true);
        for text in short_texts(&run) {
            add(Category::Extent, text, 2, rule, plain, true);
        }
    }
    for combination in combinations(&run).into_iter().step_by(2) {
        let [s, more] = combination.tokens;
        let shape = [s, s + combination.pick(0, &[0, more, 12])];
        let manner = combination
            .pick(3, &[Manner::Plain, Manner::Permuted, Manner::UsedTwice, Manner::Continued]);
        let among = combination.pick(4, &[Among::Nothing, Among::Zeros, Among::Nan]);
        let (heads, rule) = (combination.pick(1, &[1, 2, 5]), combination.pick(2, &RULES[2..]));
        add(Category::Extent, shape, heads, rule, (among, manner), true);
    }
}

/// Numbers within their bounds; or, head by head, below them, above them, 0 and within them, begun at one of these.
fn kerple_asked(
    kernel: Kernel,
    num_heads: usize,
    positions: usize,
    (among, manner, beyond): (Among, Manner, Option<usize>),
    run: &Run,
) -> Asked<KerpleCase> {
    let mut draw = Draw::new(run, (positions * 11 + num_heads * 13 + kernel as usize) as u64);
    let mut number = |head: usize| {
        let size = draw.value().abs();
        match beyond.map(|first| (first + head) % 4) {
            Some(0) => -size,
            Some(1) => 2.0 + size,
            Some(2) => 0.0,
            _ => size / 2.5,
        }
    };
    let r1: Vec<f32> = (0..num_heads).map(|head| number(head + 2)).collect();
    let r2: Vec<f32> = (0..num_heads).map(&mut number).collect();
    let mut dy = draw.values(num_heads * positions);
    let mut case = KerpleCase { kernel, r1, r2, positions };
    match among {
        Among::Nothing | Among::Low => {}
        Among::Zeros => {
            case.r1[num_heads - 1] = 0.0;
            dy[0] = 0.0;
        }
        Among::Nan => {
            // A gradient is asked of numbers that are some: what 0 times NaN is worth says nothing of it.
            dy[num_heads * positions - 1] = f32::NAN;
        }
    }
    Asked { manner, case, dy }
}

fn kerple(run: Run, graded: &mut Vec<GradedCase<Biases>>) {
    const PLAIN: (Among, Manner, Option<usize>) = (Among::Nothing, Manner::Plain, None);
    let typical = move || kerple_asked(Kernel::Logarithmic, 4, 8, PLAIN, &run);
    graded.push(GradedCase::typical("kerple", move |biases| matches_kerple(biases, &typical())));
    graded
        .push(GradedCase::typical("kerple_backward", move |biases| matches_dr(biases, &typical())));
    let mut add =
        |category: Category, kernel, num_heads, positions, how: (Among, Manner, Option<usize>)| {
            let asked = move || kerple_asked(kernel, num_heads, positions, how, &run);
            if !matches!(how.1, Manner::UsedTwice | Manner::Continued) && how.0 != Among::Nan {
                graded.push(GradedCase::new("kerple", category, move |biases| {
                    matches_kerple(biases, &asked())
                }));
            }
            if how.1 != Manner::Traced {
                // How a slope grows with the distance is its own formula.
                let category = match category {
                    Category::Statistics => Category::Gradient,
                    other => other,
                };
                graded.push(GradedCase::new("kerple_backward", category, move |biases| {
                    matches_dr(biases, &asked())
                }));
            }
        };
    for kernel in [Kernel::Logarithmic, Kernel::Power] {
        add(Category::Statistics, kernel, 1, 2, PLAIN);
        add(Category::Statistics, kernel, 1, 5, PLAIN);
        add(Category::Order, kernel, 3, 5, PLAIN);
        add(Category::Range, kernel, 4, 5, (Among::Nothing, Manner::Plain, Some(0)));
        for among in [Among::Zeros, Among::Nan] {
            add(Category::Special, kernel, 4, 5, (among, Manner::Plain, None));
            add(Category::Special, kernel, 5, 9, (among, Manner::Plain, Some(0)));
        }
        for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
            add(Category::Gradient, kernel, 4, 6, (Among::Nothing, manner, None));
            add(Category::Gradient, kernel, 4, 6, (Among::Nothing, manner, Some(0)));
        }
        for n in sizes(&run) {
            add(Category::Extent, kernel, 4, n, (Among::Nothing, Manner::Plain, Some(0)));
            add(Category::Extent, kernel, n, 4, (Among::Nothing, Manner::Plain, Some(0)));
        }
        // Each head is beyond each bound.
        for (n, first) in edges(&run).into_iter().flat_map(|n| (1..4).map(move |first| (n, first)))
        {
            add(Category::Extent, kernel, n, 4, (Among::Nothing, Manner::Plain, Some(first)));
        }
        add(Category::Extent, kernel, 1, 4, (Among::Nothing, Manner::Plain, Some(0)));
        for positions in [300, 1000].into_iter().filter(|_| run.every_size) {
            add(Category::Precision, kernel, 2, positions, PLAIN);
        }
        for combination in combinations(&run).into_iter().step_by(4) {
            let [heads, positions] = combination.tokens;
            let manner =
                combination.pick(0, &[Manner::Plain, Manner::UsedTwice, Manner::Continued]);
            let among = combination.pick(1, &[Among::Nothing, Among::Zeros, Among::Nan]);
            add(
                Category::Extent,
                kernel,
                heads,
                positions,
                (among, manner, combination.pick(2, &[Some(0), None])),
            );
        }
    }
}

fn transformer_xl(run: Run, graded: &mut Vec<GradedCase<Biases>>) {
    let typical = move || xl_text([2, 4, 2, 4], 8, 8, &run);
    graded.push(GradedCase::typical("transformer_xl", move |biases| {
        matches_xl(biases, &Asked { manner: Manner::Plain, case: typical(), dy: Vec::new() })
    }));
    // Right without a past, and wrong with one.
    graded.push(GradedCase::elsewhere("transformer_xl", move |biases| {
        let judge =
            |case| matches_xl(biases, &Asked { manner: Manner::Plain, case, dy: Vec::new() });
        judge(xl_text([2, 5, 2, 4], 5, 8, &run))?;
        holds("transformer_xl", judge(typical()).is_err(), || "a past is right as well".to_string())
    }));
    let mut add =
        |category, shape, keys, hidden_size, (among, manner): (Among, Manner), base: f64| {
            graded.push(GradedCase::new("transformer_xl", category, move |biases| {
                let mut case = xl_text(shape, keys, hidden_size, &run);
                case.base = base;
                put(among, shape[2] * shape[3], &mut case.q, &mut case.k);
                if among == Among::Zeros {
                    case.weight[0] = 0.0;
                }
                matches_xl(biases, &Asked { manner, case, dy: Vec::new() })
            }));
        };
    const BASE: f64 = 10_000.0;
    let plain = (Among::Nothing, Manner::Plain);
    add(Category::Wiring, [1, 1, 1, 1], 2, 2, plain, BASE);
    add(Category::Wiring, [1, 1, 1, 4], 4, 2, plain, BASE);
    add(Category::Frequencies, [1, 1, 1, 4], 5, 8, plain, BASE);
    add(Category::Frequencies, [1, 2, 1, 2], 5, 6, plain, 100.0);
    add(Category::Order, [1, 1, 3, 2], 5, 4, plain, BASE);
    add(Category::Mask, [1, 4, 2, 2], 4, 4, plain, BASE);
    add(Category::Mask, [1, 4, 2, 2], 4, 4, (Among::Low, Manner::Plain), BASE);
    add(Category::Offset, [1, 3, 2, 2], 7, 4, plain, BASE);
    add(Category::Extent, [2, 3, 2, 2], 7, 4, plain, BASE);
    add(Category::Special, [2, 3, 2, 2], 6, 4, (Among::Zeros, Manner::Plain), BASE);
    for manner in [Manner::Traced, Manner::Permuted] {
        let category =
            if manner == Manner::Permuted { Category::Order } else { Category::Gradient };
        add(category, [2, 3, 2, 4], 5, 4, (Among::Nothing, manner), BASE);
    }
    for n in sizes(&run) {
        add(Category::Extent, [1, n, 1, 1], n + 2, 2, plain, BASE);
        add(Category::Extent, [1, 2, n, 2], 4, 4, plain, BASE);
        add(Category::Extent, [1, 2, 2, 2], n + 2, 4, plain, BASE);
        add(Category::Extent, [n, 2, 1, 1], 4, 4, plain, BASE);
    }
    // Of two heads of two elements, so that all of the formula shows.
    for n in edges(&run) {
        add(Category::Extent, [1, 2, 2, n], 4, 4, plain, BASE);
        add(Category::Extent, [1, 2, 2, 2], 4, 2 * n, plain, BASE);
        add(Category::Extent, [1, n, 2, 2], n + 2, 4, plain, BASE);
        add(Category::Extent, [n, 2, 2, 2], 4, 4, plain, BASE);
    }
    for [s, t] in short_texts(&run) {
        add(Category::Extent, [1, s, 2, 2], t, 4, plain, BASE);
    }
    for combination in combinations(&run).into_iter().step_by(4) {
        let [b, s] = combination.tokens;
        let (keys, nh) = (s + combination.pick(0, &[0, 1, 4]), combination.pick(1, &[1, 2, 3]));
        let (hd, h) = (combination.pick(2, &[1, 2, 4]), combination.pick(3, &[2, 4, 6]));
        let manner = combination.pick(4, &[Manner::Plain, Manner::Permuted, Manner::Traced]);
        let among = combination.pick(5, &[Among::Nothing, Among::Zeros]);
        add(
            Category::Extent,
            [b, s, nh, hd],
            keys,
            h,
            (among, manner),
            combination.pick(6, &[BASE, 50.0]),
        );
    }
}
