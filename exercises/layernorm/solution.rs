//! The tasks of LayerNorm.
//!
//! Each token loses its mean, and is divided by its standard deviation:
//!
//! ```text
//! y = (x - mean(x)) / sqrt(var(x) + eps) · gamma + beta        mean and variance over each token
//! ```
//!
//! The variance is the mean of `(x - mean)²`, a mean over `h` numbers. Source: Ba, Kiros and Hinton 2016.

use crate::prelude::*;

/// LayerNorm over a hidden axis of `H` elements.
#[derive(Clone)]
pub struct LayerNorm<const H: usize, D: Device<f32>> {
    /// Gamma, `[h]`: one scale per element.
    pub weight: Tensor<Rank1<H>, f32, D>,
    /// Beta, `[h]`: one shift per element.
    pub bias: Tensor<Rank1<H>, f32, D>,
    /// Added to the variance.
    pub eps: f64,
}

impl<const H: usize, D: Device<f32>> LayerNorm<H, D> {
    /// A norm with this gamma and this beta.
    pub fn new(weight: Tensor<Rank1<H>, f32, D>, bias: Tensor<Rank1<H>, f32, D>, eps: f64) -> Self {
        Self { weight, bias, eps }
    }

    /// Tasks `layernorm/forward` and `layernorm/tape`. The forward pass, `[b, s, h]` to `[b, s, h]`.
    ///
    /// ```text
    /// y = (x - mean(x)) / sqrt(var(x) + eps) · gamma + beta        var(x) = mean((x - mean(x))²)
    /// ```
    ///
    /// Subtract the mean BEFORE you square: `mean(x²) - mean(x)²` is the same number on paper, but in `f32` it loses
    /// its digits as soon as the mean is large.
    ///
    /// A NaN stays in its token.
    ///
    /// Task `layernorm/forward` looks at the values, and task `layernorm/tape` at the gradients, for which all uses of
    /// `x` must be on the tape, and so must gamma and beta; `norm/forward` says how.
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D, T>,
    ) -> Tensor<(B, S, Const<H>), f32, D, T> {
        // task layernorm/forward: begin
        let shape = *x.shape();

        let mean = x.with_empty_tape().mean::<_, Axis<2>>(); //            [b, s]
        let centred = x - mean.broadcast_like::<_, Axis<2>>(&shape); //    [b, s, h]
        let squares = centred.with_empty_tape().square(); //               [b, s, h]
        let variance = squares.mean::<_, Axis<2>>(); //                    [b, s]
        let std = (variance + self.eps as f32).sqrt(); //                  [b, s]
        let xhat = centred / std.broadcast_like::<_, Axis<2>>(&shape); //  [b, s, h]
        let gamma = self.weight.retaped::<T>(); //                         [h]
        let gamma = gamma.broadcast_like::<_, Axes2<0, 1>>(&shape); //     [b, s, h]
        let beta = self.bias.retaped::<T>(); //                            [h]
        let beta = beta.broadcast_like::<_, Axes2<0, 1>>(&shape); //       [b, s, h]
        xhat * gamma + beta //                                             [b, s, h]
        // task layernorm/forward: end
    }

    /// Task `layernorm/backward`. The gradients by hand, without a tape: `dx`, `[b, s, h]`, `dgamma` and
    /// `dbeta`, `[h]` each.
    ///
    /// `dy`, `[b, s, h]`, is the gradient of the loss with respect to the result. With
    /// `xhat = (x - mean) / std` and `std = sqrt(var + eps)`:
    ///
    /// ```text
    /// dbeta  = sum over all rows of dy
    /// dgamma = sum over all rows of dy · xhat
    /// dx     = (gamma·dy - mean(gamma·dy) - xhat · mean(gamma·dy · xhat)) / std     means over a token
    /// ```
    ///
    /// A NaN stays in its token and in the sums over the rows that it is part of, and no number replaces it.
    pub fn backward<B: Dim, S: Dim>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D>,
        dy: Tensor<(B, S, Const<H>), f32, D>,
    ) -> (Tensor<(B, S, Const<H>), f32, D>, Tensor<Rank1<H>, f32, D>, Tensor<Rank1<H>, f32, D>)
    {
        // task layernorm/backward: begin
        let shape = *x.shape();

        let mean = x.clone().mean::<_, Axis<2>>(); //                      [b, s]
        let centred = x - mean.broadcast_like::<_, Axis<2>>(&shape); //    [b, s, h]
        let variance = centred.clone().square().mean::<_, Axis<2>>(); //   [b, s]
        let std = (variance + self.eps as f32).sqrt(); //                  [b, s]
        let std = std.broadcast_like::<_, Axis<2>>(&shape); //             [b, s, h]
        let xhat = centred / std.clone(); //                               [b, s, h]

        let dbeta = dy.clone().sum::<_, Axes2<0, 1>>(); //                 [h]
        let dgamma = (dy.clone() * xhat.clone()).sum::<_, Axes2<0, 1>>(); // [h]

        let gamma = self.weight.clone().broadcast_like::<_, Axes2<0, 1>>(&shape);
        let gamma_dy = gamma * dy; //                                      [b, s, h]
        let level = gamma_dy.clone().mean::<_, Axis<2>>(); //              [b, s]
        let level = level.broadcast_like::<_, Axis<2>>(&shape); //         [b, s, h]
        let along = (gamma_dy.clone() * xhat.clone()).mean::<_, Axis<2>>(); // [b, s]
        let along = along.broadcast_like::<_, Axis<2>>(&shape); //         [b, s, h]
        let dx = (gamma_dy - level - xhat * along) / std; //               [b, s, h]

        (dx, dgamma, dbeta)
        // task layernorm/backward: end
    }
}

