//! Sizes that fit.
use exercises::{slug}::{Type};

pub fn good() -> {Type}<8> {
    {Type}::<8>::new()
}
