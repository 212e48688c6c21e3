//! A token of 0 elements is none.
use exercises::{slug}::{Type};

pub fn bad() -> {Type}<0> {
    {Type}::<0>::new()
}
