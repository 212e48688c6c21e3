//! The sizes of a call of attention, and where the texts in it begin.

use crate::tensor::*;

/// The sizes of a call, in the letters of the course.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) b: usize,
    pub(crate) s: usize,
    pub(crate) t: usize,
    pub(crate) nh: usize,
    pub(crate) nkv: usize,
    pub(crate) hd: usize,
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
