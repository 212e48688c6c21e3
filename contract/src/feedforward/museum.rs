//! Bugs of SwiGLU.

use crate::component::{bug, bugs};
use crate::feedforward::interface::{SizeCase, SwiGluCase};
use crate::feedforward::oracle::{Passes, SwiGluLoops};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;
use std::ops::Range;

bugs! {
    SizeFourH, SizeTwoThirdsTwice, SizeRoundedDown, SizeRoundedToNearest, SizeAlwaysUp, SizePowerOfTwo,
    SizeNotRounded, SizeTwoThirdsRounded, SizeFourTimesTwoThirds, SizeMultiplierFirst, SizeMultiplierIgnored,
    SizeMultiplierLast, SizeMultiplierWhole, SiluOnUp, SiluOfTheProduct, SiluOnBoth, NoGate, GateAdded, NoSilu,
    SigmoidForSilu, ReluForSilu, GeluForSilu, SigmoidOf1702, HardSilu, SignOfExp, ExpOverflows, GateClipped,
    MatricesTransposed, Interleaved, LastUnitLost, LaneTailLost, FirstTokensGate, NanSwallowed, SlopeOfTheSigmoid,
    SlopeWithoutItsRest, SlopeSign, SlopeOfSiluOfSilu, GateIsConstant, DaWithoutUp, DbOfTheGate, DbIsOpen,
    DxThroughUpOnly, DxThroughGateOnly, GradientsExchanged, GradientsMean, LastTokenOnly, LastBatchOnly, EightTokens,
    BlockLost, DownTransposedBack, DownBeforeTheGate,
}

/// The gate of gelu, in its form with tanh.
fn gelu_gate(a: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (a + 0.044_715 * a.powi(3));
    0.5 * (1.0 + inner.tanh())
}

/// Both passes over some of the tokens.
fn of_tokens(case: &SwiGluCase, dy: &[f32], tokens: Range<usize>) -> Passes {
    let h = case.shape[2];
    let places = tokens.start * h..tokens.end * h;
    let x = case.x[places.clone()].to_vec();
    let some = SwiGluCase { shape: [1, tokens.len(), h], x, ..case.clone() };
    Oracle.passes(&some, dy.get(places).unwrap_or_default())
}

/// takes 4h, without the two thirds
///
/// SwiGLU has three matrices where other networks have two. With 4h it is half as large again, and it learns a little better:
/// nobody complains.
#[bug("feedforward/size-four-h", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeFourH {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        4 * hidden_size
    }
}

/// takes two thirds twice
///
/// The size of the configuration had them already, and the layer took them once more. The network is a third smaller than it
/// says.
#[bug(
    "feedforward/size-two-thirds-twice",
    named_by = "feedforward/size-of-llama",
    source = "GPT-NeoX pull request 1309"
)]
impl SwiGluLoops for SizeTwoThirdsTwice {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        Oracle.two_thirds(hidden_size) * 2 / 3
    }
}

/// rounds down to the multiple
///
/// The quotient of whole numbers is cut, and so is the size.
#[bug("feedforward/size-rounded-down", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeRoundedDown {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        size / multiple_of * multiple_of
    }
}

/// rounds to the nearest multiple, not up
///
/// round was called where ceil was meant. For the sizes of some models both give the same.
#[bug(
    "feedforward/size-rounded-to-nearest",
    named_by = "feedforward/size-is-a-multiple",
    source = "fms-fsdp pull request 52"
)]
impl SwiGluLoops for SizeRoundedToNearest {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        (size + multiple_of / 2) / multiple_of * multiple_of
    }
}

/// goes to the next multiple, also from one
///
/// size / m + 1, times m. Only a size that is a multiple already shows it.
#[bug("feedforward/size-always-up", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeAlwaysUp {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        (size / multiple_of + 1) * multiple_of
    }
}

/// rounds up to a power of 2
///
/// The multiples in use are powers of 2, and so was the size made.
#[bug("feedforward/size-power-of-two", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizePowerOfTwo {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        size.next_power_of_two().max(multiple_of)
    }
}

/// does not round to a multiple
///
/// The two thirds were enough, it seemed. Kernels that need whole tiles get slow, and no number is wrong.
#[bug("feedforward/size-not-rounded", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeNotRounded {
    fn rounded(&self, size: usize, _: usize) -> usize {
        size
    }
}

