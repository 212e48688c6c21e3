//! The sizes of which a task's programs are made.

use super::Rule;
use crate::graded_cases::Draw;
use crate::run::Run;
use std::collections::BTreeSet;

/// All pairs of small sizes, and some of sizes that real models have: with what divides them, and with neighbours
/// of that.
pub fn pairs() -> Vec<Vec<usize>> {
    let small = (1..=20).flat_map(|whole| (0..=whole + 2).map(move |part| vec![whole, part]));
    let large = [24, 60, 96, 100, 127, 128, 768, 4096, 11_008, 50_257, 128_256];
    let of_large = large.into_iter().flat_map(|whole: usize| {
        let parts = [1, 3, 8, 64, 100, 128, whole / 2, whole];
        let near = parts.into_iter().flat_map(|part| [part - 1, part, part + 1]);
        near.map(move |part| vec![whole, part])
    });
    let mut pairs: Vec<Vec<usize>> = small.chain(of_large).collect();
    pairs.sort();
    pairs.dedup();
    pairs
}

/// How many sizes a seed draws of those that fit, and of the others.
const DRAWN: [usize; 2] = [12, 36];

/// The sizes of a rule, and some that are not written down: listed ones made larger, and neighbours of those that fit.
/// Code for the list alone is thus seen, and code that asks less of large sizes.
pub(super) fn sizes_of(rule: &Rule, run: &Run) -> Vec<Vec<usize>> {
    let listed = (rule.sizes)();
    let mut draw = Draw::new(run, 0);
    let [fit, others] = DRAWN;
    let (mut fitting, mut not_fitting) = (BTreeSet::new(), BTreeSet::new());
    while fitting.len() < fit || not_fitting.len() < others / 2 {
        let sizes = larger(&listed[draw.below(listed.len())], &mut draw);
        let Some(sizes) = sizes.filter(|sizes| !listed.contains(sizes)) else { continue };
        let (of, most) = match (rule.fits)(&sizes) {
            true => (&mut fitting, fit),
            false => (&mut not_fitting, others / 2),
        };
        if of.len() < most {
            of.insert(sizes);
        }
    }
    // The others break one condition by as little as can be.
    let whole: Vec<_> = fitting.iter().cloned().collect();
    while not_fitting.len() < others {
        let mut sizes = whole[draw.below(whole.len())].clone();
        let place = draw.below(sizes.len());
        sizes[place] = if draw.below(2) == 0 { sizes[place] + 1 } else { sizes[place] - 1 };
        if !(rule.fits)(&sizes) && !listed.contains(&sizes) {
            not_fitting.insert(sizes);
        }
    }
    listed.into_iter().chain(fitting).chain(not_fitting).collect()
}

/// Some or all of them times a number, half of the time a large one. Nothing, if their product is beyond `u64`: a right
/// condition may multiply them.
fn larger(sizes: &[usize], draw: &mut Draw) -> Option<Vec<usize>> {
    let factor = match draw.below(2) {
        0 => 2 + draw.below(150),
        _ => (1 + draw.below(1 << 12)) << draw.below(50),
    };
    let all = draw.below(2) == 0;
    let sizes: Option<Vec<usize>> = sizes
        .iter()
        .map(|size| if all || draw.below(2) == 0 { size.checked_mul(factor) } else { Some(*size) })
        .collect();
    sizes.filter(|sizes| {
        sizes
            .iter()
            .try_fold(1_usize, |product, size| product.checked_mul(size.max(&1) + 1))
            .is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::COMPONENTS;
    use crate::task::Grading;

    #[test]
    fn every_seed_draws_sizes_that_fit_and_others() {
        let mut rules = 0;
        for task in COMPONENTS.iter().flat_map(|entry| entry.tasks()) {
            let Grading::Types(rule) = task.grading else { continue };
            rules += 1;
            let listed = (rule.sizes)();
            let of = |seed| sizes_of(rule, &Run { seed, ..Run::default() });
            for seed in 0..20 {
                let sizes = of(seed);
                let (known, drawn) = sizes.split_at(listed.len());
                assert_eq!(known, listed);
                assert!(drawn.iter().all(|sizes| !listed.contains(sizes)));
                let fit = drawn.iter().filter(|sizes| (rule.fits)(sizes)).count();
                assert_eq!([fit, drawn.len() - fit], DRAWN, "{}, seed {seed}", task.name);
            }
            assert_ne!(of(1), of(2), "{}", task.name);
        }
        assert!(rules > 4);
    }
}
