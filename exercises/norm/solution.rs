//! The tasks of GroupRMSNorm.
//!
//! Each group of the hidden axis is divided by its root mean square:
//!
//! ```text
//! y = x / sqrt(mean(x²) + eps) · gamma        mean over each group of gz neighbours
//! ```
//!
//! The mean is not subtracted, and there is no bias. Source: Zhang and Sennrich 2019.

use crate::prelude::*;

/// Task `norm/uniform`. `n` values, uniform on `[low, high)`: the numbers that PyTorch draws from `seed`.
///
/// The generator is MT19937, started with the LOW 32 bits of the seed: `Mt::new(..)`. Each value
/// takes one word, `next_u32()`, and of that word the low 24 bits:
///
/// ```text
/// value = (word mod 2²⁴) · 2⁻²⁴ · (high - low) + low            in f32
/// ```
pub fn uniform(n: usize, low: f32, high: f32, seed: u64) -> Vec<f32> {
    // task norm/uniform: begin
    let mut random = Mt::new(seed as u32);
    let mut unit = || (random.next_u32() & 0x00FF_FFFF) as f32 / (1 << 24) as f32;
    (0..n).map(|_| unit().mul_add(high - low, low)).collect()
    // task norm/uniform: end
}

/// GroupRMSNorm over a hidden axis of `H` elements, in groups of `GZ` ELEMENTS.
#[derive(Clone)]
pub struct GroupRmsNorm<const H: usize, const GZ: usize, D: Device<f32>> {
    /// Gamma, `[h]`: one scale per element.
    pub weight: Tensor<Rank1<H>, f32, D>,
    /// Added to the mean square.
    pub eps: f64,
}

impl<const H: usize, const GZ: usize, D: Device<f32>> GroupRmsNorm<H, GZ, D> {
    /// A norm with this gamma.
    ///
    /// Task `norm/types`, about types. Neither `GroupRmsNorm::<8, 3, _>`, where 3 does not divide 8, nor a group of 0
    /// elements makes sense. Make all such sizes impossible to compile, here, with a message that names the rule. `H`
    /// and `GZ` are known to the compiler, so an assertion can run while it compiles. (For a 0 the compiler may use its
    /// own words, since a division by zero is an error too.)
    pub fn new(weight: Tensor<Rank1<H>, f32, D>, eps: f64) -> Self {
        // task norm/types: begin
        const { assert!(GZ > 0 && H % GZ == 0, "the group size must divide the hidden size") };
        // task norm/types: starter
        //| // to do: task norm/types, in place of this line
        // task norm/types: end
        Self { weight, eps }
    }

