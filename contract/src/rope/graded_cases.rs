//! The graded cases of NTK-aware RoPE: what is asked, call by call, from the plainest question on.

use crate::category::Category;
use crate::graded_cases::{
    Draw, EDGES, GradedCase, combinations, edges, is_short, many, sizes, stands_still,
};
use crate::laws::widen;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::laws::frequencies::{
    exact_far_out, matches_frequencies, matches_tables, no_frequencies,
};
use crate::rope::laws::module::{Calls, matches_calls, matches_ratio, no_ratio, settings};
use crate::rope::laws::rotation::{
    Turned, Values, matches_back, matches_dx, matches_interleaved, matches_y,
};
use crate::rope::menu::{HEAD_DIM, LARGE};
use crate::rope::oracle::RopeLoops;
use crate::run::Run;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Rope = dyn NtkAwareRope;

/// The base of most questions.
const BASE: f64 = 10_000.0;

/// All graded cases, call by call.
pub fn graded_cases(run: &Run) -> Vec<GradedCase<Rope>> {
    let mut graded = Vec::new();
    frequencies(&mut graded, run);
    tables(&mut graded, run);
    rotations(&mut graded, run);
    layouts(&mut graded, run);
    ratios(&mut graded, run);
    modules(&mut graded, run);
    graded
}

fn frequencies(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    graded.push(GradedCase::typical("frequencies", |rope| {
        matches_frequencies(rope, 64, 500_000.0, 2.0)
    }));
    let mut add = |category, d, base, ratio| {
        graded.push(GradedCase::new("frequencies", category, move |rope| {
            matches_frequencies(rope, d, base, ratio)
        }));
    };
    for ratio in [1.0, 2.0, 4.0, 1.5, 16.0] {
        for d in [4, 6, 8, 16, 64, 128] {
            for base in [10_000.0, 100.0, 500_000.0, 1234.5] {
                add(Category::Frequencies, d, base, ratio);
            }
        }
    }
    for d in sizes(run) {
        add(Category::Extent, 2 * d, 10_000.0, 3.0);
    }
    add(Category::Extent, 1024, 1e6, 8.0);
    add(Category::Refusal, 8, 1.25, 1.0);
    for (d, base, ratio) in [
        (5, 10_000.0, 2.0),
        (2, 10_000.0, 2.0),
        (0, 10_000.0, 2.0),
        (8, 1.0, 2.0),
        (8, f64::NAN, 2.0),
        (8, f64::INFINITY, 2.0),
        (8, 10_000.0, 0.5),
        (8, 10_000.0, f64::NAN),
        (8, 10_000.0, f64::INFINITY),
    ] {
        graded.push(GradedCase::new("frequencies", Category::Refusal, move |rope| {
            no_frequencies(rope, d, base, ratio)
        }));
    }
}

fn tables(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    let mut add = |category, d, ratio, positions: std::ops::Range<usize>| {
        graded.push(GradedCase::new("tables", category, move |rope| {
            matches_tables(rope, d, BASE, ratio, positions.clone()).map_err(|mut violation| {
                let formula = [Category::Rotation, Category::Frequencies, Category::Offset];
                if has_stopped(rope, d, ratio, &positions) {
                    return violation.at(Category::Offset);
                }
                if formula.contains(&category) && !violation.is_rearranged() {
                    violation.category = of_tables(rope, d, ratio, &positions);
                }
                violation
            })
        }));
    };
    for d in HEAD_DIM {
        add(Category::Rotation, d, 1.0, 0..9);
        add(Category::Frequencies, d, 3.0, 0..9);
    }
    for start in [1, 5, 70] {
        add(Category::Offset, 6, 1.0, start..start + 3);
    }
    for n in sizes(run) {
        add(Category::Extent, 4, 2.0, n..2 * n);
    }
    for n in edges(run) {
        add(Category::Extent, 6, n as f64, 1000 * n..1000 * n + 3);
        add(Category::Extent, 2 * n + 2, 1.0, 1..3);
    }
    for start in [255, 4095, 20_010, 65_535, 1_000_003] {
        add(Category::Extent, 8, 1.0, start..start + 3);
    }
    add(Category::Precision, 4, 1.0, 0..4100); // where errors add up from row to row
    graded.push(GradedCase::new("tables", Category::Precision, exact_far_out)); // where f32 skips whole numbers
    // Far positions with other heads, ratios and bases.
    let far = [4_095, 20_010, 65_535, 1_000_003, 1 << 20].into_iter();
    for start in far.filter(|_| run.every_size) {
        for (d, base, ratio) in
            [(LARGE, BASE, 2.0), (16, BASE, 3.0), (LARGE, BASE, 5.0), (6, BASE, 5.0), (8, 5e5, 2.0)]
        {
            graded.push(GradedCase::new("tables", Category::Extent, move |rope| {
                matches_tables(rope, d, base, ratio, start..start + 3)
            }));
        }
    }
}

