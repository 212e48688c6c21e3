//! Repairs of a {Type}: steps whose value can be found from the answers. contract/src/norm/repairs.rs has some.

use crate::repair::Repair;
use crate::{slug}::interface::{Type};

/// They are tried in this order.
pub static REPAIRS: &[Repair<dyn {Type}>] = &[];
