//! The mask of a sliding window.

use super::Attention;
use super::values::mask_of;
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::run::Run;
use crate::violation::*;

fn expect_window(
    attention: &Attention,
    (s, p, window): (usize, usize, usize),
    expected: &[bool],
    why: &str,
) -> Step {
    let number = |mask: &[bool]| -> Vec<f32> { mask.iter().map(|&m| u8::from(m).into()).collect() };
    let call = "window_mask";
    answer(call, || attention.window_mask(s, p, window))
        .and_then(|got| same_values(call, &[s, p + s], &number(&got), &number(expected), why))
        .map_err(|violation| {
            violation.on(format!("{s} new tokens after {p} in the cache, a window of {window}"))
        })
}

/// A window of W shows each token itself and the W − 1 tokens before it, and none after it.
#[law("attention/window-band", see = "attention#window", about = Mask, points = 2,
    formula = "p = 0  ⇒  band[t][j] = 1 where t − W < j ≤ t",
    stays = "The band that is known by heart.")]
pub(super) fn window_band(attention: &Attention, _: &Run) -> Verdict {
    let why = "1 where row t sees column j: itself and the W − 1 before it";
    let expect =
        |s, window, rows: &[&str]| expect_window(attention, (s, 0, window), &mask_of(rows), why);
    expect(3, 1, &["100", "010", "001"])?;
    expect(4, 2, &["1000", "1100", "0110", "0011"])?;
    expect(5, 3, &["10000", "11000", "11100", "01110", "00111"])?;
    Ok(None)
}

/// The window slides along the whole text: with p positions in the cache, row t is at position p + t.
#[law("attention/window-with-cache", see = "attention#window", about = Mask, points = 2,
    formula = "band[t][j] = 1 where p + t − W < j ≤ p + t")]
pub(super) fn window_with_cache(attention: &Attention, _: &Run) -> Verdict {
    let why = "1 where row t sees column j: p + t − W < j ≤ p + t";
    let expect =
        |s, p, window, rows: &[&str]| expect_window(attention, (s, p, window), &mask_of(rows), why);
    expect(1, 4, 2, &["00011"])?;
    expect(2, 3, 3, &["01110", "00111"])?;
    expect(3, 2, 2, &["01100", "00110", "00011"])?;
    Ok(None)
}

/// A window that is as long as the text hides nothing: it is the causal mask.
#[law("attention/window-of-the-text", see = "attention#window", about = Mask, points = 1,
    formula = "W ≥ p + s  ⇒  band[t][j] = 1 where j ≤ p + t",
    stays = "The one case in which a window may be forgotten, told apart from those in which it may not.")]
pub(super) fn window_of_the_text(attention: &Attention, _: &Run) -> Verdict {
    let why = "the causal mask, since no position is as far away as the window is long";
    for (s, p) in [(1, 0), (3, 0), (1, 3), (2, 2)] {
        for window in [p + s, p + s + 1, 1 << 20] {
            let causal: Vec<bool> =
                (0..s).flat_map(|i| (0..p + s).map(move |j| j <= p + i)).collect();
            expect_window(attention, (s, p, window), &causal, why)?;
        }
    }
    Ok(None)
}

/// For any number of new tokens, any p in the cache and any window, row t sees the last W columns up to p + t.
#[law("attention/window-any-size", see = "attention#window", about = Mask, points = 1,
    formula = "band[t][j] = 1 where p + t − W < j ≤ p + t", stays = NET)]
pub(super) fn window_any_size(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "window_mask")
}

/// What the mask of a window must be.
pub(in crate::attention) fn matches_window(
    attention: &Attention,
    sizes: (usize, usize, usize),
) -> Step {
    let (s, p, window) = sizes;
    let seen = |i: usize, j: usize| (p + i + 1).saturating_sub(window) <= j && j <= p + i;
    let expected: Vec<bool> = (0..s).flat_map(|i| (0..p + s).map(move |j| seen(i, j))).collect();
    let why = "1 where row t sees column j: p + t − W < j ≤ p + t";
    expect_window(attention, sizes, &expected, why)
}