/// Whether the tables go on with the row of some position before.
fn has_stopped(rope: &Rope, d: usize, ratio: f64, positions: &Range<usize>) -> bool {
    let tables = |positions| rope.tables(d, BASE, ratio, positions);
    let got = catch_unwind(AssertUnwindSafe(|| tables(positions.clone())));
    let Ok(Ok(got)) = got else { return false };
    let row = |m: usize| widen(&Oracle.tables(d, BASE, ratio, m..m + 1).cos);
    positions.start < 1 << 21 && stands_still(&widen(&got.cos), d, positions.start, row)
}

/// What wrong tables are about, if their values show it.
fn of_tables(rope: &Rope, d: usize, ratio: f64, positions: &Range<usize>) -> Option<Category> {
    let got = catch_unwind(AssertUnwindSafe(|| rope.tables(d, BASE, ratio, positions.clone())));
    let got = got.ok()?.ok()?;
    let of = |positions: Range<usize>| Oracle.tables(d, BASE, ratio, positions);
    let close = |got: &[f32], expected: &[f32], size: fn(f32) -> f32| {
        let mut pairs = got.iter().zip(expected);
        got.len() == expected.len() && pairs.all(|(&g, &e)| (size(g) - size(e)).abs() < 1e-3)
    };
    let Range { start, end } = *positions;
    let others = [Some(start + 1), start.checked_sub(1), Some(0)];
    if others.into_iter().flatten().filter(|other| *other != start).any(|other| {
        let rows = of(other..other + (end - start));
        close(&got.cos, &rows.cos, |x| x) && close(&got.sin, &rows.sin, |x| x)
    }) {
        return Some(Category::Offset);
    }
    // One back of position 0 is a position that no table has. The next rows decide.
    let (after, before) = (d.min(got.cos.len()), of(start..end.saturating_sub(1).max(start)));
    if end > start + 1
        && close(&got.cos[after..], &before.cos, |x| x)
        && close(&got.sin[after.min(got.sin.len())..], &before.sin, |x| x)
    {
        return Some(Category::Offset);
    }
    let expected = of(positions.clone());
    if close(&got.cos, &expected.cos, |x| x) && close(&got.sin, &expected.sin, |x| x) {
        return None; // some digits
    }
    let sizes =
        |cos: &[f32], sin: &[f32]| close(&got.cos, cos, f32::abs) && close(&got.sin, sin, f32::abs);
    if sizes(&expected.cos, &expected.sin) || sizes(&expected.sin, &expected.cos) {
        return Some(Category::Rotation); // a sign, or the sine for the cosine
    }
    // Cosine and sine of some other angle.
    let mut squares = got.cos.iter().zip(&got.sin).map(|(cos, sin)| cos * cos + sin * sin);
    squares.all(|square| (square - 1.0).abs() < 1e-3).then_some(Category::Frequencies)
}

