//! Figure 6: products of queries and keys, before and after they turn.

use super::*;
use crate::steps::{HEAD_DIM, HIDDEN, dot};

/// The title.
pub const QUESTION: &str = notebook_support::rope::products::PRODUCTS;

/// The first tokens of the text, so that a cell is still a visible square.
const SHOWN: usize = 40;

/// `ids` are the tokens; each pair is `(q, k)` of shape `[1, s, nh, hd]`: as they are, and turned.
///
/// The products are those of the first head, divided by `sqrt(hd)`, as attention does. Frames
/// show the columns of one token that occurs several times.
///
/// # Errors
/// A file that can't be written.
pub fn draw(
    out: &Path,
    ids: &[usize],
    plain: (&[f32], &[f32]),
    turned: (&[f32], &[f32]),
) -> Result<()> {
    write(out, &notebook_support::rope::products(ids, &products(plain), &products(turned))?)
}

/// `q_m . k_n / sqrt(hd)` of head 0.
fn products((q, k): (&[f32], &[f32])) -> Vec<Vec<f64>> {
    let shown = (q.len() / HIDDEN).min(SHOWN);
    let head = |x: &[f32], row: usize| x[row * HIDDEN..][..HEAD_DIM].to_vec();
    let scale = (HEAD_DIM as f64).sqrt();
    (0..shown)
        .map(|m| (0..shown).map(|n| dot(&head(q, m), &head(k, n)) / scale).collect())
        .collect()
}
