//! The fifth step: the whole text, which is longer than the training length. NTK takes over.

use super::heads::QueriesKeys;
use super::rope::{BASE, Rope, TURN_BOUND, module, planes, training_length};
use super::*;
use crate::finding::Claim;
use quadrivium::functional::Layout;
use quadrivium::rope::{RotaryTables, ratio_for_length, rotary_frequencies};
use std::f64::consts::{PI, TAU};

/// What the long call gives, and what there is to say about it.
#[derive(Debug, Clone)]
pub struct LongCall {
    /// Turned queries and keys of the whole text.
    pub turned: QueriesKeys,
    /// `ms`.
    pub training_length: usize,
    /// `k'`, the ratio that the call chose.
    pub ratio: usize,
    /// `(k, cached length)` of the module with `dynamic = false`, before and after.
    pub fixed: [(usize, usize); 2],
    /// `(k, cached length)` of the module with `dynamic = true`, before and after.
    pub dynamic: [(usize, usize); 2],
    /// Positions for one full turn of the slowest plane, before and after.
    pub slowest_wavelength: [f64; 2],
    /// The ratio that a call would choose which ends just past the cache.
    pub ratio_just_past: usize,
}

const RATIO: Claim = Claim {
    component: "rope",
    invariant: "long-call-ratio",
    words: "The call takes the smallest even k' that covers the text. Counting up in twos finds \
            the same.",
    formula: "k' = 2 ceil(s / (2 ms)); measured: |k' - counted|",
};
const SLOWEST: Claim = Claim {
    component: "rope",
    invariant: "slowest-plane-slowed",
    words: "The slowest plane turns k' times more slowly, at every token. The angles are read off \
            the turned queries.",
    formula: "angle of plane d/2 - 1 at position m is m theta / k', up to 3 sqrt(2) u",
};
const FASTEST: Claim = Claim {
    component: "rope",
    invariant: "fastest-plane-kept",
    words: "The fastest plane, which tells neighbours apart, turns as before.",
    formula: "angle of plane 0 at position m is m, modulo 2 pi, up to 3 sqrt(2) u",
};
const RELATIVE: Claim = Claim {
    component: "rope",
    invariant: "relative-position",
    words: "A query and a key that move together give the same product: it depends on how far \
            apart they are, not on where. The beginning of the text is moved to its end.",
    formula: "|<R_m q, R_n k> - <R_(m+c) q, R_(n+c) k>| <= 4 * 3 sqrt(2) u |q| |k|",
};
const SAME: Claim = Claim {
    component: "rope",
    invariant: "static-equals-dynamic",
    words: "The long call itself gives the same bits, whether the module keeps k' or not.",
    formula: "E(dynamic = false) = E(dynamic = true), bit for bit",
};
const STATIC: Claim = Claim {
    component: "rope",
    invariant: "static-keeps-cache",
    words: "With dynamic = false the call leaves nothing behind: k and every number of the cache \
            are as before.",
    formula: "k and cos, sin [ms, hd] unchanged, bit for bit",
};
const DYNAMIC: Claim = Claim {
    component: "rope",
    invariant: "dynamic-replaces-cache",
    words: "With dynamic = true k becomes k' for good, and the cache is the one that a new module \
            with k' would have.",
    formula: "k = k', cos, sin [ms k', hd] rebuilt, bit for bit",
};

/// Turns the whole text, once with a module that may change and once with one that may not.
///
/// # Errors
/// What a component or the device reports.
pub fn run(dev: &Cpu, heads: &QueriesKeys) -> Result<Step<LongCall>> {
    let (mut forward, mut checks) = (Duration::ZERO, Duration::ZERO);
    let tokens = heads.q.shape().1;
    let training_length = training_length(tokens);
    let mut fixed = module(dev, training_length, false)?;
    let mut dynamic = module(dev, training_length, true)?;
    let (fixed_before, dynamic_before) = (state(&fixed), state(&dynamic));
    let cache_before = tables(dev, &fixed)?;

    let turned = timed(&mut forward, || -> Result<_> {
        let q = fixed.try_forward_mut(heads.q.clone())?;
        let k = fixed.try_forward_mut(heads.k.clone())?;
        Ok(QueriesKeys { q, k })
    })?;

    let (findings, slowest_wavelength) = timed(&mut checks, || -> Result<_> {
        let same = dynamic.try_forward_mut(heads.q.clone())?;
        // What the module must find is counted here, and all else is compared with the count.
        let k = (1..).map(|i| 2 * i).find(|k| k * training_length >= tokens).unwrap_or(0);
        let (angles, slowest) = angle_findings(heads, &turned, k)?;
        let cache_changes = usize::from(state(&fixed) != fixed_before)
            + different_bits(&tables(dev, &fixed)?, &cache_before);
        let expected = fresh_tables(dev, k, training_length)?;
        let cache_errors = usize::from(state(&dynamic) != (k, k * training_length))
            + different_bits(&tables(dev, &dynamic)?, &expected);
        let (same, first) = (same.as_vec(), turned.q.as_vec());
        let [slow, fast] = angles;
        let findings = vec![
            RATIO.measured(dynamic.ratio().abs_diff(k) as f64, 0.0, "difference"),
            slow,
            fast,
            relative_position(dev, &dynamic, heads)?,
            SAME.exceptions(different_bits(&same, &first), first.len(), "values"),
            STATIC.exceptions(cache_changes, cache_before.len() + 1, "values"),
            DYNAMIC.exceptions(cache_errors, expected.len() + 1, "values"),
        ];
        Ok((findings, slowest))
    })?;

    let output = LongCall {
        turned,
        training_length,
        ratio: dynamic.ratio(),
        fixed: [fixed_before, state(&fixed)],
        dynamic: [dynamic_before, state(&dynamic)],
        slowest_wavelength,
        ratio_just_past: ratio_for_length(training_length + 1, training_length)?,
    };
    Ok(Step { output, findings, forward, checks })
}

