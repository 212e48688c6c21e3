//! Repairs of a AbsolutePositions: steps whose value can be found from the answers. contract/src/norm/repairs.rs has some.

use crate::absolute::interface::AbsolutePositions;
use crate::repair::Repair;

/// They are tried in this order.
pub static REPAIRS: &[Repair<dyn AbsolutePositions>] = &[];
