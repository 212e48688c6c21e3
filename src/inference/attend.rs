//! Attention of new tokens to what is kept of their text.

use super::cache::{PAGE, TextCache};
use super::loops::{Gather, Score};
use crate::attention::{only_seen, weigh};
use crate::cpu::{multiply, multiply_add, tiles, view, view_mut};
use ndarray::Axis;
use pulp::Arch;
use std::ops::Range;

/// New tokens whose scores are computed together.
const TOKENS: usize = 32;
/// Up to this many queries are scored key by key, in registers.
const FEW: usize = 8;

/// The new tokens of one text.
pub(super) struct Attend<'c> {
    pub(super) cache: &'c TextCache,
    pub(super) layer: usize,
    /// `nh`, `nkv`, `hd`.
    pub(super) heads: [usize; 3],
    pub(super) window: Option<usize>,
}

impl Attend<'_> {
    /// What the heads of one key head find, for queries `[s, nh * hd]`: into `y`, `[s, nh / nkv * hd]`. Keys and values of the new
    /// tokens are kept already.
    pub(super) fn head(&self, head: usize, q: &[f32], mut y: crate::cpu::MatrixMut<f32>) {
        let [nh, nkv, hd] = self.heads;
        let group = nh / nkv;
        let root = (hd as f32).sqrt();
        let s = y.nrows();
        for first in (0..s).step_by(TOKENS) {
            let tokens = first..s.min(first + TOKENS);
            let rows = tokens.len() * group;
            let mut block = vec![0.0; rows * hd];
            for (row, block) in block.chunks_mut(hd).enumerate() {
                let from = (first + row / group) * nh * hd + (head * group + row % group) * hd;
                block.iter_mut().zip(&q[from..]).for_each(|(block, q)| *block = q / root);
            }
            let keys = self.sees(first).start..self.sees(tokens.end - 1).end;
            let count = keys.len();
            let mut scores = vec![0.0; rows * count];
            for (page, within, columns) in pages(&keys) {
                let keys = self.cache.page(self.layer, page, head, false);
                let keys = &keys[within.start * hd..within.end * hd];
                if rows <= FEW {
                    let queries = &block;
                    let first = columns.start;
                    Arch::new().dispatch(Score { queries, keys, hd, scores: &mut scores, first });
                } else {
                    let mut into = view_mut(&mut scores, rows, count);
                    into.slice_axis_inplace(Axis(1), columns.into());
                    multiply(
                        view(&block, rows, hd, hd),
                        view(keys, within.len(), hd, hd).t(),
                        into,
                    );
                }
            }
            let mut totals = vec![1.0; rows];
            for (row, (scores, total)) in scores.chunks_mut(count).zip(&mut totals).enumerate() {
                let sees = self.sees(first + row / group);
                let sees = sees.start - keys.start..sees.end - keys.start;
                [_, *total] = weigh(only_seen(scores, sees));
            }
            block.fill(0.0);
            for (page, within, columns) in pages(&keys) {
                let values = self.cache.page(self.layer, page, head, true);
                let values = &values[within.start * hd..within.end * hd];
                if rows <= FEW {
                    let (weights, first) = (&scores, columns.start);
                    Arch::new().dispatch(Gather { weights, first, values, hd, y: &mut block });
                } else {
                    let weights = view(&scores[columns.start..], rows, within.len(), count);
                    let values = view(values, within.len(), hd, hd);
                    multiply_add(weights, values, view_mut(&mut block, rows, hd));
                }
            }
            for (row, (found, total)) in block.chunks_mut(hd).zip(&mut totals).enumerate() {
                if !found.iter().all(|found| found.is_finite()) {
                    // A weight of 0 times a value that is not seen and not finite is no number.
                    let sees = self.sees(first + row / group);
                    let weights = &scores[row * count..][sees.start - keys.start..];
                    self.gather_seen(head, &sees, (weights, *total), found);
                    *total = 1.0;
                }
                let mut y = y.row_mut(first + row / group);
                let y = y.iter_mut().skip(row % group * hd);
                y.zip(found).for_each(|(y, found)| *y = *found / *total);
            }
        }
    }

    /// The values of the positions that are seen and of no other, with weights whose sum is 1.
    fn gather_seen(
        &self,
        head: usize,
        sees: &Range<usize>,
        (weights, total): (&[f32], f32),
        found: &mut [f32],
    ) {
        let hd = found.len();
        found.fill(0.0);
        for (page, within, columns) in pages(sees) {
            let values = self.cache.page(self.layer, page, head, true);
            for (value, weight) in values.chunks(hd).skip(within.start).zip(&weights[columns]) {
                found.iter_mut().zip(value).for_each(|(found, v)| *found += weight / total * v);
            }
        }
    }

    /// The positions that a new token sees.
    fn sees(&self, token: usize) -> Range<usize> {
        let own = self.cache.len() + token;
        let first = self.window.map_or(0, |window| (own + 1).saturating_sub(window));
        first..own + 1
    }
}

/// The pages of a range of positions: the page, the part of it, and that part's place in the range.
fn pages(
    range: &Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> + use<> {
    let Range { start, end } = *range;
    (start / PAGE..end.div_ceil(PAGE)).map(move |page| {
        let (from, to) = (start.max(page * PAGE), end.min((page + 1) * PAGE));
        (page, from - page * PAGE..to - page * PAGE, from - start..to - start)
    })
}

/// Cuts the rows of a text's result for its key heads.
pub(super) fn of_heads(
    y: &mut [f32],
    s: usize,
    [nh, nkv, hd]: [usize; 3],
) -> impl Iterator<Item = (usize, crate::cpu::MatrixMut<'_, f32>)> {
    let width = nh / nkv * hd;
    let cut = tiles(view_mut(y, s, nh * hd), [s, width]).into_iter();
    cut.map(move |(_, column, y)| (column / width, y))
}

#[cfg(test)]
mod tests {
    use super::super::cache::CacheKind;
    use super::*;

    /// A value that is not finite reaches the tokens that see it, and no other, whatever the group.
    #[test]
    fn what_is_not_seen_has_no_part() {
        let (s, hd) = (5, 4);
        for nh in [1, 4] {
            let mut cache = TextCache::new(CacheKind::F32, 1, [1, hd], Default::default());
            let (k, mut v) = (vec![0.5; s * hd], vec![1.0; s * hd]);
            v[3 * hd..4 * hd].fill(f32::INFINITY);
            cache.keep(0, &k, &v);
            for window in [None, Some(1)] {
                let attend = Attend { cache: &cache, layer: 0, heads: [nh, 1, hd], window };
                let mut y = vec![0.0; s * nh * hd];
                attend.head(0, &vec![0.1; s * nh * hd], view_mut(&mut y, s, nh * hd));
                for (token, y) in y.chunks(nh * hd).enumerate() {
                    let sees = token == 3 || token > 3 && window.is_none();
                    let expected = if sees { f32::INFINITY } else { 1.0 };
                    assert!(y.iter().all(|y| *y == expected), "{nh} {window:?} {token}: {y:?}");
                }
            }
        }
    }
}
