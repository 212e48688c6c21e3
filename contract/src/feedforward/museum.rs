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

/// uses 4h without the two thirds
///
/// SwiGLU has three matrices where other networks have two. With 4h it is half as large again and learns a little better,
/// so the mistake goes unnoticed.
#[bug("feedforward/size-four-h", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeFourH {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        4 * hidden_size
    }
}

/// takes two thirds twice
///
/// The configured size already included them, and the layer applied them again. The network is a third smaller than it
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
/// Integer division truncates, and so the size is truncated too.
#[bug("feedforward/size-rounded-down", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeRoundedDown {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        size / multiple_of * multiple_of
    }
}

/// rounds to the nearest multiple instead of up
///
/// round was called where ceil was meant, and for some models' sizes both agree.
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

/// goes to the next multiple, even from a multiple
///
/// In size / m + 1, times m, only a size that is already a multiple reveals it.
#[bug("feedforward/size-always-up", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeAlwaysUp {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        (size / multiple_of + 1) * multiple_of
    }
}

/// rounds up to a power of 2
///
/// The multiples in use are powers of 2, so the size became one as well.
#[bug("feedforward/size-power-of-two", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizePowerOfTwo {
    fn rounded(&self, size: usize, multiple_of: usize) -> usize {
        size.next_power_of_two().max(multiple_of)
    }
}

/// does not round to a multiple
///
/// The two thirds seemed enough. Kernels that need whole tiles get slow, although no number is wrong.
#[bug("feedforward/size-not-rounded", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeNotRounded {
    fn rounded(&self, size: usize, _: usize) -> usize {
        size
    }
}

/// rounds two thirds to the nearest whole number instead of down
///
/// int() truncates and round() does not, but the multiple nearly always hides the difference.
#[bug("feedforward/size-two-thirds-rounded", named_by = "feedforward/size-any")]
impl SwiGluLoops for SizeTwoThirdsRounded {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        (8.0 * hidden_size as f64 / 3.0).round() as usize
    }
}

/// takes two thirds of h first, truncates them, and multiplies by 4
///
/// On paper the order does not matter, but with truncation it does.
#[bug("feedforward/size-four-times-two-thirds", named_by = "feedforward/size-is-a-multiple")]
impl SwiGluLoops for SizeFourTimesTwoThirds {
    fn two_thirds(&self, hidden_size: usize) -> usize {
        2 * hidden_size / 3 * 4
    }
}

/// multiplies 4h, and takes two thirds of that
///
/// On paper the order does not matter, but each step truncates, so now and then it is off by one.
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
/// The result is then no longer a multiple.
#[bug("feedforward/size-multiplier-last", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeMultiplierLast {
    fn size(&self, case: &SizeCase) -> usize {
        let rounded = self.rounded(self.two_thirds(case.hidden_size), case.multiple_of);
        self.multiplied(rounded, case.multiplier)
    }
}

/// truncates the multiplier itself to a whole number
///
/// int(1.3) is 1, while 1 and 2 come out right.
#[bug("feedforward/size-multiplier-whole", named_by = "feedforward/size-of-llama")]
impl SwiGluLoops for SizeMultiplierWhole {
    fn multiplied(&self, size: usize, multiplier: Option<f64>) -> usize {
        multiplier.map_or(size, |multiplier| multiplier as usize * size)
    }
}

/// applies silu to W₃x and multiplies by W₁x
///
/// The two matrices have the same shape, and the product does not show which factor went through silu. Loading a file with
/// both swapped does the same.
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

/// applies silu to the product of both branches
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

/// applies silu to both branches
///
/// A single activation was applied to both halves of a fused matrix before the split.
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

/// leaves W₃ out and returns silu(W₁x) alone
///
/// SwiGLU was looked up in a table of activations, which had silu.
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
/// The author had a residual in mind, and the shapes fit.
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

/// multiplies the two branches without silu
///
/// The activation was lost in a rewrite. The network can still learn, because a product is not linear.
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
/// σ(a) was written for a·σ(a), because the letter in front looked like a scale.
#[bug("feedforward/sigmoid-for-silu", named_by = "feedforward/closed-gate")]
impl SwiGluLoops for SigmoidForSilu {
    fn silu(&self, a: f64) -> f64 {
        self.sigmoid(a)
    }
    fn slope(&self, a: f64) -> f64 {
        self.sigmoid(a) * (1.0 - self.sigmoid(a))
    }
}

