//! The sizes of a call of attention, and where the texts in it begin.

use crate::tensor::*;

/// The sizes of a call, in the letters of the course.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) b: usize,
    pub(super) s: usize,
    pub(super) t: usize,
    pub(super) nh: usize,
    pub(super) nkv: usize,
    pub(super) hd: usize,
}

impl Sizes {
    /// Those of queries and keys.
    pub(super) fn of<B: Dim, S: Dim, P: Dim, N: Dim, K: Dim, H: Dim>(
        q: &(B, S, N, H),
        k: &(B, P, K, H),
    ) -> Self {
        let (b, s, nh, hd) = (q.0.size(), q.1.size(), q.2.size(), q.3.size());
        Self { b, s, t: k.1.size(), nh, nkv: k.2.size(), hd }
    }
}

/// How many tokens come before the text of a query: see [`attention_in_texts`](super::formula::attention_in_texts).
pub(super) fn before_text(
    padding: &[usize],
    (b, s): (usize, usize),
    (row, query): (usize, usize),
) -> usize {
    match padding.len() {
        0 => 0,
        rows if rows == b => padding[row],
        _ => padding[row * s + query],
    }
}
