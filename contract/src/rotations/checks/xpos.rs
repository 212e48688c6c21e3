//! Checks of xPos.

use super::{lengths, lengths_off, off, one, score};
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::values;
use crate::oracle::Oracle;
use crate::rotations::interface::*;
use crate::rotations::oracle::RotationsLoops;
use crate::rotations::tolerance::{self, Near, TURNED_WHY};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;

type Any = dyn Rotations;

/// One graded case.
pub(in crate::rotations) type XPosAsked = crate::graded_cases::Asked<XPosCase>;

fn asked(rotations: &Any, case: &XPosCase) -> Step<TurnedPair> {
    let TurnedPair { q, k } =
        answer("xpos", || rotations.xpos(case)).map_err(|violation| violation.on(case))?;
    for values in [&q, &k] {
        holds("xpos", values.len() == case.q.len(), || {
            format!("{} values came back for {}", values.len(), case.q.len())
        })
        .map_err(|violation| violation.on(case))?;
    }
    Ok(TurnedPair { q, k })
}

/// Queries and keys must be what the loops give.
pub(in crate::rotations) fn matches_xpos(rotations: &Any, asked: &XPosAsked) -> Step {
    answers_xpos(rotations, asked, &asked.case)
}

/// What is asked must be answered as `other` should be.
pub(in crate::rotations) fn answers_xpos(
    rotations: &Any,
    asked: &XPosAsked,
    other: &XPosCase,
) -> Step {
    let XPosAsked { manner, case, .. } = asked;
    let [q, k] = Oracle.xpos(other);
    let [q_near, k_near] = tolerance::xpos(other);
    answer("xpos", || rotations.xpos_in(*manner, case))
        .and_then(|got| {
            within("xpos", &case.shape, &got.q, &q, off(&q_near), TURNED_WHY)?;
            within("xpos", &case.shape, &got.k, &k, off(&k_near), TURNED_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// A head of 4 with ones in one plane, alone, for queries and keys.
fn unit(plane: usize, offset: usize) -> XPosCase {
    let mut x = vec![0.0; 4];
    (x[plane], x[plane + 2]) = (3.0, 4.0);
    XPosCase {
        shape: [1, 1, 1, 4],
        base: 100.0,
        scale_base: 512.0,
        center: 0,
        offset,
        q: x.clone(),
        k: x,
    }
}

/// In a head of 4, at position 512, queries of the two planes are 2/7 and 9/14 as long, and keys are longer by the
/// same factors.
#[law("rotations/xpos-by-numbers", see = "rotations#xpos", about = Frequencies, points = 2,
    formula = "ζ₀ = 0.4/1.4,  ζ₁ = 0.9/1.4;  |q′| = ζ·|q|,  |k′| = |k|/ζ",
    stays = "Numbers that can be computed by hand, and the point at which the constants of the paper are seen.")]
pub(in crate::rotations) fn xpos_by_numbers(rotations: &Any, _: &Run) -> Verdict {
    for (plane, zeta) in [(0, 2.0 / 7.0), (1, 9.0 / 14.0)] {
        for offset in [512, 1024] {
            let (case, zeta) = (unit(plane, offset), f64::powf(zeta, offset as f64 / 512.0));
            let got = asked(rotations, &case)?;
            let near = tolerance::xpos(&case).map(|near| lengths_off(&near)[plane]);
            let (q, k) = (lengths(&got.q)[plane], lengths(&got.k)[plane]);
            let on = |violation: Box<Violation>| violation.on(&case);
            one("xpos", q, 5.0 * zeta, near[0], TURNED_WHY).map_err(on)?;
            one("xpos", k, 5.0 / zeta, near[1], TURNED_WHY).map_err(on)?;
        }
    }
    Ok(None)
}

/// At the center, both scales are 1, wherever it is.
#[law("rotations/xpos-center", see = "rotations#xpos", about = Offset, points = 1,
    formula = "m = center  ⇒  |q′| = |q|,  |k′| = |k|")]
pub(in crate::rotations) fn xpos_center(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let case = XPosCase { shape: [1, 1, 1, 4], center: case.offset, ..first_head(case) };
        let got = asked(rotations, &case)?;
        let near = tolerance::xpos(&case);
        for ((got, plain), near) in [(&got.q, &case.q), (&got.k, &case.k)].into_iter().zip(&near) {
            let (expected, may) = (lengths(plain), lengths_off(near));
            within_f64("xpos", &[2], &lengths(got), &expected, |i| may[i], TURNED_WHY)
                .map_err(|violation| violation.on(&case))?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// Two rows of two heads, somewhere.
fn inputs() -> impl Strategy<Value = XPosCase> {
    let settings = (0usize..700, 0usize..700, prop_oneof![Just(512.0), Just(100.0)]);
    (settings, values(16), values(16)).prop_map(|((offset, center, scale_base), q, k)| XPosCase {
        shape: [1, 2, 2, 4],
        base: 100.0,
        scale_base,
        center,
        offset,
        q,
        k,
    })
}

fn first_head(case: &XPosCase) -> XPosCase {
    let (q, k) = (case.q[..4].to_vec(), case.k[..4].to_vec());
    XPosCase { shape: [1, 1, 1, 4], q, k, ..case.clone() }
}

/// At distance 0 the scales cancel: the score is that of the plain vectors.
#[law("rotations/xpos-scales-cancel", see = "rotations#xpos", about = Rotation, points = 2,
    formula = "q′ₘ · k′ₘ = q · k",
    stays = "A law without an oracle: what keeps a score of near tokens that of RoPE.")]
