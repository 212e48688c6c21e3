//! The sizes of GroupRMSNorm that checks use where an implementation has them in its types.

/// `(h, gz)`. Among them `gz = 1`, `gz = h`, and sizes that are not their own number of groups.
pub const NORM: [(usize, usize); 6] = [(6, 3), (6, 2), (6, 1), (6, 6), (7, 7), (64, 32)];

/// `(h, gz)` of larger ones, for the graded cases alone: a lane and a bit, and more elements than a block of threads
/// has.
pub const LARGE: [(usize, usize); 3] = [(67, 67), (130, 2), (1030, 515)];

/// Calls `$body` with `H` and `GZ` as constants, for a pair of [`NORM`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_norm_sizes {
    ($sizes:expr, |$H:ident, $GZ:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$H, $GZ],
            $body,
            $other,
            (6, 3)(6, 2)(6, 1)(6, 6)(7, 7)(64, 32)(67, 67)(130, 2)(1030, 515)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in NORM.into_iter().chain(LARGE) {
            assert!(with_norm_sizes!(sizes, |H, GZ| (H, GZ) == sizes, _ => false));
        }
    }
}