/// rounds two thirds to the nearest whole number, not down
///
/// int() cuts, round() does not. The multiple hides it nearly always.
#[bug("feedforward/size-two-thirds-rounded", named_by = "feedforward/size-any")]
impl SwiGluLoops for SizeTwoThirdsRounded {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        (8.0 * hidden_size as f64 / 3.0).round() as usize
    }
}

/// takes two thirds of h first, cuts them, and multiplies by 4
///
/// On paper the order does not matter. Cut to whole numbers, it does.
#[bug("feedforward/size-four-times-two-thirds", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeFourTimesTwoThirds {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        2 * hidden_size / 3 * 4
    }
}

/// multiplies 4h, and takes two thirds of that
///
/// On paper the order does not matter. Each step cuts to a whole number, so now and then it is off by one.
#[bug("feedforward/size-multiplier-first", named_by = "feedforward/size-any")]
impl SwiGluLoops for SizeMultiplierFirst {
    fn size(&self, case: &SizeCase) -> usize {
        let size = self.multiplied(4 * case.hidden_size, case.multiplier);
        self.rounded(2 * size / 3, case.multiple_of)
    }
}

/// leaves the multiplier out
///
/// It is None in the smaller models, so it was never read.
#[bug("feedforward/size-multiplier-ignored", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeMultiplierIgnored {
    fn multiplied(&self, size: usize, _: Option<f64>) -> usize {
        size
    }
}

/// multiplies after rounding up
///
/// The result is no multiple any more.
#[bug("feedforward/size-multiplier-last", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeMultiplierLast {
    fn size(&self, case: &SizeCase) -> usize {
        let rounded = self.rounded(self.two_thirds(case.hidden_size), case.multiple_of);
        self.multiplied(rounded, case.multiplier)
    }
}

/// cuts the multiplier itself to a whole number
///
/// int(1.3) is 1. With 1 and 2 it is right.
#[bug("feedforward/size-multiplier-whole", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeMultiplierWhole {
    fn multiplied(&self, size: usize, multiplier: Option<f64>) -> usize {
        multiplier.map_or(size, |multiplier| multiplier as usize * size)
    }
}

/// takes silu of W₃x, and multiplies by W₁x
///
/// The two matrices have one shape, and the product does not tell which factor was bent. A file that was loaded with both
/// exchanged does the same.
#[bug(
    "feedforward/silu-on-up",
    named_by = "feedforward/linear-in-up-and-down",
    source = "mlx-lm pull request 767"
)]
impl SwiGluLoops for SiluOnUp {
    fn between(&self, a: f64, b: f64) -> f64 {
        a * self.silu(b)
    }
    fn da(&self, dz: f64, _: f64, b: f64) -> f64 {
        dz * self.silu(b)
    }
    fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * a * self.slope(b)
    }
}

/// takes silu of the product of both branches
///
/// A bracket was closed too late.
#[bug(
    "feedforward/silu-of-the-product",
    named_by = "feedforward/linear-in-up-and-down",
    source = "breakdown-minimind issue 3"
)]
impl SwiGluLoops for SiluOfTheProduct {
    fn between(&self, a: f64, b: f64) -> f64 {
        self.silu(a * b)
    }
    fn da(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * b * self.slope(a * b)
    }
    fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * a * self.slope(a * b)
    }
}

/// takes silu of both branches
///
/// One activation was written for both halves of a fused matrix, before it was cut.
#[bug("feedforward/silu-on-both", named_by = "feedforward/linear-in-up-and-down")]
impl SwiGluLoops for SiluOnBoth {
    fn between(&self, a: f64, b: f64) -> f64 {
        self.silu(a) * self.silu(b)
    }
    fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * self.silu(a) * self.slope(b)
    }
    fn da(&self, dz: f64, a: f64, b: f64) -> f64 {
        dz * self.silu(b) * self.slope(a)
    }
}

/// leaves W₃ out: silu(W₁x) alone
///
/// The name SwiGLU was looked up in a table of activations, and silu was found.
#[bug(
    "feedforward/no-gate",
    named_by = "feedforward/linear-in-up-and-down",
    source = "timesfm issue 493"
)]
impl SwiGluLoops for NoGate {
    fn between(&self, a: f64, _: f64) -> f64 {
        self.silu(a)
    }
    fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.slope(a)
    }
    fn db(&self, _: f64, _: f64, _: f64) -> f64 {
        0.0
    }
}