    /// Tasks `norm/forward` and `norm/tape`. The forward pass, `[b, s, h]` to `[b, s, h]`.
    ///
    /// ```text
    /// y = x / sqrt(mean(x²) + eps) · gamma        mean over each group
    /// ```
    ///
    /// A NaN stays in its group: all other groups are what they are without it. (A sum that multiplies the others by 0
    /// breaks this, because 0 times NaN is NaN.)
    ///
    /// Task `norm/forward` looks at the values. Task `norm/tape` looks at the gradients: if `x` has a tape, dfdx
    /// differentiates what you wrote. There are three traps: a tensor may not be on both sides of one operation
    /// (`x * x`), dfdx's `slice` loses gradients (the page "Shapes as types" says how, `shapes#slices`), and
    /// `x.clone()` does not compile where `x` may have a tape. `x.with_empty_tape()` makes a copy that takes part in
    /// the gradient, and `self.weight.retaped::<T>()` puts gamma on the tape. A number that you add to a tensor of
    /// `f32` is an `f32`: `self.eps as f32`.
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D, T>,
    ) -> Tensor<(B, S, Const<H>), f32, D, T> {
        // task norm/forward: begin
        let (b, s, h) = *x.shape();
        let groups = (b, s, H / GZ, Const::<GZ>);

        let x = x.reshape_like(&groups); //                                 [b, s, g, gz]
        let squares = x.with_empty_tape().square(); //                      [b, s, g, gz]
        let mean_square = squares.mean::<_, Axis<3>>(); //                  [b, s, g]
        let rms = (mean_square + self.eps as f32).sqrt(); //                [b, s, g]
        let xhat = x / rms.broadcast_like::<_, Axis<3>>(&groups); //        [b, s, g, gz]
        let gamma = self.weight.retaped::<T>(); //                          [h]
        let gamma = gamma.broadcast_like::<_, Axes2<0, 1>>(&(b, s, h)); //  [b, s, h]
        xhat.reshape_like(&(b, s, h)) * gamma //                            [b, s, h]
        // task norm/forward: end
    }

    /// Task `norm/backward`. The gradients by hand, without a tape: `dx`, `[b, s, h]`, and `dgamma`, `[h]`.
    ///
    /// `dy`, `[b, s, h]`, is the gradient of the loss with respect to the result. With
    /// `xhat = x / rms`:
    ///
    /// ```text
    /// dgamma = sum over all rows of dy · xhat
    /// dx     = (gamma·dy - xhat · mean(gamma·dy · xhat)) / rms        mean over each group
    /// ```
    ///
    /// A NaN stays in its group and in the sums over the rows that it is part of, and no number replaces it.
    pub fn backward<B: Dim, S: Dim>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D>,
        dy: Tensor<(B, S, Const<H>), f32, D>,
    ) -> (Tensor<(B, S, Const<H>), f32, D>, Tensor<Rank1<H>, f32, D>) {
        // task norm/backward: begin
        let (b, s, h) = *x.shape();
        let groups = (b, s, H / GZ, Const::<GZ>);

        let x = x.reshape_like(&groups); //                                 [b, s, g, gz]
        let mean_square = x.clone().square().mean::<_, Axis<3>>(); //       [b, s, g]
        let rms = (mean_square + self.eps as f32).sqrt(); //                [b, s, g]
        let rms = rms.broadcast_like::<_, Axis<3>>(&groups); //             [b, s, g, gz]
        let xhat = x / rms.clone(); //                                      [b, s, g, gz]

        let rows = xhat.clone().reshape_like(&(b, s, h)); //                [b, s, h]
        let dgamma = (dy.clone() * rows).sum::<_, Axes2<0, 1>>(); //        [h]

        let gamma = self.weight.clone().broadcast_like::<_, Axes2<0, 1>>(&(b, s, h));
        let gamma_dy = (gamma * dy).reshape_like(&groups); //               [b, s, g, gz]
        let along = (gamma_dy.clone() * xhat.clone()).mean::<_, Axis<3>>(); // [b, s, g]
        let along = along.broadcast_like::<_, Axis<3>>(&groups); //         [b, s, g, gz]
        let dx = (gamma_dy - xhat * along) / rms; //                        [b, s, g, gz]

        (dx.reshape_like(&(b, s, h)), dgamma)
        // task norm/backward: end
    }

    /// Task `norm/half`. The forward pass for an `f16` input, without a tape.
    ///
    /// The arithmetic is in `f32`, because 300² is larger than any `f16`, and the product with gamma comes BEFORE the
    /// one rounding to `f16`. `x.to_dtype::<f32>()` converts a tensor.
    pub fn forward_half<B: Dim, S: Dim>(
        &self,
        x: Tensor<(B, S, Const<H>), f16, D>,
    ) -> Tensor<(B, S, Const<H>), f16, D>
    where
        D: Device<f16>,
    {
        // task norm/half: begin
        self.forward(x.to_dtype::<f32>()).to_dtype::<f16>()
        // task norm/half: end
    }
}

/// Task `norm/property`. An invariant of your own.
///
/// `norm` claims to be a GroupRMSNorm, and since it takes plain values and gives plain values, it may be right or wrong
/// in any way. Return `Ok`, or an `Err` that says what is wrong with it. You may call it as often as you like, with any
/// input whose group size divides the hidden size.
///
/// `norm.forward(&case)` gives `y`, and `norm.backward(&case, &dy)` an `interface::NormGrads { dx, dgamma }`, for an
/// `interface::NormCase { shape: [b, s, h], group_size, eps, gamma, x }` with flat `Vec<f32>`s.
/// `norm.initial_gamma(hidden_size, (low, high), seed)` gives the first gamma. Each of them may refuse: `?` makes that
/// your `Err`, with its words in `refusal.0`.
///
/// You are graded by the known bugs that you catch, at least 20, and you may not reject a correct norm. Instead of
/// writing the norm again to compare with it, think of what must stay the same when you scale the input, exchange
/// groups, or set everything to one value. You can use `proptest` and `quickcheck`.
pub fn property(norm: &dyn interface::GroupRmsNorm) -> Result<()> {
    // task norm/property: begin
    // After the norm, with gamma 1, the mean square of a group is ms / (ms + eps).
    let (shape, group_size) = ([1, 2, 6], 3);
    let x = vec![3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0];
    for eps in [1e-6, 0.5] {
        let gamma = vec![1.0; 6];
        let case = interface::NormCase { shape, group_size, eps, gamma, x: x.clone() };
        let y = norm.forward(&case)?;
        for (x, y) in x.chunks(group_size).zip(y.chunks(group_size)) {
            let mean_square = |v: &[f32]| v.iter().map(|v| v * v).sum::<f32>() / 3.0;
            let (before, after) = (mean_square(x), mean_square(y));
            let expected = before / (before + eps as f32);
            if !((after - expected).abs() < 1e-5) {
                return Err(format!("mean square {after} after the norm, expected {expected}"));
            }
        }
    }
    Ok(())
    // task norm/property: end
}
