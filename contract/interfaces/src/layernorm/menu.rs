//! The sizes of LayerNorm that checks use where an implementation has them in its types.

/// `(h,)`. Among them 1, where a token is its own mean.
pub const LAYERNORM: [(usize,); 4] = [(6,), (1,), (2,), (64,)];

/// `(h,)` of larger ones, for the graded cases alone: a lane and a bit, and more elements than a block of threads has.
pub const LARGE: [(usize,); 2] = [(67,), (1030,)];

/// Calls `$body` with `H` as a constant, for a size of [`LAYERNORM`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_layernorm_sizes {
    ($sizes:expr, |$H:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!($sizes, [$H], $body, $other, (6,)(1,)(2,)(64,)(67,)(1030,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in LAYERNORM.into_iter().chain(LARGE) {
            assert!(with_layernorm_sizes!(sizes, |H| (H,) == sizes, _ => false));
        }
    }
}
