//! The sizes of which a task's programs are made.

use super::Rule;
use crate::ladder::Draw;
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

/// The sizes of a rule, and some that nobody has written down: listed ones, made larger or moved by one. So code for the
/// list alone is seen.
pub(super) fn sizes_of(rule: &Rule, run: &Run) -> Vec<Vec<usize>> {
    let listed = (rule.sizes)();
    let mut draw = Draw::new(run, 0);
    let mut drawn = BTreeSet::new();
    let [mut fitting, mut others] = DRAWN;
    while fitting + others > 0 {
        let mut sizes = listed[draw.below(listed.len())].clone();
        let factor = 2 + draw.below(150);
        let all = draw.below(2) == 0;
        for size in &mut sizes {
            if all || draw.below(2) == 0 {
                *size *= factor;
            }
        }
        if draw.below(3) == 0 {
            let place = draw.below(sizes.len());
            sizes[place] += 1;
        }
        let left = if (rule.fits)(&sizes) { &mut fitting } else { &mut others };
        if *left > 0 && !listed.contains(&sizes) && drawn.insert(sizes) {
            *left -= 1;
        }
    }
    listed.into_iter().chain(drawn).collect()
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
