//! 7 dimensions are not pairs.
use exercises::rope::NtkAwareRope;
use exercises::prelude::*;

pub fn bad() -> Result<NtkAwareRope<7, Cpu>> {
    NtkAwareRope::<7, Cpu>::new(&Cpu::default(), 10_000.0, 8, 1, false)
}
