//! Checks of rotations by several coordinates.

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
pub(in crate::rotations) type AxialAsked = crate::graded_cases::Asked<AxialCase>;

fn turned(rotations: &Any, case: &AxialCase) -> Step<Vec<f32>> {
    let y = answer("axial", || rotations.axial(case)).map_err(|violation| violation.on(case))?;
    holds("axial", y.len() == case.x.len(), || {
        format!("{} values came back for {}", y.len(), case.x.len())
    })
    .map_err(|violation| violation.on(case))?;
    Ok(y)
}

/// `y` must be what the loops give.
pub(in crate::rotations) fn matches_axial(rotations: &Any, asked: &AxialAsked) -> Step {
    answers_axial(rotations, asked, &asked.case)
}

/// What is asked must be answered as `other` should be.
pub(in crate::rotations) fn answers_axial(
    rotations: &Any,
    asked: &AxialAsked,
    other: &AxialCase,
) -> Step {
    let AxialAsked { manner, case, .. } = asked;
    let (expected, near) = (Oracle.axial(other), tolerance::axial(other, &other.x, false));
    answer("axial", || rotations.axial_in(*manner, case))
        .and_then(|y| within("axial", &case.shape, &y, &expected, off(&near), TURNED_WHY))
        .map_err(|violation| violation.on(asked))
}

/// And so must `dx`.
pub(in crate::rotations) fn matches_axial_dx(rotations: &Any, asked: &AxialAsked) -> Step {
    let AxialAsked { manner, case, dy } = asked;
    let (expected, near) = (Oracle.axial_backward(case, dy), tolerance::axial(case, dy, true));
    answer("axial_backward", || rotations.axial_backward_in(*manner, case, dy))
        .and_then(|dx| {
            within("axial_backward", &case.shape, &dx, &expected, off(&near), TURNED_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// Two tokens of a head of 8, or of three coordinates, somewhere.
fn inputs() -> impl Strategy<Value = AxialCase> {
    let sections = prop_oneof![Just(Sections::Anew), Just(Sections::OneList)];
    let planes = prop_oneof![Just(vec![2, 2]), Just(vec![1, 1, 2])];
    (sections, planes, proptest::collection::vec(0usize..200, 6), values(16)).prop_map(
        |(sections, planes, mut coordinates, x)| {
            coordinates.truncate(2 * planes.len());
            AxialCase { shape: [1, 2, 1, 8], planes, sections, base: 100.0, coordinates, x }
        },
    )
}

/// A token whose coordinates are all 0 stays as it is, bit for bit.
#[law("rotations/axial-origin", see = "rotations#axial", about = Offset, points = 1,
    formula = "all coordinates 0  ⇒  y = x, exactly",
    stays = "It can be checked by hand, and has no tolerance.")]
pub(in crate::rotations) fn axial_origin(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let mut case = case.clone();
        case.coordinates.fill(0);
        let why = "cos 0 is 1 and sin 0 is 0, so nothing is rounded";
        same_values("axial", &case.shape, &turned(rotations, &case)?, &case.x, why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// Ones in the first half of a head of 8: each plane then shows its cosine and its sine.
fn by_numbers(rotations: &Any, sections: Sections, base: f64, angles: [f64; 4]) -> Step {
    let x = vec![1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let case = AxialCase {
        shape: [1, 1, 1, 8],
        planes: vec![2, 2],
        sections,
        base,
        coordinates: vec![3, 5],
        x,
    };
    let expected: Vec<f64> =
        angles.iter().map(|a| a.cos()).chain(angles.iter().map(|a| a.sin())).collect();
    let near = tolerance::axial(&case, &case.x, false);
    within("axial", &case.shape, &turned(rotations, &case)?, &expected, off(&near), TURNED_WHY)
        .map_err(|violation| violation.on(&case))
}

/// In a direct sum, each section has its own frequencies, from 1 down: with 2 planes and base 100 they are 1 and 0.1
/// for rows, and 1 and 0.1 for columns.
#[law("rotations/axial-sections-start-anew", see = "rotations#axial", about = Frequencies, points = 2,
    formula = "θ = base^(−i/p),  i = 0 .. p−1, in each section",
    stays = "Numbers that are known by heart, one for each plane.")]
pub(in crate::rotations) fn axial_anew(rotations: &Any, _: &Run) -> Verdict {
    by_numbers(rotations, Sections::Anew, 100.0, [3.0, 0.3, 5.0, 0.5])?;
    Ok(None)
}

/// With one list, plane i has frequency i, whatever coordinate turns it.
#[law("rotations/axial-one-list", see = "rotations#axial", about = Frequencies, points = 2,
    formula = "θᵢ = base^(−2i/d)",
    stays = "The same numbers for the other kind of sections.")]
pub(in crate::rotations) fn axial_one_list(rotations: &Any, _: &Run) -> Verdict {
    by_numbers(rotations, Sections::OneList, 10_000.0, [3.0, 0.3, 0.05, 0.005])?;
    Ok(None)
}

/// If all coordinates of a token are the same number, sections of one list are RoPE in one dimension, bit for bit.
#[law("rotations/axial-text-is-rope", see = "rotations#axial", about = Order, points = 2,
    formula = "t = h = w = m  ⇒  y = R(m)x, exactly",
    stays = "Why a model of text can go on with pictures: without a tolerance.")]
