//! What the model is measured against: a 3-gram model, smoothed as Kneser and Ney do, in the modified and interpolated form.
//!
//! It counts which token followed which two. A count is lowered by a discount, and what is saved goes to a shorter context,
//! which asks in how many different contexts a token was seen, not how often. Sources: Kneser and Ney 1995; Chen and
//! Goodman 1999, "An empirical study of smoothing techniques for language modeling".

use std::collections::HashMap;
use std::hash::Hash;

/// Discounts of counts 1, 2, and 3 or more, where a text is too small to estimate them. As in KenLM.
const FALLBACK: [f64; 3] = [0.5, 1.0, 1.5];

/// A 3-gram model of a text.
#[derive(Debug)]
pub struct Trigrams {
    vocab_size: usize,
    third: Level<[usize; 3], [usize; 2]>,
    second: Level<[usize; 2], usize>,
    first: Level<usize, ()>,
}

/// The counts of one length, and of their contexts.
#[derive(Debug)]
struct Level<G, C> {
    counts: HashMap<G, usize>,
    contexts: HashMap<C, Context>,
    discounts: [f64; 3],
}

/// What followed one context.
#[derive(Debug, Default, Clone, Copy)]
struct Context {
    /// All counts together.
    total: usize,
    /// How many tokens were counted once, twice, three times or more.
    seen: [usize; 3],
}

// ANCHOR: discounts
/// The discounts of counts 1, 2, and 3 or more, from how many counts are 1, 2, 3 and 4.
///
/// ```text
/// Y = n1 / (n1 + 2 n2)       D1 = 1 - 2 Y n2 / n1       D2 = 2 - 3 Y n3 / n2       D3 = 3 - 4 Y n4 / n3
/// ```
fn discounts(counts: impl Iterator<Item = usize>) -> [f64; 3] {
    let mut n = [0.0; 5];
    for count in counts.filter(|count| (1..=4).contains(count)) {
        n[count] += 1.0;
    }
    let y = n[1] / (n[1] + 2.0 * n[2]);
    let discount = |k: usize| k as f64 - (k as f64 + 1.0) * y * n[k + 1] / n[k];
    let discounts = [discount(1), discount(2), discount(3)];
    // NaN where no count is k; below 0 or above k where there are too few to estimate it.
    let good = (1..=3).all(|k| (0.0..=k as f64).contains(&discounts[k - 1]));
    if good { discounts } else { FALLBACK }
}
// ANCHOR_END: discounts

impl<G: Eq + Hash + Copy, C: Eq + Hash + Copy> Level<G, C> {
    fn new(counts: HashMap<G, usize>, context: impl Fn(&G) -> C) -> Self {
        let discounts = discounts(counts.values().copied());
        let mut contexts: HashMap<C, Context> = HashMap::new();
        for (gram, count) in &counts {
            let of = contexts.entry(context(gram)).or_default();
            of.total += count;
            of.seen[(*count).min(3) - 1] += 1;
        }
        Self { counts, contexts, discounts }
    }

    // ANCHOR: interpolated
    /// `(count - D) / total`, and of what the discounts saved, the part that a shorter context gives.
    fn probability(&self, gram: &G, context: &C, shorter: f64) -> f64 {
        let Some(Context { total, seen }) = self.contexts.get(context) else {
            return shorter; // nothing was seen here
        };
        let count = self.counts.get(gram).copied().unwrap_or(0);
        let kept = if count == 0 { 0.0 } else { count as f64 - self.discounts[count.min(3) - 1] };
        let saved: f64 = (0..3).map(|k| self.discounts[k] * seen[k] as f64).sum();
        (kept + saved * shorter) / *total as f64
    }
    // ANCHOR_END: interpolated
}

/// How many different tokens come before each gram.
fn continuations<const N: usize, G: Eq + Hash>(
    longer: &HashMap<[usize; N], usize>,
    shorter: impl Fn(&[usize; N]) -> G,
) -> HashMap<G, usize> {
    let mut counts = HashMap::new();
    for gram in longer.keys() {
        *counts.entry(shorter(gram)).or_insert(0) += 1;
    }
    counts
}

impl Trigrams {
    /// Counts a text.
    pub fn new(tokens: &[usize], vocab_size: usize) -> Self {
        let mut thirds = HashMap::new();
        for gram in tokens.windows(3) {
            *thirds.entry([gram[0], gram[1], gram[2]]).or_insert(0) += 1;
        }
        let seconds = continuations(&thirds, |[_, b, c]| [*b, *c]);
        let firsts = continuations(&seconds, |[_, c]| *c);
        Self {
            vocab_size,
            third: Level::new(thirds, |[a, b, _]| [*a, *b]),
            second: Level::new(seconds, |[b, _]| *b),
            first: Level::new(firsts, |_| ()),
        }
    }

