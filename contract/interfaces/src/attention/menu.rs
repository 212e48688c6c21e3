//! The heads of caches that checks use where an implementation has them in its types. All other sizes stay free.

/// `(nkv, hd)`: small ones in all combinations, and each alone up to more than a lane.
pub const CACHE_HEADS: [(usize, usize); 23] = [
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (1, 9),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (2, 5),
    (2, 9),
    (2, 17),
    (2, 65),
    (3, 3),
    (4, 3),
    (5, 1),
    (5, 3),
    (5, 9),
    (9, 3),
    (17, 3),
    (65, 3),
    (67, 3),
    (2, 67),
];

/// Calls `$body` with `NKV` and `HD` as constants, for heads of [`CACHE_HEADS`]; else `$other`.
#[macro_export]
macro_rules! with_cache_heads {
    ($heads:expr, |$NKV:ident, $HD:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $heads,
            [$NKV, $HD],
            $body,
            $other,
            (1, 1)(1, 2)(1, 3)(1, 4)(1, 9)(2, 1)(2, 2)(2, 3)(2, 4)(2, 5)(2, 9)(2, 17)(2, 65)(3, 3)(
                4, 3
            )(5, 1)(5, 3)(5, 9)(9, 3)(17, 3)(65, 3)(67, 3)(2, 67)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for heads in CACHE_HEADS {
            assert!(with_cache_heads!(heads, |NKV, HD| (NKV, HD) == heads, _ => false));
        }
    }
}
