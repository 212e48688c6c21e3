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
/// Up to so many queries go key by key, in registers.
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
            for (row, (found, total)) in block.chunks(hd).zip(totals).enumerate() {
                let mut y = y.row_mut(first + row / group);
                let y = y.iter_mut().skip(row % group * hd);
                y.zip(found).for_each(|(y, found)| *y = found / total);
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