/// Rotations: one row of one head first.
fn rotations(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    let plain = Turned {
        shape: [1, 1, 1, 4],
        layout: Layout::HalfSplit,
        manner: Manner::Plain,
        values: Values::Drawn,
    };
    let full = Turned { shape: [2, 3, 5, 6], ..plain };
    let mut plans = Vec::new();
    let mut add = |category, plan| plans.push((category, plan));
    add(Category::Rotation, Turned { values: Values::Unit, ..plain });
    for d in HEAD_DIM {
        add(Category::Rotation, Turned { shape: [1, 1, 1, d], ..plain });
    }
    // Heads and batch rows first: they have no positions.
    for shape in [[1, 1, 3, 6], [3, 1, 1, 6]] {
        add(Category::Order, Turned { shape, ..plain });
    }
    add(Category::Offset, Turned { shape: [1, 3, 1, 6], ..plain });
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        add(Category::Order, Turned { layout, ..full });
    }
    add(Category::Special, Turned { values: Values::WithNan, ..full });
    for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
        add(Category::Gradient, Turned { manner, ..full });
    }
    for manner in [Manner::Permuted, Manner::Broadcast] {
        add(Category::Order, Turned { manner, ..full });
    }
    add(Category::State, Turned { manner: Manner::Again, ..full });
    add(Category::Extent, Turned { shape: [2, 3, 5, LARGE], ..plain });
    for n in sizes(run) {
        for shape in [[n, 1, 1, 4], [1, n, 1, 4], [1, 1, n, 4]] {
            add(Category::Extent, Turned { shape, ..plain });
        }
    }
    for n in edges(run) {
        for shape in [[n, 2, 3, 6], [2, n, 3, 6], [2, 3, n, 6]] {
            let layout = Layout::Interleaved;
            add(Category::Extent, Turned { shape, layout, values: Values::WithNan, ..plain });
        }
    }
    for [b, s] in many(run) {
        for layout in [Layout::HalfSplit, Layout::Interleaved] {
            add(Category::Extent, Turned { shape: [b, s, 3, 6], layout, ..plain });
        }
    }
    for combination in combinations(run) {
        let [b, s] = combination.tokens;
        let heads = [4, 6, 8, 16, LARGE];
        let d = combination.pick(1, &heads[..if is_short(combination.tokens) { 5 } else { 3 }]);
        let layout = combination.pick(2, &[Layout::HalfSplit, Layout::Interleaved]);
        // A function has no clone.
        let manner = match combination.pick(0, &Manner::ALL) {
            Manner::Cloned => Manner::Plain,
            manner => manner,
        };
        let values = match combination.pick(3, &[Values::Drawn, Values::WithNan]) {
            Values::WithNan if manner != Manner::Broadcast => Values::WithNan,
            _ => Values::Drawn,
        };
        let nh =
            combination.pick(4, &[2, 3, 1, 5][..if is_short(combination.tokens) { 4 } else { 3 }]);
        let shape = [b, s, nh, d];
        add(Category::Extent, Turned { shape, layout, manner, values });
    }
    let run = *run;
    let typical = [Layout::HalfSplit, Layout::Interleaved].map(|layout| Turned {
        shape: [2, 8, 4, 8],
        layout,
        ..plain
    });
    graded.push(GradedCase::typical("rotate", move |rope| {
        typical.iter().try_for_each(|plan| matches_y(rope, plan, &mut Draw::new(&run, 3)))
    }));
    graded.push(GradedCase::typical("rotate_backward", move |rope| {
        typical.iter().try_for_each(|plan| matches_dx(rope, plan, &mut Draw::new(&run, 4)))
    }));
    for (category, plan) in plans {
        if !matches!(plan.manner, Manner::UsedTwice | Manner::Continued) {
            graded.push(GradedCase::new("rotate", category, move |rope| {
                matches_y(rope, &plan, &mut Draw::new(&run, 1))
            }));
        }
        // The way back has the same loops: it is asked at the edges.
        let [b, s, nh, _] = plan.shape;
        if plan.manner != Manner::Traced && EDGES.contains(&b.max(s).max(nh)) {
            graded.push(GradedCase::new("rotate_backward", category.of_gradient(), move |rope| {
                matches_dx(rope, &plan, &mut Draw::new(&run, 2))
            }));
        }
    }
}

fn layouts(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    let typical = [4, 16];
    graded.push(GradedCase::typical("to_interleaved", move |rope| {
        matches_interleaved(rope, typical)
    }));
    graded.push(GradedCase::typical("to_half_split", move |rope| matches_back(rope, typical)));
    let mut shapes =
        vec![(Category::Order, [1, 4]), (Category::Order, [1, 8]), (Category::Order, [3, 8])];
    shapes.push((Category::Extent, [1, 6]));
    for n in sizes(run) {
        shapes.extend([(Category::Extent, [2, 2 * n]), (Category::Extent, [n, 6])]);
    }
    shapes.push((Category::Extent, [1, 1024]));
    for (category, shape) in shapes {
        graded.push(GradedCase::new("to_interleaved", category, move |rope| {
            matches_interleaved(rope, shape)
        }));
        graded.push(GradedCase::new("to_half_split", category, move |rope| {
            matches_back(rope, shape)
        }));
    }
}

