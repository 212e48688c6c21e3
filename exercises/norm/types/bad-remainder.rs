//! 3 does not divide 8.
use exercises::norm::GroupRmsNorm;
use exercises::prelude::*;

pub fn bad() -> GroupRmsNorm<8, 3, Cpu> {
    GroupRmsNorm::<8, 3, Cpu>::new(Cpu::default().ones(), 1e-5)
}
