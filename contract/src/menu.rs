//! The sizes that checks use where a party has them in its types.
//!
//! A module with const generics exists for the sizes that are compiled. These are published, so
//! that an adapter can compile them; batch, sequence, ids, offsets and values stay free.

/// `(h, gz)`. Among them `gz = 1`, `gz = h`, and sizes that are not their own number of groups.
pub const NORM: [(usize, usize); 5] = [(6, 3), (6, 2), (6, 1), (6, 6), (64, 32)];

/// `(v, e)`.
pub const EMBEDDING: [(usize, usize); 3] = [(7, 2), (12, 5), (16, 4)];

/// `(v, e, w)`.
pub const PARALLEL: [(usize, usize, usize); 4] = [(12, 5, 1), (12, 5, 3), (12, 2, 4), (20, 4, 2)];

/// `hd`.
pub const HEAD_DIM: [usize; 4] = [4, 6, 8, 16];

/// Calls `$body` with `H` and `GZ` as constants, for a pair of [`NORM`]; else `$other`.
#[macro_export]
macro_rules! with_norm_sizes {
    ($sizes:expr, |$H:ident, $GZ:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!($sizes, [$H, $GZ], $body, $other, (6, 3)(6, 2)(6, 1)(6, 6)(64, 32))
    };
}

/// Calls `$body` with `V` and `E` as constants, for a pair of [`EMBEDDING`]; else `$other`.
#[macro_export]
macro_rules! with_embedding_sizes {
    ($sizes:expr, |$V:ident, $E:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!($sizes, [$V, $E], $body, $other, (7, 2)(12, 5)(16, 4))
    };
}

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

/// Calls `$body` with `HD` as a constant, for a size of [`HEAD_DIM`]; else `$other`.
#[macro_export]
macro_rules! with_head_dim {
    ($size:expr, |$HD:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(($size,), [$HD], $body, $other, (4,)(6,)(8,)(16,))
    };
}

/// One `match` arm per tuple of sizes, each with its names as constants.
#[doc(hidden)]
#[macro_export]
macro_rules! with_sizes {
    ($sizes:expr, $names:tt, $body:expr, $other:expr, $($tuple:tt)+) => {
        match $sizes {
            $($tuple => $crate::with_constants!($names, $tuple, $body),)+
            _ => $other,
        }
    };
}

/// A block with the names as constants.
#[doc(hidden)]
#[macro_export]
macro_rules! with_constants {
    ([$($name:ident),+], ($($value:literal),+ $(,)?), $body:expr) => {{
        $(const $name: usize = $value;)+
        $body
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The macros list the same sizes as the constants.
    #[test]
    fn macros_agree() {
        for sizes in NORM {
            assert!(with_norm_sizes!(sizes, |H, GZ| (H, GZ) == sizes, _ => false));
        }
        for sizes in EMBEDDING {
            assert!(with_embedding_sizes!(sizes, |V, E| (V, E) == sizes, _ => false));
        }
        for sizes in PARALLEL {
            assert!(with_parallel_sizes!(sizes, |V, E, W| (V, E, W) == sizes, _ => false));
        }
        for size in HEAD_DIM {
            assert!(with_head_dim!(size, |HD| HD == size, _ => false));
        }
    }
}