fn ratios(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    graded.push(GradedCase::typical("ratio_for_length", |rope| {
        [3000, 5000, 9000].iter().try_for_each(|length| matches_ratio(rope, *length, 2048))
    }));
    let mut add = |category, length, max_seq_len| {
        graded.push(GradedCase::new("ratio_for_length", category, move |rope| {
            matches_ratio(rope, length, max_seq_len)
        }));
    };
    for length in 1..40 {
        add(Category::Frequencies, length, 3);
    }
    for n in sizes(run) {
        add(Category::Extent, 1000, n);
        add(Category::Extent, n, 1);
    }
    for bits in [16, 24, 32, 40, 53, 62] {
        // Floats skip whole numbers there.
        let category = if bits < 24 { Category::Extent } else { Category::Precision };
        for more in [0, 1, 2] {
            add(category, (1 << bits) + more, 2048);
            add(category, (1 << bits) + more, 1);
        }
    }
    for bits in [40, 53, 62].into_iter().filter(|_| run.every_size) {
        add(Category::Extent, 1 << bits, 5000);
    }
    // Nothing may be added to such a length.
    for max_seq_len in [2, 3, 2048, 1 << 40] {
        add(Category::Precision, usize::MAX, max_seq_len);
    }
    graded.push(GradedCase::new("ratio_for_length", Category::Refusal, no_ratio));
}