/// uses relu instead of silu
///
/// It is the activation of an older configuration, and far from 0 both agree.
#[bug("feedforward/relu-for-silu", named_by = "feedforward/silu-by-numbers")]
impl SwiGluLoops for ReluForSilu {
    fn silu(&self, a: f64) -> f64 {
        a.max(0.0)
    }
    fn slope(&self, a: f64) -> f64 {
        if a > 0.0 { 1.0 } else { 0.0 }
    }
}

/// uses gelu instead of silu
///
/// GEGLU is another member of the family, and the curves are so close that the model still speaks.
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

/// uses the sigmoid of 1.702·a
///
/// CLIP has it as a fast form of gelu.
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

/// approximates the sigmoid by straight lines
///
/// Hard swish was made for phones, and is off by up to a tenth.
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
/// It is the same on paper, but from a = 89 on it is ∞ / ∞, which is NaN.
#[bug("feedforward/exp-overflows", named_by = "feedforward/open-gate")]
impl SwiGluLoops for ExpOverflows {
    fn sigmoid(&self, a: f64) -> f64 {
        let exp = (a as f32).exp();
        if exp.is_infinite() { f64::NAN } else { Oracle.sigmoid(a) }
    }
}

/// clips W₁x at 7
///
/// Some models are trained this way, and their code was copied. Small inputs do not reveal it.
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
/// Another framework's file stores the weights the other way round, and a reshape made them fit.
#[bug("feedforward/matrices-transposed", named_by = "feedforward/forward-f64-loops")]
impl SwiGluLoops for MatricesTransposed {
    fn weight(&self, matrix: &[f32], [rows, _]: [usize; 2], [row, column]: [usize; 2]) -> f64 {
        f64::from(matrix[column * rows + row])
    }
}

/// uses every second row of a fused matrix for the gate instead of a half
///
/// Both layouts are in use. The product of each pair fits, but the pairs are wrong.
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

/// leaves out the last unit
///
/// A loop over pairs of units drops the one that remains, and usual sizes are even.
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

/// adds up products in lanes of four and forgets those that do not fill a lane
///
/// chunks_exact yields only full chunks, and the rest must be asked for. Sizes that are powers of 2 leave no remainder.
#[bug("feedforward/lane-tail-lost", named_by = "feedforward/forward-f64-loops")]
impl SwiGluLoops for LaneTailLost {
    fn inner(&self, products: &mut dyn ExactSizeIterator<Item = f64>) -> f64 {
        let n = products.len();
        Oracle.inner(&mut products.take(if n < 4 { n } else { n / 4 * 4 }))
    }
}

/// uses the gates of the batch's first token for all tokens
///
/// An index was left at 0, so a single token at a time comes out right.
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

/// replaces NaN by 0
///
/// When a loss became NaN, a nan_to_num made it go away, and now the weights learn from zeros.
#[bug("feedforward/nan-swallowed", named_by = "feedforward/tokens-are-independent")]
impl SwiGluLoops for NanSwallowed {
    fn between(&self, a: f64, b: f64) -> f64 {
        let z = Oracle.between(a, b);
        if z.is_nan() { 0.0 } else { z }
    }
}

/// uses the sigmoid's derivative for silu
///
/// σ(1 − σ) is what you know by heart, but silu is a product, whose slope is σ + aσ(1 − σ).
#[bug("feedforward/slope-of-the-sigmoid", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for SlopeOfTheSigmoid {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 - open)
    }
}

/// uses σ(a) as the derivative of silu
///
/// This treats the gate as a constant, which is half of the product rule.
#[bug("feedforward/slope-without-its-rest", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeWithoutItsRest {
    fn slope(&self, a: f64) -> f64 {
        self.sigmoid(a)
    }
}

/// subtracts a(1 − σ(a)) in the derivative of silu
///
/// A sign was lost between paper and code, and at 0 both are ½.
#[bug("feedforward/slope-sign", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeSign {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 - a * (1.0 - open))
    }
}