pub(in crate::rotations) fn xpos_scales_cancel(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let got = asked(rotations, case)?;
        let [q_near, k_near] = tolerance::xpos(case);
        for at in [0, 4, 8, 12] {
            let head = at..at + 4;
            let expected = score(&case.q[head.clone()], &case.k[head.clone()]);
            let may = Near::product_off(&q_near[head.clone()], &k_near[head.clone()]);
            let product = score(&got.q[head.clone()], &got.k[head]);
            one("xpos", product, expected, may, "what q and k may be off, times the other")?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// A score depends only on the distance, even for keys from another call.
#[law("rotations/xpos-relative", see = "rotations#xpos", about = Offset, points = 2,
    formula = "q′ₘ₊ₐ · k′ₙ₊ₐ = q′ₘ · k′ₙ")]
pub(in crate::rotations) fn xpos_relative(rotations: &Any, run: &Run) -> Verdict {
    run.forall((inputs(), 1usize..300).prop_map(|(case, a)| Moved { case, a }), |moved| {
        let Moved { case, a } = moved;
        // Queries of row 1 meet keys of row 0, and keys of another call.
        let later = XPosCase { offset: case.offset + a, ..case.clone() };
        let (here, there) = (asked(rotations, case)?, asked(rotations, &later)?);
        let [[q, k], [q_later, k_later]] = [case, &later].map(tolerance::xpos);
        let (row, before) = (8..12, 0..4);
        let got = score(&there.q[row.clone()], &there.k[before.clone()]);
        let expected = score(&here.q[row.clone()], &here.k[before.clone()]);
        let may = Near::product_off(&q[row.clone()], &k[before.clone()])
            + Near::product_off(&q_later[row.clone()], &k_later[before.clone()]);
        let why = "what q and k may be off, times the other, in both calls";
        one("xpos", got, expected, may, why)?;
        // Each row in a separate call: keys of a cache, and a new query.
        let [key, query] = [0, 1].map(|row| one_row(&later, row));
        let [old, new] = [asked(rotations, &key)?, asked(rotations, &query)?];
        let [of_key, of_query] = [&key, &query].map(tolerance::xpos);
        let got = score(&new.q[..4], &there.k[before.clone()]);
        let here = may + Near::product_off(&of_query[0][..4], &k_later[before]);
        one("xpos", got, expected, here, why)?;
        let got = score(&there.q[row.clone()], &old.k[..4]);
        let here = may + Near::product_off(&q_later[row], &of_key[1][..4]);
        one("xpos", got, expected, here, why)
    })?;
    Ok(None)
}

/// A call of one row of the two, at its position.
fn one_row(case: &XPosCase, row: usize) -> XPosCase {
    let of = |list: &[f32]| list[8 * row..][..8].to_vec();
    let (q, k, offset) = (of(&case.q), of(&case.k), case.offset + row);
    XPosCase { shape: [1, 1, 2, 4], offset, q, k, ..case.clone() }
}

#[derive(Debug)]
struct Moved {
    case: XPosCase,
    a: usize,
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\nmoved by {}", self.case, self.a)
    }
}

/// With every 512 positions of distance, plane i of a score shrinks by its ζ, the first plane fastest.
#[law("rotations/xpos-fades", see = "rotations#xpos", about = Rotation, points = 2,
    formula = "|q′ₘ|·|k′ₙ| = ζᵢ^((m−n)/512)",
    stays = "What xPos is for, in one number a plane.")]
pub(in crate::rotations) fn xpos_fades(rotations: &Any, _: &Run) -> Verdict {
    for plane in [0, 1] {
        let zeta: f64 = [2.0 / 7.0, 9.0 / 14.0][plane];
        let key = unit(plane, 30);
        let k = lengths(&asked(rotations, &key)?.k)[plane];
        let k_near = lengths_off(&tolerance::xpos(&key)[1])[plane];
        for distance in [0, 1, 64, 256, 512, 1536] {
            let query = unit(plane, 30 + distance);
            let q = lengths(&asked(rotations, &query)?.q)[plane];
            let q_near = lengths_off(&tolerance::xpos(&query)[0])[plane];
            let expected = 25.0 * zeta.powf(distance as f64 / 512.0);
            let may = q * k_near + k * q_near + q_near * k_near;
            let why = "what the two lengths may be off, times the other";
            one("xpos", q * k, expected, may, why).map_err(|violation| violation.on(&query))?;
        }
    }
    Ok(None)
}

/// On any input, queries and keys are what plain f64 loops give.
#[law("rotations/xpos-any-input", see = "rotations#xpos", about = Rotation, points = 3,
    formula = "q′ = ζ^((m−c)/S)·R(m)q,  k′ = ζ^(−(n−c)/S)·R(n)k", stays = NET)]
pub(in crate::rotations) fn xpos_any_input(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "xpos")
}