/// `(k, cached length)`.
fn state(rope: &Rope) -> (usize, usize) {
    (rope.ratio(), rope.cached_len())
}

/// The cache as plain numbers, cosines first.
fn tables(dev: &Cpu, rope: &Rope) -> Result<Vec<f32>> {
    let tables = rope.tables(dev)?;
    Ok([tables.cos.as_vec(), tables.sin.as_vec()].concat())
}

/// The cache of a module that starts with `ratio`, built without a module.
fn fresh_tables(dev: &Cpu, ratio: usize, training_length: usize) -> Result<Vec<f32>> {
    let frequencies = rotary_frequencies(HEAD_DIM, BASE, ratio as f64)?;
    let positions = 0..ratio * training_length;
    let head_dim = Const::<HEAD_DIM>;
    let tables = RotaryTables::new(dev, head_dim, &frequencies, positions, Layout::HalfSplit)?;
    Ok([tables.cos.as_vec(), tables.sin.as_vec()].concat())
}

/// Reads the angles of the slowest and the fastest plane off the output.
fn angle_findings(
    x: &QueriesKeys,
    y: &QueriesKeys,
    ratio: usize,
) -> Result<([Finding; 2], [f64; 2])> {
    let last = PLANES - 1;
    let slowest = BASE.powf(-2.0 * last as f64 / HEAD_DIM as f64); // theta of the last plane
    let (x, y) = (x.q.as_vec(), y.q.as_vec());
    let error_of = |index: usize, theta: f64| {
        worst(planes(&x).zip(planes(&y)).filter(|(x, _)| x.index == index).map(|(x, y)| {
            let off = x.angle_to(y) - x.position as f64 * theta;
            ((off + PI).rem_euclid(TAU) - PI).abs()
        }))
    };
    let slow = SLOWEST.measured(error_of(last, slowest / ratio as f64), TURN_BOUND, "radians");
    let fast = FASTEST.measured(error_of(0, 1.0), TURN_BOUND, "radians");
    Ok(([slow, fast], [TAU / slowest, TAU / slowest * ratio as f64]))
}

/// Products of the first queries and keys, at the beginning and at the end of the text.
fn relative_position(dev: &Cpu, rope: &Rope, heads: &QueriesKeys) -> Result<Finding> {
    let tokens = heads.q.shape().1;
    let rows = (tokens / 2).clamp(1, 128); // all pairs: more would only take longer
    let moved_by = tokens - rows;
    let (q, k) = (heads.q.as_vec(), heads.k.as_vec());
    let (q, k) = (&q[..rows * HIDDEN], &k[..rows * HIDDEN]);
    let turned = |x: &[f32], offset: usize| -> Result<Vec<f32>> {
        Ok(rope.try_forward((heads_tensor(dev, x.to_vec())?, offset))?.as_vec())
    };
    let (q0, k0) = (turned(q, 0)?, turned(k, 0)?);
    let (q1, k1) = (turned(q, moved_by)?, turned(k, moved_by)?);
    let mut error = 0.0;
    for head in 0..HEADS {
        let at = |row: usize| (row * HEADS + head) * HEAD_DIM..(row * HEADS + head + 1) * HEAD_DIM;
        for m in 0..rows {
            for n in 0..rows {
                let (m, n) = (at(m), at(n));
                let here = dot(&q0[m.clone()], &k0[n.clone()]);
                let there = dot(&q1[m.clone()], &k1[n.clone()]);
                let (q, k) = (&q[m], &k[n]);
                let scale = (dot(q, q) * dot(k, k)).sqrt();
                error = worst([error, (here - there).abs() / scale]);
            }
        }
    }
    // Each of the four turned vectors is off by TURN_BOUND times its length.
    Ok(RELATIVE.measured(error, 4.0 * TURN_BOUND, "relative"))
}
