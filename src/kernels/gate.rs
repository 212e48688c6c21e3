//! The gate of SwiGLU.

use super::length;
use crate::error::Result;
use crate::feedforward::fused::{forward, of_gate, of_up};
use crate::tensor::Scalar;

/// `y = silu(gate) * up`, elementwise.
///
/// # Errors
/// A slice of the wrong length.
pub fn silu_mul<N: Scalar>(gate: &[N], up: &[N], y: &mut [N]) -> Result<()> {
    length("up", gate.len(), up)?;
    length("y", gate.len(), y)?;
    forward(&gate, &up, y);
    Ok(())
}

/// Given `dy`, accumulates into `dgate` and `dup`.
///
/// # Errors
/// As for [`silu_mul`].
pub fn silu_mul_backward<N: Scalar>(
    gate: &[N],
    up: &[N],
    dy: &[N],
    (dgate, dup): (&mut [N], &mut [N]),
) -> Result<()> {
    length("up", gate.len(), up)?;
    length("dy", gate.len(), dy)?;
    length("dgate", gate.len(), dgate)?;
    length("dup", gate.len(), dup)?;
    of_gate(&gate, &up, dy, dgate);
    of_up(&gate, &up, dy, dup);
    Ok(())
}
