//! Heads that can be turned in pairs.
use exercises::rope::NtkAwareRope;
use exercises::prelude::*;

pub fn smallest() -> Result<NtkAwareRope<4, Cpu>> {
    NtkAwareRope::<4, Cpu>::new(&Cpu::default(), 10_000.0, 8, 1, false)
}

pub fn six() -> Result<NtkAwareRope<6, Cpu>> {
    NtkAwareRope::<6, Cpu>::new(&Cpu::default(), 10_000.0, 8, 1, false)
}