/// adds the two branches instead of multiplying them
///
/// A residual was in mind. The shapes fit.
#[bug("feedforward/gate-added", named_by = "feedforward/linear-in-up-and-down")]
impl SwiGluLoops for GateAdded {
    fn between(&self, a: f64, b: f64) -> f64 {
        self.silu(a) + b
    }
    fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.slope(a)
    }
    fn db(&self, dz: f64, _: f64, _: f64) -> f64 {
        dz
    }
}

/// multiplies the two branches plainly
///
/// The activation was lost in a rewrite. The network can still learn: a product is not linear.
#[bug("feedforward/no-silu", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for NoSilu {
    fn silu(&self, a: f64) -> f64 {
        a
    }
    fn slope(&self, _: f64) -> f64 {
        1.0
    }
}

/// opens the gate by the sigmoid alone, which is the first GLU
///
/// σ(a) for a·σ(a). The letter in front was taken for a scale.
#[bug("feedforward/sigmoid-for-silu", named_by = "feedforward/closed-gate")]
impl SwiGluLoops for SigmoidForSilu {
    fn silu(&self, a: f64) -> f64 {
        self.sigmoid(a)
    }
    fn slope(&self, a: f64) -> f64 {
        self.sigmoid(a) * (1.0 - self.sigmoid(a))
    }
}

/// takes relu for silu
///
/// The activation of an older configuration. Far from 0 both are alike.
#[bug("feedforward/relu-for-silu", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for ReluForSilu {
    fn silu(&self, a: f64) -> f64 {
        a.max(0.0)
    }
    fn slope(&self, a: f64) -> f64 {
        if a > 0.0 { 1.0 } else { 0.0 }
    }
}

/// takes gelu for silu
///
/// GEGLU is another member of the family, and the curves lie close together: the model still speaks.
#[bug("feedforward/gelu-for-silu", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for GeluForSilu {
    fn silu(&self, a: f64) -> f64 {
        a * gelu_gate(a)
    }
    fn slope(&self, a: f64) -> f64 {
        let step = 1e-6;
        (self.silu(a + step) - self.silu(a - step)) / (2.0 * step)
    }
}

/// takes the sigmoid of 1.702·a
///
/// That is a fast form of gelu, which CLIP has.
#[bug("feedforward/sigmoid-of-1702", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for SigmoidOf1702 {
    fn silu(&self, a: f64) -> f64 {
        a * Oracle.sigmoid(1.702 * a)
    }
    fn slope(&self, a: f64) -> f64 {
        let open = Oracle.sigmoid(1.702 * a);
        open * (1.0 + 1.702 * a * (1.0 - open))
    }
}

/// takes pieces of straight lines for the sigmoid
///
/// Hard swish was made for phones. It is off by up to a tenth.
#[bug("feedforward/hard-silu", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for HardSilu {
    fn sigmoid(&self, a: f64) -> f64 {
        (a / 6.0 + 0.5).clamp(0.0, 1.0)
    }
}

/// forgets the minus in exp(−a)
///
/// The gate opens where it should shut.
#[bug("feedforward/sign-of-exp", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for SignOfExp {
    fn sigmoid(&self, a: f64) -> f64 {
        Oracle.sigmoid(-a)
    }
}

/// computes the sigmoid as exp(a) / (1 + exp(a)) in f32
///
/// It is the same on paper. From a = 89 on it is ∞ / ∞, which is NaN.
#[bug("feedforward/exp-overflows", named_by = "feedforward/open-gate")]
impl SwiGluLoops for ExpOverflows {
    fn sigmoid(&self, a: f64) -> f64 {
        let exp = (a as f32).exp();
        if exp.is_infinite() { f64::NAN } else { Oracle.sigmoid(a) }
    }
}

/// clips W₁x at 7
///
/// Some models are trained so, and their code was taken over. Small inputs do not show it.
#[bug("feedforward/gate-clipped", named_by = "feedforward/open-gate")]
impl SwiGluLoops for GateClipped {
    fn silu(&self, a: f64) -> f64 {
        let a = a.min(7.0);
        a * self.sigmoid(a)
    }
    fn slope(&self, a: f64) -> f64 {
        if a > 7.0 { 0.0 } else { Oracle.slope(a) }
    }
}

/// reads the matrices column by column
///
/// A file of another framework keeps its weights the other way round, and a reshape made them fit.
#[bug("feedforward/matrices-transposed", named_by = "feedforward/forward-f64-loops")]
impl SwiGluLoops for MatricesTransposed {
    fn weight(&self, matrix: &[f32], [rows, _]: [usize; 2], [row, column]: [usize; 2]) -> f64 {
        f64::from(matrix[column * rows + row])
    }
}