pub(in crate::rotations) fn axial_text(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let axes = case.planes.len();
        let mut text = AxialCase { sections: Sections::OneList, ..case.clone() };
        for row in text.coordinates.chunks_mut(axes) {
            row.fill(row[0]);
        }
        let positions = text.coordinates.iter().step_by(axes).copied().collect();
        let rope = AxialCase { planes: vec![4], coordinates: positions, ..text.clone() };
        let why = "the same text with one coordinate; the same planes turn by the same angles";
        same_values(
            "axial",
            &text.shape,
            &turned(rotations, &text)?,
            &turned(rotations, &rope)?,
            why,
        )
        .map_err(|violation| violation.on(&text))?;
        // And they do turn by that coordinate.
        let (expected, near) = (Oracle.axial(&rope), tolerance::axial(&rope, &rope.x, false));
        within("axial", &rope.shape, &turned(rotations, &rope)?, &expected, off(&near), TURNED_WHY)
            .map_err(|violation| violation.on(&rope))
    })?;
    Ok(None)
}

/// A coordinate turns all planes of its section, and no others.
#[law("rotations/axial-rows-and-columns", see = "rotations#axial", about = Order, points = 2,
    formula = "only row changes  ⇒  planes of columns unchanged, planes of rows turned",
    stays = "A law without an oracle and without a tolerance: which planes belong to which coordinate.")]
pub(in crate::rotations) fn axial_separate(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let mut case = case.clone();
        // Something to turn in each plane.
        case.x.iter_mut().for_each(|x| *x = x.abs() + 1.0);
        let y = turned(rotations, &case)?;
        let (axes, mut first) = (case.planes.len(), 0);
        for (axis, &planes) in case.planes.iter().enumerate() {
            let mut moved = case.clone();
            moved.coordinates[axes + axis] += 1; // of token 1
            let again = turned(rotations, &moved)?;
            let on = |violation: Box<Violation>| violation.on(&moved);
            let why = format!("coordinate {axis} of token 1 alone was changed");
            same_values("axial", &[8], &again[..8], &y[..8], &why).map_err(on)?;
            for plane in 0..4 {
                let own = (first..first + planes).contains(&plane);
                let [before, after] = [&y, &again].map(|y| [y[8 + plane], y[12 + plane]]);
                if own {
                    holds("axial", before != after, || {
                        format!("coordinate {axis} grew by 1, and its plane {plane} was not turned")
                    })
                    .map_err(on)?;
                } else {
                    let why = format!("coordinate {axis} was changed, plane {plane} is another's");
                    same_values("axial", &[2], &after, &before, &why).map_err(on)?;
                }
            }
            first += planes;
        }
        Ok(())
    })?;
    Ok(None)
}

/// The two halves of the planes exchanged, in both halves of a head of 8.
fn exchanged(x: &[f32]) -> Vec<f32> {
    x.chunks(4).flat_map(|half| [half[2], half[3], half[0], half[1]]).collect()
}

/// In a direct sum of two equal sections, exchanging the coordinates is the same as exchanging the sections.
#[law("rotations/axial-swap", see = "rotations#axial", about = Order, points = 1,
    formula = "y(c, r; P·x) = P·y(r, c; x), exactly",
    stays = "A law without an oracle and without a tolerance: no coordinate is better than another.")]
