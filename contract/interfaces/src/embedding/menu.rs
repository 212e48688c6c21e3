//! The sizes of VocabEmbedding that checks use where an implementation has them in its types.

/// `(v, e)`.
pub const EMBEDDING: [(usize, usize); 3] = [(7, 2), (12, 5), (16, 4)];

/// `(v, e)` of larger ones: rows longer than a lane, more rows than 16 bits count. The first has more columns than rows.
pub const LARGE: [(usize, usize); 2] = [(61, 67), (65_539, 1)];

/// Calls `$body` with `V` and `E` as constants, for a pair of [`EMBEDDING`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_embedding_sizes {
    ($sizes:expr, |$V:ident, $E:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$V, $E],
            $body,
            $other,
            (7, 2)(12, 5)(16, 4)(61, 67)(65_539, 1)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in EMBEDDING.into_iter().chain(LARGE) {
            assert!(with_embedding_sizes!(sizes, |V, E| (V, E) == sizes, _ => false));
        }
    }
}