/// takes every second row of a fused matrix for the gate, where the halves are meant
///
/// Both layouts are in use. The product of each pair fits, and the pairs are wrong.
#[bug("feedforward/interleaved", named_by = "feedforward/linear-in-up-and-down")]
impl SwiGluLoops for Interleaved {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let fused = [&case.gate[..], &case.up[..]].concat();
        let every = |odd: usize| -> Vec<f32> {
            (0..f).flat_map(|k| fused[(2 * k + odd) * h..][..h].to_vec()).collect()
        };
        let case = SwiGluCase { gate: every(0), up: every(1), ..case.clone() };
        let mut out = Oracle.passes(&case, dy);
        let rows = |of: [&Vec<f64>; 2]| -> Vec<f64> {
            (0..2 * f).flat_map(|row| of[row % 2][row / 2 * h..][..h].to_vec()).collect()
        };
        let mut fused = rows([&out.dgate, &out.dup]);
        out.dup = fused.split_off(f * h);
        out.dgate = fused;
        out
    }
}

/// leaves the last unit out
///
/// A loop over pairs of units drops the one that is left. Usual sizes are even.
#[bug("feedforward/last-unit-lost", named_by = "feedforward/units-permute")]
impl SwiGluLoops for LastUnitLost {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let f = case.ffn_hidden_size;
        let mut case = case.clone();
        if f % 2 == 1 {
            case.down.chunks_mut(f).for_each(|row| row[f - 1] = 0.0);
        }
        Oracle.passes(&case, dy)
    }
}

/// adds products in lanes of four and forgets those that fill no lane
///
/// chunks_exact gives full chunks only; the rest has to be asked for. Sizes that are powers of 2 have no rest.
#[bug("feedforward/lane-tail-lost", named_by = "feedforward/forward-f64-loops")]
impl SwiGluLoops for LaneTailLost {
    fn inner(&self, products: &mut dyn ExactSizeIterator<Item = f64>) -> f64 {
        let n = products.len();
        Oracle.inner(&mut products.take(if n < 4 { n } else { n / 4 * 4 }))
    }
}

/// opens the gates of all tokens as the first one of the batch says
///
/// An index was left at 0. One token at a time, it is right.
#[bug("feedforward/first-tokens-gate", named_by = "feedforward/tokens-are-independent")]
impl SwiGluLoops for FirstTokensGate {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        for i in 0..out.y.len() {
            let (row, j) = (i / h, i % h);
            let unit = |k: usize| {
                f64::from(case.down[j * f + k]) * Oracle.between(out.a[k], out.b[row * f + k])
            };
            out.y[i] = (0..f).map(unit).sum();
        }
        out
    }
}

/// turns NaN into 0
///
/// A loss had become NaN, and a nan_to_num ended that. The weights go on learning from zeros.
#[bug("feedforward/nan-swallowed", named_by = "feedforward/tokens-are-independent")]
impl SwiGluLoops for NanSwallowed {
    fn between(&self, a: f64, b: f64) -> f64 {
        let z = Oracle.between(a, b);
        if z.is_nan() { 0.0 } else { z }
    }
}

/// takes the slope of the sigmoid for that of silu
///
/// σ(1 − σ) is what one knows by heart. The factor a was forgotten on the way back.
#[bug("feedforward/slope-of-the-sigmoid", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for SlopeOfTheSigmoid {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 - open)
    }
}

/// takes σ(a) for the slope of silu
///
/// The gate was taken for a constant: half of the product rule.
#[bug("feedforward/slope-without-its-rest", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeWithoutItsRest {
    fn slope(&self, a: f64) -> f64 {
        self.sigmoid(a)
    }
}

/// subtracts a(1 − σ(a)) in the slope of silu
///
/// A sign was lost between paper and code. At 0 both are ½.
#[bug("feedforward/slope-sign", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeSign {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 - a * (1.0 - open))
    }
}

/// computes the slope from silu(a) where a is meant
///
/// The forward pass had kept silu(a) and no more.
#[bug("feedforward/slope-of-silu-of-silu", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeOfSiluOfSilu {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 + self.silu(a) * (1.0 - open))
    }
}

/// takes the gate for a constant: W₁ gets no gradient
///
/// It was computed from a copy without a tape.
#[bug("feedforward/gate-is-constant", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for GateIsConstant {
    fn da(&self, _: f64, _: f64, _: f64) -> f64 {
        0.0
    }
}

