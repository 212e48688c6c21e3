//! Dropout on what enters the first block, for the sweeps.

use quadrivium::error::{Error, Result};
use quadrivium::position::{PositionEncoding, Positions};
use quadrivium::tensor::*;

/// How many of 10 elements are dropped: as many as by Vaswani et al. 2017, section 5.4.
const DROPPED: u64 = 1;

/// An encoding whose tokens lose a tenth of their elements while a model is trained. The others are divided by 0.9.
///
/// Which elements is drawn from the tokens themselves, by hashing their bits. Every step has other ones, since every step
/// changes the table, and a run that was ended goes on with the same bits, although no generator's state was kept.
#[derive(Debug, Default, Clone, Copy)]
pub struct Dropped<P>(pub P);

impl<P: Default> ZeroSizedModule for Dropped<P> {}

impl<const HD: usize, P: PositionEncoding<HD, f32, Cpu>> PositionEncoding<HD, f32, Cpu>
    for Dropped<P>
{
    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        tokens: Tensor<(B, S, Const<H>), f32, Cpu, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, Const<H>), f32, Cpu, T>> {
        let tokens = self.0.on_tokens(tokens, positions)?; //                 [b, s, h]
        if !T::OWNS_TAPE {
            return Ok(tokens);
        }
        // ANCHOR: dropped
        let mut state =
            tokens.as_vec().iter().fold(0, |state, x| mix(state ^ u64::from(x.to_bits())));
        let kept = 1.0 - DROPPED as f32 / 10.0;
        let mut factor = || {
            state = mix(state);
            if state % 10 < DROPPED { 0.0 } else { 1.0 / kept }
        };
        // ANCHOR_END: dropped
        let shape = *tokens.shape();
        let factors = (0..shape.num_elements()).map(|_| factor()).collect();
        let factors = tokens.device().try_tensor_from_vec(factors, shape);
        factors.and_then(|factors| tokens.try_mul(factors)).map_err(Error::device)
    }
}

/// The next number of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrivium::position::NoPosition;

    /// A tenth is 0, the others are divided by 0.9, the gradient goes where the values went, and without a tape nothing
    /// changes.
    #[test]
    fn a_tenth_is_dropped_and_the_mean_stays() {
        let dev = Cpu::default();
        let shape = (4usize, 32usize, Const::<64>);
        let dropped = |plus: f32| {
            let values = (0..shape.num_elements()).map(|i| 1.0 + plus + (i as f32 / 1e6)).collect();
            let x = dev.tensor_from_vec(values, shape);
            let of = |x| PositionEncoding::<8, _, _>::on_tokens(&Dropped(NoPosition), x, &0.into());
            assert_eq!(
                PositionEncoding::<8, _, _>::on_tokens(&Dropped(NoPosition), x.clone(), &0.into())
                    .unwrap()
                    .as_vec(),
                x.as_vec()
            );
            let y = of(x.leaky_trace()).unwrap();
            let values = y.as_vec();
            let gradient = y.sum::<Rank0, _>().backward().get(&x).as_vec();
            for ((x, y), d) in x.as_vec().iter().zip(&values).zip(&gradient) {
                assert!(
                    *y == 0.0 && *d == 0.0
                        || (y - x / 0.9).abs() < 1e-5 && (d - 1.0 / 0.9).abs() < 1e-6
                );
            }
            values.iter().map(|y| *y == 0.0).collect::<Vec<bool>>()
        };
        let (one, other) = (dropped(0.0), dropped(0.5));
        let share = |zeros: &[bool]| zeros.iter().filter(|zero| **zero).count() as f64 / 8192.0;
        // Five standard deviations of a mean of 8,192.
        assert!((share(&one) - 0.1).abs() < 5.0 * (0.09f64 / 8192.0).sqrt(), "{}", share(&one));
        assert_ne!(one, other, "each step has other ones");
        assert_eq!(one, dropped(0.0), "and they can be made again");
    }
}
