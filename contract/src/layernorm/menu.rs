//! The sizes of LayerNorm that checks use where a party has them in its types. None is above 64: a mistake that
//! begins at more elements is not seen.

/// `(h,)`. Among them 1, where a token is its own mean.
pub const LAYERNORM: [(usize,); 4] = [(6,), (1,), (2,), (64,)];

/// Calls `$body` with `H` as a constant, for a size of [`LAYERNORM`]; else `$other`.
#[macro_export]
macro_rules! with_layernorm_sizes {
    ($sizes:expr, |$H:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!($sizes, [$H], $body, $other, (6,)(1,)(2,)(64,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in LAYERNORM {
            assert!(with_layernorm_sizes!(sizes, |H| (H,) == sizes, _ => false));
        }
    }
}
