//! The sizes of more rotations that checks use where an implementation has them in its types.

/// `hd`: as many planes for two coordinates, for three, and for sections that differ.
pub const HEAD_DIM: [usize; 4] = [4, 6, 8, 12];

/// A larger one, for the graded cases alone: a lane and a bit.
pub const LARGE: usize = 34;

/// Sections, in planes, for each head size of the menu.
pub const SECTIONS: [&[usize]; 9] =
    [&[1, 1], &[1, 1, 1], &[1, 2], &[2, 2], &[1, 1, 2], &[3, 3], &[2, 2, 2], &[1, 2, 3], &[4, 2]];

/// Calls `$body` with `HD` as a constant, for a size of [`HEAD_DIM`] or [`LARGE`]; else `$other`.
#[macro_export]
macro_rules! with_rotations_size {
    ($size:expr, |$HD:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(($size,), [$HD], $body, $other, (4,)(6,)(8,)(12,)(34,))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for size in HEAD_DIM.into_iter().chain([LARGE]) {
            assert!(with_rotations_size!(size, |HD| HD == size, _ => false));
        }
        for planes in SECTIONS {
            assert!(HEAD_DIM.contains(&(2 * planes.iter().sum::<usize>())));
        }
    }
}
