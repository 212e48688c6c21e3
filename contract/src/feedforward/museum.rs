//! Bugs of SwiGLU.

use crate::component::Bug;
use crate::feedforward::interface::{SizeCase, SwiGlu, SwiGluCase};
use crate::feedforward::oracle::{Passes, SwiGluLoops, implementation};
use crate::oracle::Oracle;
use crate::oracle::blocks::*;
use std::ops::Range;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl SwiGluLoops for $name { $($steps)* }
        || -> Box<dyn SwiGlu> { implementation($name) }
    }};
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

/// All of them.
pub static BUGS: &[Bug<dyn SwiGlu>] = &[
    Bug {
        id: "feedforward/size-four-h",
        misconception: "takes 4h, without the two thirds",
        story: "SwiGLU has three matrices where other networks have two. With 4h it is half as large \
                again, and it learns a little better: nobody complains.",
        source: None,
        named_by: "feedforward/size-of-llama",
        implementation: bug!(SizeFourH {
            fn two_thirds(&self, hidden_size: usize) -> usize {
                4 * hidden_size
            }
        }),
    },
    Bug {
        id: "feedforward/size-two-thirds-twice",
        misconception: "takes two thirds twice",
        story: "The size of the configuration had them already, and the layer took them once more. The \
                network is a third smaller than it says.",
        source: Some("GPT-NeoX pull request 1309"),
        named_by: "feedforward/size-of-llama",
        implementation: bug!(SizeTwoThirdsTwice {
            fn two_thirds(&self, hidden_size: usize) -> usize {
                Oracle.two_thirds(hidden_size) * 2 / 3
            }
        }),
    },
    Bug {
        id: "feedforward/size-rounded-down",
        misconception: "rounds down to the multiple",
        story: "The quotient of whole numbers is cut, and so is the size.",
        source: None,
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizeRoundedDown {
            fn rounded(&self, size: usize, multiple_of: usize) -> usize {
                size / multiple_of * multiple_of
            }
        }),
    },
    Bug {
        id: "feedforward/size-rounded-to-nearest",
        misconception: "rounds to the nearest multiple, not up",
        story: "round was called where ceil was meant. For the sizes of some models both give the same.",
        source: Some("fms-fsdp pull request 52"),
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizeRoundedToNearest {
            fn rounded(&self, size: usize, multiple_of: usize) -> usize {
                (size + multiple_of / 2) / multiple_of * multiple_of
            }
        }),
    },
    Bug {
        id: "feedforward/size-always-up",
        misconception: "goes to the next multiple, also from one",
        story: "size / m + 1, times m. Only a size that is a multiple already shows it.",
        source: None,
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizeAlwaysUp {
            fn rounded(&self, size: usize, multiple_of: usize) -> usize {
                (size / multiple_of + 1) * multiple_of
            }
        }),
    },
    Bug {
        id: "feedforward/size-power-of-two",
        misconception: "rounds up to a power of 2",
        story: "The multiples in use are powers of 2, and so was the size made.",
        source: None,
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizePowerOfTwo {
            fn rounded(&self, size: usize, multiple_of: usize) -> usize {
                size.next_power_of_two().max(multiple_of)
            }
        }),
    },
    Bug {
        id: "feedforward/size-not-rounded",
        misconception: "does not round to a multiple",
        story: "The two thirds were enough, it seemed. Kernels that need whole tiles get slow, and no \
                number is wrong.",
        source: None,
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizeNotRounded {
            fn rounded(&self, size: usize, _: usize) -> usize {
                size
            }
        }),
    },
    Bug {
        id: "feedforward/size-two-thirds-rounded",
        misconception: "rounds two thirds to the nearest whole number, not down",
        story: "int() cuts, round() does not. The multiple hides it nearly always.",
        source: None,
        named_by: "feedforward/size-any",
        implementation: bug!(SizeTwoThirdsRounded {
            fn two_thirds(&self, hidden_size: usize) -> usize {
                (8.0 * hidden_size as f64 / 3.0).round() as usize
            }
        }),
    },
    Bug {
        id: "feedforward/size-four-times-two-thirds",
        misconception: "takes two thirds of h first, cuts them, and multiplies by 4",
        story: "On paper the order does not matter. Cut to whole numbers, it does.",
        source: None,
        named_by: "feedforward/size-is-a-multiple",
        implementation: bug!(SizeFourTimesTwoThirds {
            fn two_thirds(&self, hidden_size: usize) -> usize {
                2 * hidden_size / 3 * 4
            }
        }),
    },
    Bug {
        id: "feedforward/size-multiplier-first",
        misconception: "multiplies 4h, and takes two thirds of that",
        story: "On paper the order does not matter. Each step cuts to a whole number, so now and then it \
                is off by one.",
        source: None,
        named_by: "feedforward/size-any",
        implementation: bug!(SizeMultiplierFirst {
            fn size(&self, case: &SizeCase) -> usize {
                let size = self.multiplied(4 * case.hidden_size, case.multiplier);
                self.rounded(2 * size / 3, case.multiple_of)
            }
        }),
    },
    Bug {
        id: "feedforward/size-multiplier-ignored",
        misconception: "leaves the multiplier out",
        story: "It is None in the smaller models, so it was never read.",
        source: None,
        named_by: "feedforward/size-of-llama",
        implementation: bug!(SizeMultiplierIgnored {
            fn multiplied(&self, size: usize, _: Option<f64>) -> usize {
                size
            }
        }),
    },
    Bug {
        id: "feedforward/size-multiplier-last",
        misconception: "multiplies after rounding up",
        story: "The result is no multiple any more.",
        source: None,
        named_by: "feedforward/size-of-llama",
        implementation: bug!(SizeMultiplierLast {
            fn size(&self, case: &SizeCase) -> usize {
                let rounded = self.rounded(self.two_thirds(case.hidden_size), case.multiple_of);
                self.multiplied(rounded, case.multiplier)
            }
        }),
    },
    Bug {
        id: "feedforward/size-multiplier-whole",
        misconception: "cuts the multiplier itself to a whole number",
        story: "int(1.3) is 1. With 1 and 2 it is right.",
        source: None,
        named_by: "feedforward/size-of-llama",
        implementation: bug!(SizeMultiplierWhole {
            fn multiplied(&self, size: usize, multiplier: Option<f64>) -> usize {
                multiplier.map_or(size, |multiplier| multiplier as usize * size)
            }
        }),
    },
    Bug {
        id: "feedforward/silu-on-up",
        misconception: "takes silu of W₃x, and multiplies by W₁x",
        story: "The two matrices have one shape, and the product does not tell which factor was bent. A \
                file that was loaded with both exchanged does the same.",
        source: Some("mlx-lm pull request 767"),
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(SiluOnUp {
            fn between(&self, a: f64, b: f64) -> f64 {
                a * self.silu(b)
            }
            fn da(&self, dz: f64, _: f64, b: f64) -> f64 {
                dz * self.silu(b)
            }
            fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
                dz * a * self.slope(b)
            }
        }),
    },
    Bug {
        id: "feedforward/silu-of-the-product",
        misconception: "takes silu of the product of both branches",
        story: "A bracket was closed too late.",
        source: Some("breakdown-minimind issue 3"),
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(SiluOfTheProduct {
            fn between(&self, a: f64, b: f64) -> f64 {
                self.silu(a * b)
            }
            fn da(&self, dz: f64, a: f64, b: f64) -> f64 {
                dz * b * self.slope(a * b)
            }
            fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
                dz * a * self.slope(a * b)
            }
        }),
    },
    Bug {
        id: "feedforward/silu-on-both",
        misconception: "takes silu of both branches",
        story: "One activation was written for both halves of a fused matrix, before it was cut.",
        source: None,
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(SiluOnBoth {
            fn between(&self, a: f64, b: f64) -> f64 {
                self.silu(a) * self.silu(b)
            }
            fn db(&self, dz: f64, a: f64, b: f64) -> f64 {
                dz * self.silu(a) * self.slope(b)
            }
            fn da(&self, dz: f64, a: f64, b: f64) -> f64 {
                dz * self.silu(b) * self.slope(a)
            }
        }),
    },
    Bug {
        id: "feedforward/no-gate",
        misconception: "leaves W₃ out: silu(W₁x) alone",
        story: "The name SwiGLU was looked up in a table of activations, and silu was found.",
        source: Some("timesfm issue 493"),
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(NoGate {
            fn between(&self, a: f64, _: f64) -> f64 {
                self.silu(a)
            }
            fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
                dz * self.slope(a)
            }
            fn db(&self, _: f64, _: f64, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "feedforward/gate-added",
        misconception: "adds the two branches instead of multiplying them",
        story: "A residual was in mind. The shapes fit.",
        source: None,
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(GateAdded {
            fn between(&self, a: f64, b: f64) -> f64 {
                self.silu(a) + b
            }
            fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
                dz * self.slope(a)
            }
            fn db(&self, dz: f64, _: f64, _: f64) -> f64 {
                dz
            }
        }),
    },
    Bug {
        id: "feedforward/no-silu",
        misconception: "multiplies the two branches plainly",
        story: "The activation was lost in a rewrite. The network can still learn: a product is not \
                linear.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(NoSilu {
            fn silu(&self, a: f64) -> f64 {
                a
            }
            fn slope(&self, _: f64) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "feedforward/sigmoid-for-silu",
        misconception: "opens the gate by the sigmoid alone, which is the first GLU",
        story: "σ(a) for a·σ(a). The letter in front was taken for a scale.",
        source: None,
        named_by: "feedforward/closed-gate",
        implementation: bug!(SigmoidForSilu {
            fn silu(&self, a: f64) -> f64 {
                self.sigmoid(a)
            }
            fn slope(&self, a: f64) -> f64 {
                self.sigmoid(a) * (1.0 - self.sigmoid(a))
            }
        }),
    },
    Bug {
        id: "feedforward/relu-for-silu",
        misconception: "takes relu for silu",
        story: "The activation of an older configuration. Far from 0 both are alike.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(ReluForSilu {
            fn silu(&self, a: f64) -> f64 {
                a.max(0.0)
            }
            fn slope(&self, a: f64) -> f64 {
                if a > 0.0 { 1.0 } else { 0.0 }
            }
        }),
    },
    Bug {
        id: "feedforward/gelu-for-silu",
        misconception: "takes gelu for silu",
        story: "GEGLU is another member of the family, and the curves lie close together: the model \
                still speaks.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(GeluForSilu {
            fn silu(&self, a: f64) -> f64 {
                a * gelu_gate(a)
            }
            fn slope(&self, a: f64) -> f64 {
                let step = 1e-6;
                (self.silu(a + step) - self.silu(a - step)) / (2.0 * step)
            }
        }),
    },
    Bug {
        id: "feedforward/sigmoid-of-1702",
        misconception: "takes the sigmoid of 1.702·a",
        story: "That is a fast form of gelu, which CLIP has.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(SigmoidOf1702 {
            fn silu(&self, a: f64) -> f64 {
                a * Oracle.sigmoid(1.702 * a)
            }
            fn slope(&self, a: f64) -> f64 {
                let open = Oracle.sigmoid(1.702 * a);
                open * (1.0 + 1.702 * a * (1.0 - open))
            }
        }),
    },
    Bug {
        id: "feedforward/hard-silu",
        misconception: "takes pieces of straight lines for the sigmoid",
        story: "Hard swish was made for phones. It is off by up to a tenth.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(HardSilu {
            fn sigmoid(&self, a: f64) -> f64 {
                (a / 6.0 + 0.5).clamp(0.0, 1.0)
            }
        }),
    },
    Bug {
        id: "feedforward/sign-of-exp",
        misconception: "forgets the minus in exp(−a)",
        story: "The gate opens where it should shut.",
        source: None,
        named_by: "feedforward/silu-by-numbers",
        implementation: bug!(SignOfExp {
            fn sigmoid(&self, a: f64) -> f64 {
                Oracle.sigmoid(-a)
            }
        }),
    },
    Bug {
        id: "feedforward/exp-overflows",
        misconception: "computes the sigmoid as exp(a) / (1 + exp(a)) in f32",
        story: "It is the same on paper. From a = 89 on it is ∞ / ∞, which is NaN.",
        source: None,
        named_by: "feedforward/open-gate",
        implementation: bug!(ExpOverflows {
            fn sigmoid(&self, a: f64) -> f64 {
                let exp = (a as f32).exp();
                if exp.is_infinite() { f64::NAN } else { Oracle.sigmoid(a) }
            }
        }),
    },
    Bug {
        id: "feedforward/gate-clipped",
        misconception: "clips W₁x at 7",
        story: "Some models are trained so, and their code was taken over. Small inputs do not show it.",
        source: None,
        named_by: "feedforward/open-gate",
        implementation: bug!(GateClipped {
            fn silu(&self, a: f64) -> f64 {
                let a = a.min(7.0);
                a * self.sigmoid(a)
            }
            fn slope(&self, a: f64) -> f64 {
                if a > 7.0 { 0.0 } else { Oracle.slope(a) }
            }
        }),
    },
    Bug {
        id: "feedforward/matrices-transposed",
        misconception: "reads the matrices column by column",
        story: "A file of another framework keeps its weights the other way round, and a reshape made \
                them fit.",
        source: None,
        named_by: "feedforward/forward-f64-loops",
        implementation: bug!(MatricesTransposed {
            fn weight(
                &self,
                matrix: &[f32],
                [rows, _]: [usize; 2],
                [row, column]: [usize; 2],
            ) -> f64 {
                f64::from(matrix[column * rows + row])
            }
        }),
    },
    Bug {
        id: "feedforward/interleaved",
        misconception: "takes every second row of a fused matrix for the gate, where the halves are meant",
        story: "Both layouts are in use. The product of each pair fits, and the pairs are wrong.",
        source: None,
        named_by: "feedforward/linear-in-up-and-down",
        implementation: bug!(Interleaved {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
                let fused = [&case.gate[..], &case.up[..]].concat();
                let every = |odd: usize| -> Vec<f32> {
                    (0..f).flat_map(|k| fused[(2 * k + odd) * h..][..h].to_vec()).collect()
                };
                let case = SwiGluCase { gate: every(0), up: every(1), ..case.clone() };
                let mut out = Oracle.passes(&case, dy);
                let rows = |of: [&Vec<f64>; 2]| -> Vec<f64> {
                    (0..2 * f)
                        .flat_map(|row| of[row % 2][row / 2 * h..][..h].to_vec())
                        .collect()
                };
                let mut fused = rows([&out.dgate, &out.dup]);
                out.dup = fused.split_off(f * h);
                out.dgate = fused;
                out
            }
        }),
    },
    Bug {
        id: "feedforward/last-unit-lost",
        misconception: "leaves the last unit out",
        story: "A loop over pairs of units drops the one that is left. Usual sizes are even.",
        source: None,
        named_by: "feedforward/units-permute",
        implementation: bug!(LastUnitLost {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let f = case.ffn_hidden_size;
                let mut case = case.clone();
                if f % 2 == 1 {
                    case.down.chunks_mut(f).for_each(|row| row[f - 1] = 0.0);
                }
                Oracle.passes(&case, dy)
            }
        }),
    },
    Bug {
        id: "feedforward/lane-tail-lost",
        misconception: "adds products in lanes of four and forgets those that fill no lane",
        story: "chunks_exact gives full chunks only; the rest has to be asked for. Sizes that are powers \
                of 2 have no rest.",
        source: None,
        named_by: "feedforward/forward-f64-loops",
        implementation: bug!(LaneTailLost {
            fn inner(&self, products: &mut dyn ExactSizeIterator<Item = f64>) -> f64 {
                let n = products.len();
                Oracle.inner(&mut products.take(if n < 4 { n } else { n / 4 * 4 }))
            }
        }),
    },
    Bug {
        id: "feedforward/first-tokens-gate",
        misconception: "opens the gates of all tokens as the first one of the batch says",
        story: "An index was left at 0. One token at a time, it is right.",
        source: None,
        named_by: "feedforward/tokens-are-independent",
        implementation: bug!(FirstTokensGate {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
                for i in 0..out.y.len() {
                    let (row, j) = (i / h, i % h);
                    let unit = |k: usize| {
                        f64::from(case.down[j * f + k])
                            * Oracle.between(out.a[k], out.b[row * f + k])
                    };
                    out.y[i] = (0..f).map(unit).sum();
                }
                out
            }
        }),
    },
    Bug {
        id: "feedforward/nan-swallowed",
        misconception: "turns NaN into 0",
        story: "A loss had become NaN, and a nan_to_num ended that. The weights go on learning from \
                zeros.",
        source: None,
        named_by: "feedforward/tokens-are-independent",
        implementation: bug!(NanSwallowed {
            fn between(&self, a: f64, b: f64) -> f64 {
                let z = Oracle.between(a, b);
                if z.is_nan() { 0.0 } else { z }
            }
        }),
    },
    Bug {
        id: "feedforward/slope-of-the-sigmoid",
        misconception: "takes the slope of the sigmoid for that of silu",
        story: "σ(1 − σ) is what one knows by heart. The factor a was forgotten on the way back.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(SlopeOfTheSigmoid {
            fn slope(&self, a: f64) -> f64 {
                let open = self.sigmoid(a);
                open * (1.0 - open)
            }
        }),
    },
    Bug {
        id: "feedforward/slope-without-its-rest",
        misconception: "takes σ(a) for the slope of silu",
        story: "The gate was taken for a constant: half of the product rule.",
        source: None,
        named_by: "feedforward/gradient-differences",
        implementation: bug!(SlopeWithoutItsRest {
            fn slope(&self, a: f64) -> f64 {
                self.sigmoid(a)
            }
        }),
    },
    Bug {
        id: "feedforward/slope-sign",
        misconception: "subtracts a(1 − σ(a)) in the slope of silu",
        story: "A sign was lost between paper and code. At 0 both are ½.",
        source: None,
        named_by: "feedforward/gradient-differences",
        implementation: bug!(SlopeSign {
            fn slope(&self, a: f64) -> f64 {
                let open = self.sigmoid(a);
                open * (1.0 - a * (1.0 - open))
            }
        }),
    },
    Bug {
        id: "feedforward/slope-of-silu-of-silu",
        misconception: "computes the slope from silu(a) where a is meant",
        story: "The forward pass had kept silu(a) and no more.",
        source: None,
        named_by: "feedforward/gradient-differences",
        implementation: bug!(SlopeOfSiluOfSilu {
            fn slope(&self, a: f64) -> f64 {
                let open = self.sigmoid(a);
                open * (1.0 + self.silu(a) * (1.0 - open))
            }
        }),
    },
    Bug {
        id: "feedforward/gate-is-constant",
        misconception: "takes the gate for a constant: W₁ gets no gradient",
        story: "It was computed from a copy without a tape.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(GateIsConstant {
            fn da(&self, _: f64, _: f64, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "feedforward/da-without-up",
        misconception: "forgets the factor W₃x in the gradient of the gate",
        story: "One factor of a product stands in the gradient of the other. It was 1 in the test.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(DaWithoutUp {
            fn da(&self, dz: f64, a: f64, _: f64) -> f64 {
                dz * self.slope(a)
            }
        }),
    },
    Bug {
        id: "feedforward/db-of-the-gate",
        misconception: "multiplies by W₁x where silu(W₁x) is meant, in the gradient of W₃",
        story: "The name gate stood for both.",
        source: None,
        named_by: "feedforward/gradient-along-the-weights",
        implementation: bug!(DbOfTheGate {
            fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
                dz * a
            }
        }),
    },
    Bug {
        id: "feedforward/db-is-open",
        misconception: "multiplies by σ(a) where silu(a) is meant, in the gradient of W₃",
        story: "The sigmoid was kept for the slope, and used here too.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(DbIsOpen {
            fn db(&self, dz: f64, a: f64, _: f64) -> f64 {
                dz * self.sigmoid(a)
            }
        }),
    },
    Bug {
        id: "feedforward/dx-through-up-only",
        misconception: "forgets what comes to x through the gate",
        story: "x is used twice, and one gradient overwrote the other.",
        source: None,
        named_by: "feedforward/gradient-differences",
        implementation: bug!(DxThroughUpOnly {
            fn dx(&self, _: f64, through_up: f64) -> f64 {
                through_up
            }
        }),
    },
    Bug {
        id: "feedforward/dx-through-gate-only",
        misconception: "forgets what comes to x through W₃",
        story: "x is used twice, and one of both was a copy without a tape.",
        source: None,
        named_by: "feedforward/gradient-differences",
        implementation: bug!(DxThroughGateOnly {
            fn dx(&self, through_gate: f64, _: f64) -> f64 {
                through_gate
            }
        }),
    },
    Bug {
        id: "feedforward/gradients-exchanged",
        misconception: "gives the gradient of W₁ to W₃, and that of W₃ to W₁",
        story: "Two results of one shape, in the wrong order.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(GradientsExchanged {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let out = Oracle.passes(case, dy);
                Passes { dgate: out.dup.clone(), dup: out.dgate.clone(), ..out }
            }
        }),
    },
    Bug {
        id: "feedforward/gradients-mean",
        misconception: "takes the mean over the tokens for the gradients of the weights, not the sum",
        story: "A mean is the business of the loss. With one token it is right.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(GradientsMean {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let mut out = Oracle.passes(case, dy);
                let tokens = (case.shape[0] * case.shape[1]) as f64;
                for sums in [&mut out.dgate, &mut out.dup, &mut out.ddown] {
                    sums.iter_mut().for_each(|sum| *sum /= tokens);
                }
                out
            }
        }),
    },
    Bug {
        id: "feedforward/last-token-only",
        misconception: "keeps the last token's part of the gradients of the weights only",
        story: "An assignment where a sum was meant.",
        source: None,
        named_by: "feedforward/gradient-at-a-closed-gate",
        implementation: bug!(LastTokenOnly {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let [b, s, _] = case.shape;
                let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, b * s - 1..b * s);
                Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "feedforward/last-batch-only",
        misconception: "sums the gradients of the weights over the last batch row only",
        story: "A product for each batch row, and one place for all of them.",
        source: None,
        named_by: "feedforward/gradient-of-the-gate",
        implementation: bug!(LastBatchOnly {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let [b, s, _] = case.shape;
                let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, (b - 1) * s..b * s);
                Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "feedforward/eight-tokens",
        misconception: "adds the first eight tokens only for the gradients of the weights",
        story: "A block of tokens was added in one step, and the loop over the blocks was missing.",
        source: None,
        named_by: "feedforward/gradient-of-down",
        implementation: bug!(EightTokens {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let [b, s, _] = case.shape;
                let Passes { dgate, dup, ddown, .. } = of_tokens(case, dy, 0..(b * s).min(8));
                Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "feedforward/block-lost",
        misconception: "adds the gradients of the weights up in blocks of 128 tokens and loses the last one if \
                it is not full",
        story: "A partial sum for each block, and tokens / 128 of them. Few tokens take the simple way \
                and are right.",
        source: None,
        named_by: "feedforward/gradient-of-the-gate",
        implementation: bug!(BlockLost {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let [b, s, _] = case.shape;
                let Passes { dgate, dup, ddown, .. } =
                    of_tokens(case, dy, 0..in_full_blocks(b * s));
                Passes { dgate, dup, ddown, ..Oracle.passes(case, dy) }
            }
        }),
    },
    Bug {
        id: "feedforward/down-transposed-back",
        misconception: "gives the gradient of W₂ transposed",
        story: "dyᵀz for zᵀdy: as many numbers, in another order.",
        source: None,
        named_by: "feedforward/gradient-along-the-weights",
        implementation: bug!(DownTransposedBack {
            fn passes(&self, case: &SwiGluCase, dy: &[f32]) -> Passes {
                let out = Oracle.passes(case, dy);
                let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
                let ddown = (0..f * h).map(|i| out.ddown[i % h * f + i / h]).collect();
                Passes { ddown, ..out }
            }
        }),
    },
    Bug {
        id: "feedforward/down-before-the-gate",
        misconception: "takes silu(a) alone for z in the gradient of W₂",
        story: "z is the product of both branches; only one of them was kept.",
        source: None,
        named_by: "feedforward/gradient-along-the-weights",
        implementation: bug!(DownBeforeTheGate {
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
        }),
    },
];