/// computes the derivative from silu(a) instead of a
///
/// The forward pass had saved only silu(a).
#[bug("feedforward/slope-of-silu-of-silu", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for SlopeOfSiluOfSilu {
    fn slope(&self, a: f64) -> f64 {
        let open = self.sigmoid(a);
        open * (1.0 + self.silu(a) * (1.0 - open))
    }
}

/// treats the gate as a constant, so that W₁ gets no gradient
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
/// In a product each factor's gradient contains the other one, which was 1 in the test.
#[bug("feedforward/da-without-up", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for DaWithoutUp {
    fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.slope(a)
    }
}

/// multiplies by W₁x instead of silu(W₁x) in the gradient of W₃
///
/// Both were named gate.
#[bug("feedforward/db-of-the-gate", named_by = "feedforward/gradient-along-the-weights")]
impl SwiGluLoops for DbOfTheGate {
    fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * a
    }
}

/// multiplies by σ(a) instead of silu(a) in the gradient of W₃
///
/// The sigmoid was saved for the derivative, and used here too.
#[bug("feedforward/db-is-open", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for DbIsOpen {
    fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
        dz * self.sigmoid(a)
    }
}

/// forgets what x receives through the gate
///
/// x is used twice, and one gradient overwrote the other.
#[bug("feedforward/dx-through-up-only", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for DxThroughUpOnly {
    fn dx(&self, _: f64, through_up: f64) -> f64 {
        through_up
    }
}

/// forgets what x receives through W₃
///
/// x is used twice, and one of the two was a copy without a tape.
#[bug("feedforward/dx-through-gate-only", named_by = "feedforward/gradient-differences")]
impl SwiGluLoops for DxThroughGateOnly {
    fn dx(&self, through_gate: f64, _: f64) -> f64 {
        through_gate
    }
}

/// swaps the gradients of W₁ and W₃
///
/// The two results have the same shape, and were returned in the wrong order.
#[bug("feedforward/gradients-exchanged", named_by = "feedforward/gradient-at-a-closed-gate")]
impl SwiGluLoops for GradientsExchanged {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let out = Oracle.passes(case, dy);
        Passes { dgate: out.dup.clone(), dup: out.dgate.clone(), ..out }
    }
}

/// averages the gradients of the weights over the tokens instead of summing them
///
/// The mean belongs to the loss, and with one token there is no difference.
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

/// keeps only the last token's part of the gradients of the weights
///
/// It was assigned instead of added.
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
/// Each batch row has its product, but all share one place.
#[bug("feedforward/last-batch-only", named_by = "feedforward/gradient-of-the-gate")]
impl SwiGluLoops for LastBatchOnly {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, (b - 1) * s..b * s);
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// adds up only the first eight tokens for the gradients of the weights
///
/// A block of tokens is added in one step, but the loop over the blocks is missing.
#[bug("feedforward/eight-tokens", named_by = "feedforward/gradient-of-down")]
impl SwiGluLoops for EightTokens {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, 0..(b * s).min(8));
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// adds up the gradients of the weights in blocks of 128 tokens and loses the last one if it is not full
///
/// Each block gets a partial sum, and there are tokens / 128 of them. A few tokens take the simple path, which is right.
#[bug("feedforward/block-lost", named_by = "feedforward/gradient-of-the-gate")]
impl SwiGluLoops for BlockLost {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let [b, s, _] = case.shape;
        let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, 0..in_full_blocks(b * s));
        Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
    }
}

/// returns the gradient of W₂ transposed
///
/// dyᵀz was written for zᵀdy, which has as many numbers in another order.
#[bug("feedforward/down-transposed-back", named_by = "feedforward/gradient-along-the-weights")]
impl SwiGluLoops for DownTransposedBack {
    fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
        let out = Oracle.passes(case, dy);
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let ddown = (0..f * h).map(|i| out.ddown[i % h * f + i / h]).collect();
        Passes { ddown, ..out }
    }
}

/// uses silu(a) alone as z in the gradient of W₂
///
/// z is the product of both branches, but only one of them was saved.
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
