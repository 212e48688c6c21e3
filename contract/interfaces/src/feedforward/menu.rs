//! The sizes of SwiGLU that checks use where an implementation has them in its types.

/// `(h, f)`: wider between and narrower, and 1, where a product is one number.
pub const FEEDFORWARD: [(usize, usize); 4] = [(3, 5), (6, 2), (1, 1), (8, 16)];

/// `(h, f)` of larger ones, for the graded cases alone: a lane and a bit, on either side.
pub const LARGE: [(usize, usize); 2] = [(67, 9), (9, 70)];

/// Calls `$body` with `H` and `FF` as constants, for a pair of [`FEEDFORWARD`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_feedforward_sizes {
    ($sizes:expr, |$H:ident, $FF:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$H, $FF],
            $body,
            $other,
            (3, 5)(6, 2)(1, 1)(8, 16)(67, 9)(9, 70)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in FEEDFORWARD.into_iter().chain(LARGE) {
            assert!(with_feedforward_sizes!(sizes, |H, FF| (H, FF) == sizes, _ => false));
        }
    }
}