fn modules(graded: &mut Vec<GradedCase<Rope>>, run: &Run) {
    graded.push(GradedCase::typical("build", |rope| {
        [false, true].iter().try_for_each(|&dynamic| {
            let settings = settings(8, 4, 2, dynamic);
            let calls = vec![(0, 4), (2, 5), (0, 17), (3, 4), (12, 2)];
            let manner = Manner::Plain;
            matches_calls(rope, &Calls { settings, manner, rows: [2, 4], scale: 1.0, calls })
        })
    }));
    let mut plans: Vec<(Category, Calls)> = Vec::new();
    let mut add = |category, settings: RopeSettings, manner, calls: &[(usize, usize)]| {
        let calls = calls.to_vec();
        plans.push((category, Calls { settings, manner, rows: [2, 2], scale: 1.0, calls }));
    };
    let plain = Manner::Plain;
    for d in HEAD_DIM {
        add(Category::Rotation, settings(d, 6, 1, false), plain, &[(0, 3)]);
    }
    for (offset, s) in [(1, 3), (3, 1), (2, 3)] {
        add(Category::Offset, settings(6, 6, 1, false), plain, &[(offset, s)]);
    }
    for ratio in [2, 3, 4] {
        // Up to the training length, and from there to the end of the cache.
        for s in [3, 3 * ratio - 1] {
            add(Category::Frequencies, settings(6, 3, ratio, false), plain, &[(0, s)]);
        }
    }
    // Long calls, of a static module: from position 0, and from others.
    for s in [4, 6, 7, 13] {
        add(Category::Frequencies, settings(6, 3, 1, false), plain, &[(0, s)]);
        add(Category::Frequencies, settings(6, 3, 3, false), plain, &[(0, s + 6)]);
    }
    for (offset, s) in [(3, 2), (5, 1), (20, 1), (7, 7), (1000, 2)] {
        add(Category::Offset, settings(4, 3, 1, false), plain, &[(offset, s)]);
        add(Category::Offset, settings(4, 3, 3, false), plain, &[(offset + 6, s)]);
    }
    for dynamic in [false, true] {
        for ratio in [1, 2, 3] {
            let settings = settings(4, 3, ratio, dynamic);
            let es = 3 * ratio;
            for calls in [
                vec![(0, es)],
                vec![(0, es + 1), (0, 2)],
                vec![(es, 1), (1, 2), (0, es + 7), (2, 1)],
                vec![(0, es + 7), (0, es + 1), (es, 1), (0, 1)],
                vec![(es + 4, 1), (es + 4, 1), (es + 5, 1)],
            ] {
                add(Category::State, settings, plain, &calls);
            }
        }
        for manner in [Manner::Cloned, Manner::Again] {
            add(Category::State, settings(6, 3, 1, dynamic), manner, &[(0, 3), (0, 7), (1, 2)]);
        }
        for manner in [Manner::Traced, Manner::UsedTwice, Manner::Continued] {
            add(Category::Gradient, settings(6, 3, 1, dynamic), manner, &[(1, 2), (2, 5)]);
        }
        for manner in [Manner::Permuted, Manner::Broadcast] {
            add(Category::Order, settings(6, 3, 1, dynamic), manner, &[(1, 2), (2, 5)]);
        }
    }
    for n in sizes(run) {
        add(Category::Extent, settings(4, 3, 1, false), plain, &[(0, n)]);
    }
    for offset in [16_397, 65_537, 1_000_003] {
        add(Category::Extent, settings(4, 2053, 1, false), plain, &[(offset, 3)]);
    }
    // Around the end of the cache and past it, for each size: batch rows, heads, training length, ratio.
    for (nth, n) in edges(run).into_iter().enumerate() {
        for dynamic in [false, true] {
            let small = 1 + n % 3;
            // What is many is asked for one at a time, and of every other kind of module.
            let few = |rows| if n > 3 { [1, 2] } else { rows };
            let d = if n > 3 { 4 } else { 6 };
            for (place, (rows, max_seq_len, ratio)) in
                [([n, 2], 3, 2), ([2, n], 2, 3), (few([2, 3]), n, small), (few([3, 2]), small, n)]
                    .into_iter()
                    .enumerate()
            {
                if n > 9 && dynamic != (nth + place).is_multiple_of(2) {
                    continue;
                }
                let settings =
                    RopeSettings { base: 1234.5, ..settings(d, max_seq_len, ratio, dynamic) };
                let es = max_seq_len * ratio;
                let calls = match n {
                    4.. if n == rows[0] || n == rows[1] => {
                        vec![(0, 2), (es - 1, 2), (es + 2, 3), (es, 1)]
                    }
                    10.. => vec![(0, 2), (es - 1, 2), (es + 2, 6), (es, 1), (0, es)],
                    _ => vec![(0, 2), (es - 1, 2), (es + 2, 6), (0, es), (0, es + 7), (es, 1)],
                };
                let calls = Calls { settings, manner: plain, rows, scale: 1.0, calls };
                plans.push((Category::Extent, calls));
            }
        }
    }
    for combination in combinations(run).into_iter().step_by(3) {
        let [b, s] = combination.tokens;
        let d = combination
            .pick(1, if is_short(combination.tokens) { &[8, LARGE, 16, 6] } else { &[8, 6] });
        let (max_seq_len, ratio) =
            (combination.pick(2, &[5, 9, 1, 3, 2]), combination.pick(3, &[5, 1, 2, 3]));
        let settings = settings(d, max_seq_len, ratio, combination.pick(4, &[false, true]));
        let settings = RopeSettings { base: combination.pick(5, &[1234.5, 500_000.0]), ..settings };
        let manner = combination.pick(6, &[plain, Manner::Again, Manner::Cloned]);
        let es = max_seq_len * ratio;
        let calls = vec![(0, s), (es, s), (es + 11, 1), (1, s), (es, s)];
        let nh =
            combination.pick(7, &[2, 5, 1, 3][..if is_short(combination.tokens) { 4 } else { 3 }]);
        let rows = [b, nh];
        plans.push((Category::Extent, Calls { settings, manner, rows, scale: 4.0, calls }));
    }
    let short = [(false, 1), (true, 2)].into_iter().filter(|_| run.every_size);
    for (dynamic, max_seq_len) in [(false, 3), (true, 3)].into_iter().chain(short) {
        // To the end, across it, past it, further past it, before it.
        let (settings, es) = (settings(LARGE, max_seq_len, 3, dynamic), 3 * max_seq_len);
        let calls = vec![(0, es), (es - 2, 5), (es + 4, 2), (es + 11, 2), (es / 3, 2)];
        let calls = Calls { settings, manner: plain, rows: [1, 5], scale: 1.0, calls };
        plans.push((Category::Extent, calls));
    }
    for (category, plan) in plans {
        graded.push(GradedCase::new("build", category, move |rope| matches_calls(rope, &plan)));
    }
}
