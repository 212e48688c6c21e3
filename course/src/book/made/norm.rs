//! Made for the chapter on GroupRMSNorm.

use super::{Made, Numbers};
use crate::error::Result;

/// All of it.
pub static MADE: Made = Made { figures: &[], listings: &[], numbers };

fn numbers(_numbers: &mut Numbers) -> Result<()> {
    Ok(())
}
