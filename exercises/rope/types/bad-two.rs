//! With 2 dimensions, d / (d - 2) is not a number.
use exercises::rope::NtkAwareRope;
use exercises::prelude::*;

pub fn bad() -> Result<NtkAwareRope<2, Cpu>> {
    NtkAwareRope::<2, Cpu>::new(&Cpu::default(), 10_000.0, 8, 1, false)
}
