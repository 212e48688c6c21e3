//! The sizes of GroupRMSNorm that checks use where a party has them in its types.

/// `(h, gz)`. Among them `gz = 1`, `gz = h`, and sizes that are not their own number of groups.
pub const NORM: [(usize, usize); 5] = [(6, 3), (6, 2), (6, 1), (6, 6), (64, 32)];

/// Calls `$body` with `H` and `GZ` as constants, for a pair of [`NORM`]; else `$other`.
#[macro_export]
macro_rules! with_norm_sizes {
    ($sizes:expr, |$H:ident, $GZ:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!($sizes, [$H, $GZ], $body, $other, (6, 3)(6, 2)(6, 1)(6, 6)(64, 32))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in NORM {
            assert!(with_norm_sizes!(sizes, |H, GZ| (H, GZ) == sizes, _ => false));
        }
    }
}
