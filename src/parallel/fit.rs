//! Latency and bandwidth from all-reduces that were timed.

use super::cost::{AllReduce, Costs, Path};
use crate::checks::require;
use crate::error::{Error, Result};

/// An all-reduce that was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// `w`.
    pub world_size: usize,
    /// Bytes that each rank has.
    pub bytes: f64,
    /// Seconds until a rank had the sum.
    pub seconds: f64,
}

impl Costs {
    // ANCHOR: fitted
    /// The `message` and `byte` with which an all-reduce of this kind comes nearest to what was measured: the sum of the
    /// squares of `model / measured - 1` is the least. (With differences instead of ratios, the largest message alone
    /// would decide.)
    ///
    /// `added` and `row` are 0. What is added is in proportion to what travels, or nearly, so that no measurement of whole
    /// all-reduces can separate the two: `byte` has both. If a line of least squares would have a negative part, that
    /// part is 0, and the other one is fitted alone.
    ///
    /// # Errors
    /// A world size of 0 or 1, in which nothing is sent; a time that is not positive; bytes that are negative; numbers that
    /// are not finite; fewer than two all-reduces that cost a different number of messages or bytes.
    pub fn fitted(all_reduce: AllReduce, measured: &[Measured]) -> Result<Self> {
        // Each measurement is a line `a message + b byte = 1`.
        let mut lines = Vec::with_capacity(measured.len());
        for Measured { world_size, bytes, seconds } in measured {
            let rule = "a positive number of seconds, and finite";
            require(*seconds > 0.0 && seconds.is_finite(), "seconds", rule, *seconds)?;
            let rule = "at least 2: one rank sends nothing";
            require(*world_size > 1, "world_size", rule, *world_size as f64)?;
            let Path { messages, bytes, .. } = all_reduce.path(*world_size, *bytes)?;
            lines.push((messages / seconds, bytes / seconds));
        }
        let sum = |of: fn(&(f64, f64)) -> f64| lines.iter().map(of).sum::<f64>();
        let (aa, ab, bb) = (sum(|(a, _)| a * a), sum(|(a, b)| a * b), sum(|(_, b)| b * b));
        let (a, b) = (sum(|(a, _)| *a), sum(|(_, b)| *b));
        let determinant = aa * bb - ab * ab;
        let rule = "of at least two sizes: one line has many pairs of latency and bandwidth";
        // Two lines are one if their angle is lost in the roundings of the sums.
        let apart = determinant > 1e-12 * aa * bb;
        require(apart, "measured", rule, measured.len() as f64)?;
        let (message, byte) = ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
        let (message, byte) = match (message < 0.0, byte < 0.0) {
            (true, _) => (0.0, b / bb),
            (_, true) => (a / aa, 0.0),
            _ => (message, byte),
        };
        let finite = message.is_finite() && byte.is_finite();
        finite.then_some(Self { message, byte, added: 0.0, row: 0.0 }).ok_or(Error::Setting {
            name: "measured",
            rule: "of times whose squares a float can hold",
            got: measured.len() as f64,
        })
    }
    // ANCHOR_END: fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [AllReduce; 3] =
        [AllReduce::Ring, AllReduce::RecursiveDoubling, AllReduce::HalvingDoubling];

    /// Times that a machine with these costs would have.
    fn timed(all_reduce: AllReduce, costs: &Costs, noise: &[f64]) -> Vec<Measured> {
        let sizes = [4.0, 1024.0, 65_536.0, 1_048_576.0];
        let cases = [2, 3, 4, 8].into_iter().flat_map(|w| sizes.map(|bytes| (w, bytes)));
        let timed = |((world_size, bytes), noise): ((usize, f64), &f64)| {
            let seconds = all_reduce.seconds(costs, world_size, bytes).unwrap() * noise;
            Measured { world_size, bytes, seconds }
        };
        cases.zip(noise.iter().cycle()).map(timed).collect()
    }

    fn near(got: f64, expected: f64, bound: f64) {
        assert!((got / expected - 1.0).abs() <= bound, "{got:e}, expected {expected:e}");
    }

    /// Exact times have an exact line. Its coefficients are quotients of differences of sums: the determinant is at least a
    /// 10^-3 of its terms here, so that 100 roundings of 2^-53 become less than 10^-10.
    #[test]
    fn costs_are_found_again() {
        let costs = Costs { message: 2e-5, byte: 3e-10, added: 0.0, row: 0.0 };
        for all_reduce in ALL {
            let found = Costs::fitted(all_reduce, &timed(all_reduce, &costs, &[1.0])).unwrap();
            near(found.message, costs.message, 1e-10);
            near(found.byte, costs.byte, 1e-10);
            assert_eq!((found.added, found.row), (0.0, 0.0));
        }
    }

    /// Times that are up to a tenth too long or too short give costs that are a few tenths off at most, and never worse
    /// ratios than the true costs have.
    #[test]
    fn noise_does_not_lead_far() {
        let costs = Costs { message: 2e-5, byte: 3e-10, added: 0.0, row: 0.0 };
        let noise = [1.1, 0.95, 1.02, 0.9, 1.05, 1.0, 0.97];
        let all_reduce = AllReduce::HalvingDoubling;
        let timed = timed(all_reduce, &costs, &noise);
        let found = Costs::fitted(all_reduce, &timed).unwrap();
        near(found.message, costs.message, 0.3);
        near(found.byte, costs.byte, 0.3);
        let squares = |costs: &Costs| -> f64 {
            let ratio = |m: &Measured| {
                all_reduce.seconds(costs, m.world_size, m.bytes).unwrap() / m.seconds - 1.0
            };
            timed.iter().map(ratio).map(|off| off * off).sum()
        };
        assert!(squares(&found) <= squares(&costs));
        for factor in [0.99, 1.01] {
            assert!(
                squares(&found) <= squares(&Costs { message: found.message * factor, ..found })
            );
            assert!(squares(&found) <= squares(&Costs { byte: found.byte * factor, ..found }));
        }
    }

    /// Longer messages that take less time would have a negative part.
    #[test]
    fn nothing_is_negative() {
        let at = |bytes, seconds| Measured { world_size: 2, bytes, seconds };
        let falling = Costs::fitted(AllReduce::Ring, &[at(4.0, 2.0), at(4096.0, 1.0)]).unwrap();
        assert_eq!(falling.byte, 0.0);
        assert!(falling.message > 0.0);
        let steep = Costs::fitted(AllReduce::Ring, &[at(4.0, 1.0), at(8.0, 4.0)]).unwrap();
        assert_eq!(steep.message, 0.0);
        assert!(steep.byte > 0.0);
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let at = |world_size, bytes, seconds| Measured { world_size, bytes, seconds };
        for bad in [
            vec![],
            vec![at(2, 4.0, 1.0)],
            vec![at(2, 4.0, 1.0), at(2, 4.0, 2.0)],
            vec![at(2, 4.0, 1.0), at(1, 8.0, 2.0)],
            vec![at(2, 4.0, 1.0), at(0, 8.0, 2.0)],
            vec![at(2, 4.0, 1.0), at(2, 8.0, 0.0)],
            vec![at(2, 4.0, 1.0), at(2, 8.0, -1.0)],
            vec![at(2, 4.0, 1.0), at(2, 8.0, f64::NAN)],
            vec![at(2, 4.0, 1.0), at(2, -8.0, 1.0)],
            vec![at(2, 4.0, 1.0), at(2, f64::INFINITY, 1.0)],
        ] {
            assert!(Costs::fitted(AllReduce::Ring, &bad).is_err(), "{bad:?}");
        }
    }
}
