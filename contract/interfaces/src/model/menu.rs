//! The sizes of the model that checks use where an implementation has them in its types.

use super::interface::Sizes;

/// Sizes as they are listed below: `(v, h, nh, nkv, hd, f)`.
pub type Listed = (usize, usize, usize, usize, usize, usize);

/// Grouped heads, one shared head, a head for each query, and heads of three planes.
pub const MODEL: [Listed; 4] =
    [(7, 16, 4, 2, 4, 6), (5, 8, 2, 1, 4, 3), (11, 12, 3, 3, 4, 8), (6, 12, 2, 1, 6, 5)];

/// A size by its place in [`MODEL`].
pub fn sizes(place: usize) -> Sizes {
    let (v, h, nh, nkv, hd, f) = MODEL[place % MODEL.len()];
    Sizes { v, h, nh, nkv, hd, f }
}

/// Calls `$body` with the sizes as constants, if they are in [`MODEL`]; else `$other`.
#[macro_export]
macro_rules! with_model_sizes {
    ($sizes:expr, |$V:ident, $H:ident, $NH:ident, $NKV:ident, $HD:ident, $F:ident| $body:expr, _ => $other:expr) => {
        $crate::with_sizes!(
            $sizes,
            [$V, $H, $NH, $NKV, $HD, $F],
            $body,
            $other,
            (7, 16, 4, 2, 4, 6)(5, 8, 2, 1, 4, 3)(11, 12, 3, 3, 4, 8)(6, 12, 2, 1, 6, 5)
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_lists_the_same_sizes() {
        for sizes in MODEL {
            assert!(with_model_sizes!(
                sizes, |V, H, NH, NKV, HD, F| (V, H, NH, NKV, HD, F) == sizes, _ => false));
        }
    }
}