pub(in crate::rotations) fn axial_swap(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let coordinates = case.coordinates[..4].to_vec();
        let case =
            AxialCase { planes: vec![2, 2], sections: Sections::Anew, coordinates, ..case.clone() };
        let mut swapped = AxialCase { x: exchanged(&case.x), ..case.clone() };
        swapped.coordinates.chunks_mut(2).for_each(|row| row.swap(0, 1));
        let expected = exchanged(&turned(rotations, &case)?);
        let why = "rows and columns exchanged, and their planes: the same angles, elsewhere";
        same_values("axial", &case.shape, &turned(rotations, &swapped)?, &expected, why)
            .map_err(|violation| violation.on(&swapped))
    })?;
    Ok(None)
}

/// Each plane keeps its length.
#[law("rotations/axial-keeps-lengths", see = "rotations#axial", about = Rotation, points = 1,
    formula = "yᵢ² + yᵢ₊ₚ² = xᵢ² + xᵢ₊ₚ²",
    stays = "What makes it a rotation, whatever turns it.")]
pub(in crate::rotations) fn axial_keeps_lengths(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let y = turned(rotations, case)?;
        let near = tolerance::axial(case, &case.x, false);
        for at in [0, 8] {
            let head = at..at + 8;
            let may = lengths_off(&near[head.clone()]);
            let (got, expected) = (lengths(&y[head.clone()]), lengths(&case.x[head]));
            within_f64("axial", &[4], &got, &expected, |i| may[i], TURNED_WHY)?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// A score depends only on the difference of each coordinate.
#[law("rotations/axial-relative", see = "rotations#axial", about = Offset, points = 2,
    formula = "q(r+a, c+b) · k(r′+a, c′+b) = q(r, c) · k(r′, c′)",
    stays = "What it is for, without an oracle.")]
pub(in crate::rotations) fn axial_relative(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let expected = turned(rotations, case)?;
        let expected = score(&expected[..8], &expected[8..]);
        let near = |case: &AxialCase| {
            let near = tolerance::axial(case, &case.x, false);
            Near::product_off(&near[..8], &near[8..])
        };
        let axes = case.planes.len();
        for axis in 0..axes {
            let mut moved = case.clone();
            moved.coordinates.iter_mut().skip(axis).step_by(axes).for_each(|x| *x += 7);
            let y = turned(rotations, &moved)?;
            let why = "what both may be off, times the other, before and after";
            one("axial", score(&y[..8], &y[8..]), expected, near(case) + near(&moved), why)
                .map_err(|violation| violation.on(&moved))?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// On any input, y is what plain f64 loops give.
#[law("rotations/axial-any-input", see = "rotations#axial", about = Rotation, points = 3,
    formula = "plane i turned by coordinate · θᵢ", stays = NET)]
pub(in crate::rotations) fn axial_any_input(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "axial")
}

/// The gradient turns back: for what was turned it gives the input.
#[law("rotations/axial-gradient-turns-back", see = "rotations#axial", about = Gradient, points = 2,
    formula = "dx(dy = y(x)) = x")]
pub(in crate::rotations) fn axial_turns_back(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let y: Vec<f32> = Oracle.axial(case).iter().map(|y| *y as f32).collect();
        let dx = answer("axial_backward", || rotations.axial_backward(case, &y))
            .map_err(|violation| violation.on(case))?;
        let expected: Vec<f64> = case.x.iter().map(|x| f64::from(*x)).collect();
        let (near, forward) =
            (tolerance::axial(case, &y, true), tolerance::axial(case, &case.x, false));
        // y was rounded; a rotation brings that from both elements of a plane.
        let may = |i: usize| near[i].off + forward[i].off + forward[i ^ 4].off;
        let why = "what turning back may be off, and what was rounded before";
        within("axial_backward", &case.shape, &dx, &expected, may, why)
            .map_err(|violation| violation.on(case))
    })?;
    Ok(None)
}

/// On any input, the gradient is what plain f64 loops give.
#[law("rotations/axial-gradient-any-input", see = "rotations#axial", about = Gradient, points = 2,
    formula = "dx = Rᵀdy", stays = NET)]
pub(in crate::rotations) fn axial_gradient(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "axial_backward")
}