/// forgets the factor W₃x in the gradient of the gate
///
/// One factor of a product stands in the gradient of the other. It was 1 in the test.
#[bug("feedforward/da-without-up", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for DaWithoutUp {
    fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.slope(a)
    }
}

/// multiplies by W₁x where silu(W₁x) is meant, in the gradient of W₃
///
/// The name gate stood for both.
#[bug("feedforward/db-of-the-gate", named_by = "feedforward/gradient-along-the-weights")]
impl SwiGluLoops for DbOfTheGate {
    fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * a
    }
}

/// multiplies by σ(a) where silu(a) is meant, in the gradient of W₃
///
/// The sigmoid was kept for the slope, and used here too.
#[bug("feedforward/db-is-open", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for DbIsOpen {
    fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.sigmoid(a)
    }
}

/// forgets what comes to x through the gate
///
/// x is used twice, and one gradient overwrote the other.
#[bug("feedforward/dx-through-up-only", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for DxThroughUpOnly {
    fn dx(&self, _: f64, through_up: f64) -> f64 {
        through_up
    }
}

/// forgets what comes to x through W₃
///
/// x is used twice, and one of both was a copy without a tape.
#[bug("feedforward/dx-through-gate-only", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for DxThroughGateOnly {
    fn dx(&self, through_gate: f64, _: f64) -> f64 {
        through_gate
    }
}

/// gives the gradient of W₁ to W₃, and that of W₃ to W₁
///
/// Two results of one shape, in the wrong order.
#[bug("feedforward/gradients-exchanged", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for GradientsExchanged {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let out = Oracle.passes(case, dy);
        Passes { dgate: out.dup.clone(), dup: out.dgate.clone(), ..out }
    }
}

/// takes the mean over the tokens for the gradients of the weights, not the sum
///
/// A mean is the business of the loss. With one token it is right.
#[bug("feedforward/gradients-mean", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for GradientsMean {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let tokens = (case.shape[0] * case.shape[1]) as f64;
        for sums in [&mut out.dgate, &mut out.dup, &mut out.ddown] {
            sums.iter_mut().for_each(|sum| *sum /= tokens);
        }
        out
    }
}

/// keeps the last token's part of the gradients of the weights only
///
/// An assignment where a sum was meant.
#[bug("feedforward/last-token-only", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for LastTokenOnly {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, b * s - 1..b * s);
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// sums the gradients of the weights over the last batch row only
///
/// A product for each batch row, and one place for all of them.
#[bug("feedforward/last-batch-only", named_by = "feedforward/gradient-of-the-gate")]
impl SwiGluLoops for LastBatchOnly {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, (b - 1) * s..b * s);
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// adds the first eight tokens only for the gradients of the weights
///
/// A block of tokens was added in one step, and the loop over the blocks was missing.
#[bug("feedforward/eight-tokens", named_by = "feedforward/gradient-of-down")]
impl SwiGluLoops for EightTokens {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, 0..(b * s).min(8));
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// adds the gradients of the weights up in blocks of 128 tokens and loses the last one if it is not full
///
/// A partial sum for each block, and tokens / 128 of them. Few tokens take the simple way and are right.
#[bug("feedforward/block-lost", named_by = "feedforward/gradient-of-the-gate")]
impl SwiGluLoops for BlockLost {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, 0..in_full_blocks(b * s));
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// gives the gradient of W₂ transposed
///
/// dyᵀz for zᵀdy: as many numbers, in another order.
#[bug("feedforward/down-transposed-back", named_by = "feedforward/gradient-along-the-weights")]
impl SwiGluLoops for DownTransposedBack {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let out = Oracle.passes(case, dy);
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let ddown = (0..f * h).map(|i| out.ddown[i % h * f + i / h]).collect();
        Passes { ddown, ..out }
    }
}

/// takes silu(a) alone for z in the gradient of W₂
///
/// z is the product of both branches; only one of them was kept.
#[bug("feedforward/down-before-the-gate", named_by = "feedforward/gradient-along-the-weights")]
impl SwiGluLoops for DownBeforeTheGate {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let mut out = Oracle.passes(case, dy);
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let term = |j: usize, k: usize| {
            (0..dy.len() / h)
                .map(|t| f64::from(dy[t * h + j]) * Oracle.silu(out.a[t * f + k]))
                .sum()
        };
        out.ddown = (0..h * f).map(|i| term(i / f, i % f)).collect();
        out
    }
}