    /// The probability that `next` follows `context`, of which the last two tokens count.
    pub fn probability(&self, context: &[usize], next: usize) -> f64 {
        let p = self.first.probability(&next, &(), 1.0 / self.vocab_size as f64);
        let [.., b] = context else { return p };
        let p = self.second.probability(&[*b, next], b, p);
        let [.., a, b] = context else { return p };
        self.third.probability(&[*a, *b, next], &[*a, *b], p)
    }

    /// The mean loss over the tokens of a text from `first` on, in nats. Each one's context is the two tokens in front of
    /// it.
    pub fn loss(&self, tokens: &[usize], places: std::ops::Range<usize>) -> f64 {
        let count = places.len() as f64;
        let surprise = |place: usize| -self.probability(&tokens[..place], tokens[place]).ln();
        places.map(surprise).sum::<f64>() / count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// a b a b a c: by hand. The trigrams: aba 2, bab 1, bac 1.
    const TEXT: [usize; 6] = [0, 1, 0, 1, 0, 2];

    fn is(got: f64, want: f64) {
        // Some ten roundings of numbers below 1.
        assert!((got - want).abs() < 1e-15, "{got}, by hand {want}");
    }

    /// With the discounts 0.5, 1 and 1.5, because no count is 3.
    ///
    /// Different tokens in front of a pair: ba 1, ab 1 (of bab), ac 1. In front of a token, of these pairs: a 1, b 1, c 1.
    ///
    /// P1(c) = (1 - 0.5) / 3 + (3 · 0.5 / 3) / 4 = 7/24, as of a and b; of a token that was never seen 1/8.
    /// P2(b | a) = (1 - 0.5) / 2 + (2 · 0.5 / 2) P1(b) = 1/4 + 7/48 = 19/48.
    /// P2(a | b) = (1 - 0.5) / 1 + 0.5 P1(a) = 1/2 + 7/48 = 31/48.
    /// P3(a | a b) = (2 - 1) / 2 + (1 / 2) P2(a | b) = 1/2 + 31/96 = 79/96.
    /// P3(b | b a) = (1 - 0.5) / 2 + (2 · 0.5 / 2) P2(b | a) = 1/4 + 19/96 = 43/96.
    #[test]
    // ANCHOR: by_hand
    fn by_hand() {
        let model = Trigrams::new(&TEXT, 4);
        is(model.probability(&[], 2), 7.0 / 24.0);
        is(model.probability(&[], 3), 1.0 / 8.0);
        is(model.probability(&[0], 1), 19.0 / 48.0);
        is(model.probability(&[1], 0), 31.0 / 48.0);
        is(model.probability(&[0, 1], 0), 79.0 / 96.0);
        is(model.probability(&[3, 1, 0], 1), 43.0 / 96.0);
        is(model.probability(&[3, 3], 2), 7.0 / 24.0); // a context that was never seen
        let want = -((79.0f64 / 96.0).ln() + (43.0f64 / 96.0).ln()) / 2.0;
        is(model.loss(&TEXT, 2..4), want);
    }
    // ANCHOR_END: by_hand

    /// Counts 1, 1, 1, 1, 2, 2, 3, 4: n = 4, 2, 1, 1. Y = 4/8; D1 = 1 - 2/2 · 1/2 = 1/2; D2 = 2 - 3/2 · 1/2 = 5/4;
    /// D3 = 3 - 4/2 · 1/1 = 1.
    #[test]
    fn discounts_by_hand() {
        let got = discounts([1, 1, 1, 1, 2, 2, 3, 4, 9].into_iter());
        for (got, want) in got.into_iter().zip([0.5, 1.25, 1.0]) {
            is(got, want);
        }
        assert_eq!(discounts([1, 2].into_iter()), FALLBACK);
        assert_eq!(discounts([5, 5].into_iter()), FALLBACK);
    }

    proptest! {
        /// No matter what came before, one of the tokens follows.
        #[test]
        fn probabilities_sum_to_one(
            text in prop::collection::vec(0usize..6, 0..200),
            context in prop::collection::vec(0usize..6, 0..3),
        ) {
            let model = Trigrams::new(&text, 6);
            let all: Vec<f64> = (0..6).map(|next| model.probability(&context, next)).collect();
            prop_assert!(all.iter().all(|p| (0.0..=1.0).contains(p)), "{all:?}");
            // 6 sums of three levels, each some roundings of numbers below 1.
            let sum: f64 = all.iter().sum();
            prop_assert!(text.len() < 3 || (sum - 1.0).abs() < 1e-13, "{sum}");
        }
    }
}
