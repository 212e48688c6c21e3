//! Numbers as messages show them.

use std::fmt::{self, Display};

/// A number in the digits that a reader can take in: with an exponent where it has more than 16.
pub(crate) struct Number(pub(crate) f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let plain = self.0 == 0.0 || !self.0.is_finite() || (1e-5..1e16).contains(&size);
        if plain { write!(f, "{}", self.0) } else { write!(f, "{:e}", self.0) }
    }
}
