//! The head sizes of stretched RoPE that checks use where an implementation has them in its types.

/// `hd`.
pub const HEAD_DIM: [usize; 3] = [4, 6, 8];

/// Calls `$body` with `HD` as a constant, for a size of [`HEAD_DIM`]; else `$other`.
#[macro_export]
macro_rules! with_frequencies_size {
    ($size:expr, |$HD:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(($size,), [$HD], $body, $other, (4,)(6,)(8,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for size in HEAD_DIM {
            assert!(with_frequencies_size!(size, |HD| HD == size, _ => false));
        }
    }
}
