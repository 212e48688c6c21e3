//! The sizes of ParallelVocabEmbedding that checks use where an implementation has them in its types.

/// `(v, e, w)`.
pub const PARALLEL: [(usize, usize, usize); 4] = [(12, 5, 1), (12, 5, 3), (12, 2, 4), (20, 4, 2)];

/// `(v, e, w)` of larger ones: rows longer than a lane, more rows than 16 bits count.
pub const LARGE: [(usize, usize, usize); 3] = [(70, 67, 7), (65_540, 1, 4), (134, 1, 67)];

/// Calls `$body` with `V`, `E` and `W` as constants, for a triple of [`PARALLEL`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_parallel_sizes {
    ($sizes:expr, |$V:ident, $E:ident, $W:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$V, $E, $W],
            $body,
            $other,
            (12, 5, 1)(12, 5, 3)(12, 2, 4)(20, 4, 2)(70, 67, 7)(65_540, 1, 4)(134, 1, 67)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in PARALLEL.into_iter().chain(LARGE) {
            assert!(with_parallel_sizes!(sizes, |V, E, W| (V, E, W) == sizes, _ => false));
        }
    }
}
