//! How a report shows values: cut if there are many.

use std::fmt::{self, Display, Formatter};

/// Values beyond this many are not shown.
const SHOWN: usize = 12;

/// A list, cut after twelve values.
pub struct List<'a, T>(pub &'a [T]);

impl<T: fmt::Debug> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.0.iter().take(SHOWN).map(|v| format!("{v:?}")).collect();
        write!(f, "[{}", shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => write!(f, "]"),
            more => write!(f, ", .. {more} more]"),
        }
    }
}