/// Task `layernorm/property`. An invariant of your own.
///
/// `norm` claims to be a LayerNorm, and since it takes plain values and gives plain values, it may be right or wrong in
/// any way. Return `Ok`, or an `Err` that says what is wrong with it. You may call it as often as you like.
///
/// `norm.forward(&case)` gives `y`, and `norm.backward(&case, &dy)` an
/// `interface::LayerNormGrads { dx, dgamma, dbeta }`, for an
/// `interface::LayerNormCase { shape: [b, s, h], eps, gamma, beta, x }` with flat `Vec<f32>`s. Each of them may refuse:
/// `?` makes that your `Err`, with its words in `refusal.0`.
///
/// You are graded by the known bugs that you catch, at least 15, and you may not reject a correct norm. Instead of
/// writing the norm again to compare with it, think of what must stay the same when all elements grow by one number,
/// and of what the result's own mean and variance must be.
pub fn property(norm: &dyn interface::LayerNorm) -> Result<()> {
    // task layernorm/property: begin
    // With gamma 1 and beta 0, the result has mean 0 and mean square var / (var + eps), wherever x lies.
    let x = [3.0, -0.5, 2.0, 0.25, 4.0, -1.0f32, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0];
    for (eps, level) in [(1e-6, 0.0), (0.5, 0.0), (0.5, 4096.0)] {
        let case = interface::LayerNormCase {
            shape: [1, 2, 6],
            eps,
            gamma: vec![1.0; 6],
            beta: vec![0.0; 6],
            x: x.iter().map(|x| x + level).collect(),
        };
        let y = norm.forward(&case)?;
        for (x, y) in x.chunks(6).zip(y.chunks(6)) {
            let mean = |v: &[f32]| v.iter().sum::<f32>() / 6.0;
            let variance = |v: &[f32]| v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f32>() / 6.0;
            let expected = variance(x) / (variance(x) + eps as f32);
            let square = y.iter().map(|y| y * y).sum::<f32>() / 6.0;
            if !(mean(y).abs() < 0.01 && (square - expected).abs() < 0.01) {
                let got = format!("mean {} and mean square {square}", mean(y));
                return Err(format!("{got} after the norm, expected 0 and {expected}"));
            }
        }
    }
    // Gamma multiplies, and beta comes after it: a token of equal values gives beta.
    let [gamma, beta] = [vec![2.0, -3.0], vec![0.5, -4.0]];
    let flat = interface::LayerNormCase { shape: [1, 1, 2], eps: 1.0, gamma, beta, x: vec![1.0; 2] };
    let y = norm.forward(&flat)?;
    if y != flat.beta {
        return Err(format!("a token of equal values gives {y:?}, expected beta, {:?}", flat.beta));
    }
    Ok(())
    // task layernorm/property: end
}
