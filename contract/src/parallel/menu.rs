//! The sizes of ParallelVocabEmbedding that checks use where a party has them in its types.

/// `(v, e, w)`.
pub const PARALLEL: [(usize, usize, usize); 4] = [(12, 5, 1), (12, 5, 3), (12, 2, 4), (20, 4, 2)];

/// Calls `$body` with `V`, `E` and `W` as constants, for a triple of [`PARALLEL`]; else `$other`.
#[macro_export]
macro_rules! with_parallel_sizes {
    ($sizes:expr, |$V:ident, $E:ident, $W:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$V, $E, $W],
            $body,
            $other,
            (12, 5, 1)(12, 5, 3)(12, 2, 4)(20, 4, 2)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in PARALLEL {
            assert!(with_parallel_sizes!(sizes, |V, E, W| (V, E, W) == sizes, _ => false));
        }
    }
}
