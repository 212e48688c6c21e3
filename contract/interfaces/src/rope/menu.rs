//! The sizes of NTK-aware RoPE that checks use where an implementation has them in its types.

/// `hd`.
pub const HEAD_DIM: [usize; 4] = [4, 6, 8, 16];

/// A larger one, for the graded cases alone.
pub const LARGE: usize = 66;

/// Calls `$body` with `HD` as a constant, for a size of [`HEAD_DIM`]; else `$other`.
#[macro_export]
macro_rules! with_head_dim {
    ($size:expr, |$HD:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(($size,), [$HD], $body, $other, (4,)(6,)(8,)(16,)(66,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for size in HEAD_DIM.into_iter().chain([LARGE]) {
            assert!(with_head_dim!(size, |HD| HD == size, _ => false));
        }
    }
}
