//! The sizes that checks use where an implementation has them in its types.
//!
//! A module with const generics exists for the sizes that are compiled. These are published, so
//! that an adapter can compile them; batch, sequence, ids, offsets and values stay free.

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
