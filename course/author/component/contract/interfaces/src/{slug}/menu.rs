//! The sizes of {Type} that checks use where an implementation has them in its types.

/// `h`.
pub const HIDDEN: [usize; 4] = [1, 2, 5, 8];

/// Calls `$body` with `H` as a constant, for a size of [`HIDDEN`]; else `$other`.
#[macro_export]
macro_rules! with_{slug}_size {
    ($size:expr, |$H:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(($size,), [$H], $body, $other, (1,)(2,)(5,)(8,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for size in HIDDEN {
            assert!(with_{slug}_size!(size, |H| H == size, _ => false));
        }
    }
}
