//! A group is not larger than the row.
use exercises::norm::GroupRmsNorm;
use exercises::prelude::*;

pub fn bad() -> GroupRmsNorm<6, 12, Cpu> {
    GroupRmsNorm::<6, 12, Cpu>::new(Cpu::default().ones(), 1e-5)
}
