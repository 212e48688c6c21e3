//! Bugs of more rotations.

use crate::component::Bug;
use crate::oracle::Oracle;
use crate::rotations::interface::{AxialCase, LinearCase, Rotations, Sections, XPosCase};
use crate::rotations::oracle::{Features, RotationsLoops, State, dot, implementation, section};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl RotationsLoops for $name { $($steps)* }
        || -> Box<dyn Rotations> { implementation($name) }
    }};
}

/// All of them.
pub static BUGS: &[Bug<dyn Rotations>] = &[
    Bug {
        id: "rotations/xpos-same-scale",
        misconception: "multiplies keys by the scale of queries",
        story: "One table was built and used twice. In a score both scales are there, so it depends on \
                the sum of the positions. Near position 0 nothing is seen.",
        source: None,
        named_by: "rotations/xpos-scales-cancel",
        implementation: bug!(XPosSameScale {
            fn key_scale(&self, zeta: f64, exponent: f64) -> f64 {
                zeta.powf(exponent)
            }
        }),
    },
    Bug {
        id: "rotations/xpos-signs-exchanged",
        misconception: "divides queries by the scale and multiplies keys",
        story: "The scales still cancel at distance 0, but a score now grows with the distance.",
        source: None,
        named_by: "rotations/xpos-fades",
        implementation: bug!(XPosSignsExchanged {
            fn query_scale(&self, zeta: f64, exponent: f64) -> f64 {
                zeta.powf(-exponent)
            }
            fn key_scale(&self, zeta: f64, exponent: f64) -> f64 {
                zeta.powf(exponent)
            }
        }),
    },
    Bug {
        id: "rotations/xpos-queries-only",
        misconception: "scales the queries and leaves the keys as they are",
        story: "A score then depends on the position of its query, and all rows of a late query become \
                small.",
        source: None,
        named_by: "rotations/xpos-scales-cancel",
        implementation: bug!(XPosQueriesOnly {
            fn key_scale(&self, _: f64, _: f64) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "rotations/xpos-centered-on-the-call",
        misconception: "counts the positions of the scales from the middle of each call",
        story: "In one call both sides have the same middle, which cancels. Keys that are kept from an \
                earlier call had another middle.",
        source: None,
        named_by: "rotations/xpos-relative",
        implementation: bug!(XPosCenteredOnTheCall {
            fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
                row as f64 - (case.shape[1] / 2) as f64
            }
        }),
    },
    Bug {
        id: "rotations/xpos-scale-without-offset",
        misconception: "counts the positions of the scales from the first row of each call",
        story: "The rotation knows the offset of a call with a cache, and the scale does not. Training \
                has no offset, so only generation is wrong.",
        source: Some(
            "lucidrains/rotary-embedding-torch issue 27: no offset for xPos with cached keys",
        ),
        named_by: "rotations/xpos-relative",
        implementation: bug!(XPosScaleWithoutOffset {
            fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
                row as f64 - case.center as f64
            }
        }),
    },
    Bug {
        id: "rotations/xpos-rotation-without-offset",
        misconception: "counts the positions of the rotation from the first row of each call",
        story: "The scale knows the offset, and the rotation does not: a new query meets the keys of a \
                cache as if it stood at their beginning.",
        source: None,
        named_by: "rotations/xpos-relative",
        implementation: bug!(XPosRotationWithoutOffset {
            fn xpos_position(&self, _: &XPosCase, row: usize) -> f64 {
                row as f64
            }
        }),
    },
    Bug {
        id: "rotations/xpos-center-forgotten",
        misconception: "takes 0 for the center",
        story: "Scores do not depend on the center, so nothing is seen until keys far from 0 overflow, \
                which the center should prevent.",
        source: None,
        named_by: "rotations/xpos-center",
        implementation: bug!(XPosCenterForgotten {
            fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
                (case.offset + row) as f64
            }
        }),
    },
    Bug {
        id: "rotations/xpos-share-of-the-planes",
        misconception: "takes i/d where the scale has 2i/d",
        story: "The index of a plane was taken for the index of a dimension. The last plane should \
                hardly fade, and fades by a third.",
        source: None,
        named_by: "rotations/xpos-by-numbers",
        implementation: bug!(XPosShareOfThePlanes {
            fn share(&self, i: usize, hd: usize) -> f64 {
                i as f64 / hd as f64
            }
        }),
    },
    Bug {
        id: "rotations/xpos-scale-base-forgotten",
        misconception: "fades by ζ at each position, not at each 512",
        story: "The exponent is the position itself. Beyond some ten positions the first plane is gone.",
        source: None,
        named_by: "rotations/xpos-fades",
        implementation: bug!(XPosScaleBaseForgotten {
            fn exponent(&self, case: &XPosCase, row: usize) -> f64 {
                self.scale_position(case, row)
            }
        }),
    },
    Bug {
        id: "rotations/xpos-gamma-not-divided",
        misconception: "adds 0.4 to the share and does not divide by 1.4",
        story: "The last plane then has a scale above 1: queries grow where they should shrink.",
        source: None,
        named_by: "rotations/xpos-by-numbers",
        implementation: bug!(XPosGammaNotDivided {
            fn zeta(&self, i: usize, hd: usize) -> f64 {
                self.share(i, hd) + 0.4
            }
        }),
    },
    Bug {
        id: "rotations/xpos-planes-reversed",
        misconception: "lets the slow planes fade fastest",
        story: "The list of scales was built from the other end. Then far tokens lose what tells their \
                distance, and keep what does not.",
        source: None,
        named_by: "rotations/xpos-by-numbers",
        implementation: bug!(XPosPlanesReversed {
            fn zeta(&self, i: usize, hd: usize) -> f64 {
                Oracle.zeta(hd / 2 - 1 - i, hd)
            }
        }),
    },
    Bug {
        id: "rotations/xpos-scales-of-pairs",
        misconception: "repeats each scale for neighbours, while the rotation is half-split",
        story: "Two layouts in one function: the two dimensions of a plane get scales of two planes, and \
                the rotation no longer cancels.",
        source: None,
        named_by: "rotations/xpos-by-numbers",
        implementation: bug!(XPosScalesOfPairs {
            fn scaled_as(&self, i: usize, side: usize, hd: usize) -> usize {
                (i + side * (hd / 2)) / 2
            }
        }),
    },
    Bug {
        id: "rotations/axial-rows-for-both",
        misconception: "turns both halves of the planes by the row",
        story: "A kernel read the first half of the table and used it for both halves of a head. In one \
                dimension the halves are equal, so it had always been right.",
        source: Some("Tencent/ncnn issue 6833"),
        named_by: "rotations/axial-sections-start-anew",
        implementation: bug!(AxialRowsForBoth {
            fn coordinate(&self, case: &AxialCase, row: usize, _: usize) -> f64 {
                Oracle.coordinate(case, row, 0)
            }
        }),
    },
    Bug {
        id: "rotations/axial-sections-take-turns",
        misconception: "lets the sections take turns, plane by plane",
        story: "Newer models do so. A library that had learned it used it for the older ones too, whose \
                sections are blocks.",
        source: Some("Blaizzy/mlx-vlm pull request 576"),
        named_by: "rotations/axial-rows-and-columns",
        implementation: bug!(AxialSectionsTakeTurns {
            fn axis(&self, case: &AxialCase, plane: usize) -> usize {
                plane % case.planes.len()
            }
        }),
    },
    Bug {
        id: "rotations/axial-frequencies-go-on",
        misconception: "lets the frequencies of the columns begin where those of the rows end",
        story: "That is right for sections of one list, and wrong for a direct sum: columns turn so \
                slowly that near ones look alike.",
        source: None,
        named_by: "rotations/axial-sections-start-anew",
        implementation: bug!(AxialFrequenciesGoOn {
            fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
                self.theta(plane, case.shape[3] / 2, case.base)
            }
        }),
    },
    Bug {
        id: "rotations/axial-list-begins-anew",
        misconception: "begins the frequencies anew in each section, also where one list is cut",
        story: "Text then turns otherwise than with RoPE, and a model that was trained on text has to \
                learn its positions again.",
        source: None,
        named_by: "rotations/axial-one-list",
        implementation: bug!(AxialListBeginsAnew {
            fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
                let [axis, place] = section(case, plane);
                self.theta(place, case.planes[axis], case.base)
            }
        }),
    },
    Bug {
        id: "rotations/axial-steps-of-the-head",
        misconception: "begins each section anew, with the steps of the whole head",
        story: "The frequencies of a section of p planes fall as if it had all d/2. The slow half of \
                them is missing.",
        source: None,
        named_by: "rotations/axial-sections-start-anew",
        implementation: bug!(AxialStepsOfTheHead {
            fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
                let place = match case.sections {
                    Sections::Anew => section(case, plane)[1],
                    Sections::OneList => plane,
                };
                self.theta(place, case.shape[3] / 2, case.base)
            }
        }),
    },
    Bug {
        id: "rotations/axial-coordinates-reversed",
        misconception: "takes the coordinates in the other order: columns first",
        story: "Which comes first is a convention, and models differ. With weights of the other one an \
                image is seen as its mirror at the diagonal.",
        source: Some(
            "Meituan-AutoML/VisionLLaMA issue 4 asks about it; ggml-org/llama.cpp pull request 13282, where two models differ",
        ),
        named_by: "rotations/axial-rows-and-columns",
        implementation: bug!(AxialCoordinatesReversed {
            fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
                Oracle.coordinate(case, row, case.planes.len() - 1 - axis)
            }
        }),
    },
    Bug {
        id: "rotations/axial-last-two-exchanged",
        misconception: "exchanges the coordinates 1 and 2 where there are three",
        story: "Time, height and width became time, width and height. With two coordinates all is well.",
        source: None,
        named_by: "rotations/axial-any-input",
        implementation: bug!(AxialLastTwoExchanged {
            fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
                let exchanged = if case.planes.len() == 3 { [0, 2, 1][axis] } else { axis };
                Oracle.coordinate(case, row, exchanged)
            }
        }),
    },
    Bug {
        id: "rotations/axial-number-of-the-token",
        misconception: "turns all planes by the number of the token",
        story: "The coordinates were computed and not handed on, so a picture is a text, line after \
                line. The patch below is as far as a whole line.",
        source: None,
        named_by: "rotations/axial-origin",
        implementation: bug!(AxialNumberOfTheToken {
            fn coordinate(&self, _: &AxialCase, row: usize, _: usize) -> f64 {
                row as f64
            }
        }),
    },
    Bug {
        id: "rotations/axial-counts-from-one",
        misconception: "counts rows and columns from 1",
        story: "Scores do not change: only differences are in them. It shows where keys meet those of a \
                library that counts from 0.",
        source: None,
        named_by: "rotations/axial-origin",
        implementation: bug!(AxialCountsFromOne {
            fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
                Oracle.coordinate(case, row, axis) + 1.0
            }
        }),
    },
    Bug {
        id: "rotations/axial-second-zeroed",
        misconception: "takes 0 for the second coordinate",
        story: "A line meant for the first coordinate of a still picture stood one line too low.",
        source: Some("vllm-project/vllm pull request 29425: the height of another model's tokens"),
        named_by: "rotations/axial-rows-and-columns",
        implementation: bug!(AxialSecondZeroed {
            fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
                if axis == 1 { 0.0 } else { Oracle.coordinate(case, row, axis) }
            }
        }),
    },
    Bug {
        id: "rotations/axial-sections-in-dimensions",
        misconception: "counts sections in dimensions of the head, not in planes",
        story: "The numbers of a section were doubled for a table that has each plane twice, and then \
                cut the table that has it once. The last coordinate turns nothing.",
        source: None,
        named_by: "rotations/axial-rows-and-columns",
        implementation: bug!(AxialSectionsInDimensions {
            fn axis(&self, case: &AxialCase, plane: usize) -> usize {
                section(case, plane / 2)[0]
            }
        }),
    },
    Bug {
        id: "rotations/axial-pairs-in-sections",
        misconception: "pairs the dimensions within each section's part of the head, not over the whole",
        story: "Each section is a RoPE of its own on a slice of the head. It is a layout, and right with \
                weights of that layout.",
        source: None,
        named_by: "rotations/axial-sections-start-anew",
        implementation: bug!(AxialPairsInSections {
            fn axial_pair(&self, case: &AxialCase, plane: usize) -> [usize; 2] {
                let [axis, place] = section(case, plane);
                let before: usize = case.planes[..axis].iter().sum();
                [2 * before + place, 2 * before + case.planes[axis] + place]
            }
        }),
    },
    Bug {
        id: "rotations/axial-sum-of-coordinates",
        misconception: "turns every plane by the sum of the coordinates",
        story: "Tables for rows and for columns were added before the cosine. All patches on one \
                diagonal have the same position.",
        source: None,
        named_by: "rotations/axial-rows-and-columns",
        implementation: bug!(AxialSumOfCoordinates {
            fn coordinate(&self, case: &AxialCase, row: usize, _: usize) -> f64 {
                (0..case.planes.len()).map(|axis| Oracle.coordinate(case, row, axis)).sum()
            }
        }),
    },
    Bug {
        id: "rotations/axial-scaled-to-the-picture",
        misconception: "measures coordinates in 16ths of the largest one",
        story: "Each picture is brought to one size, so that large ones turn no further than small ones. \
                Some models are trained so. But a patch that comes later changes all angles, and a score \
                depends on where the picture ends.",
        source: None,
        named_by: "rotations/axial-relative",
        implementation: bug!(AxialScaledToThePicture {
            fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
                let largest = case.coordinates.iter().copied().max().unwrap_or(0).max(1);
                Oracle.coordinate(case, row, axis) * 16.0 / largest as f64
            }
        }),
    },
    Bug {
        id: "rotations/axial-gradient-turns-on",
        misconception: "turns the gradient in the direction of the forward pass",
        story: "Forward is right, lengths are right, and training is slow.",
        source: None,
        named_by: "rotations/axial-gradient-turns-back",
        implementation: bug!(AxialGradientTurnsOn {
            fn turn_back(&self, dy: [f64; 2], angle: f64) -> [f64; 2] {
                self.turn(dy, angle)
            }
        }),
    },
    Bug {
        id: "rotations/axial-gradient-not-turned",
        misconception: "lets the gradient through as it is",
        story: "A rotation without a backward pass, taken for a constant.",
        source: None,
        named_by: "rotations/axial-gradient-turns-back",
        implementation: bug!(AxialGradientNotTurned {
            fn turn_back(&self, dy: [f64; 2], _: f64) -> [f64; 2] {
                dy
            }
        }),
    },
    Bug {
        id: "rotations/linear-denominator-turned",
        misconception: "turns the denominator too",
        story: "Queries and keys were turned once, at the top. The sum of turned products can be 0 or \
                below: then the result is huge or has the wrong sign.",
        source: None,
        named_by: "rotations/linear-numerator-alone",
        implementation: bug!(LinearDenominatorTurned {
            fn in_denominator(&self, case: &LinearCase, head: &[f64], position: usize) -> Vec<f64> {
                self.in_numerator(case, head, position)
            }
        }),
    },
    Bug {
        id: "rotations/linear-phi-missing",
        misconception: "leaves out φ",
        story: "Products of plain queries and keys have any sign, and so have their sums.",
        source: None,
        named_by: "rotations/linear-phi-by-numbers",
        implementation: bug!(LinearPhiMissing {
            fn phi(&self, x: f64) -> f64 {
                x
            }
            fn slope(&self, _: f64) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "rotations/linear-phi-after-rotation",
        misconception: "turns queries and keys first, and takes φ of that",
        story: "All weights are positive then, and no denominator is in danger. But a product of such \
                features does not depend on the distance alone.",
        source: None,
        named_by: "rotations/linear-relative",
        implementation: bug!(LinearPhiAfterRotation {
            fn in_numerator(&self, case: &LinearCase, head: &[f64], position: usize) -> Vec<f64> {
                let turned = self.turned(case, head, position as f64);
                turned.into_iter().map(|x| self.phi(x)).collect()
            }
        }),
    },
    Bug {
        id: "rotations/linear-relu",
        misconception: "takes relu for φ",
        story: "A query with no positive element has only weights of 0, and divides 0 by 0.",
        source: None,
        named_by: "rotations/linear-phi-by-numbers",
        implementation: bug!(LinearRelu {
            fn phi(&self, x: f64) -> f64 {
                x.max(0.0)
            }
            fn slope(&self, x: f64) -> f64 {
                if x > 0.0 { 1.0 } else { 0.0 }
            }
        }),
    },
    Bug {
        id: "rotations/linear-elu-alone",
        misconception: "takes elu for φ, without the 1",
        story: "The sums of weights can be 0 then, or below.",
        source: None,
        named_by: "rotations/linear-phi-by-numbers",
        implementation: bug!(LinearEluAlone {
            fn phi(&self, x: f64) -> f64 {
                if x > 0.0 { x } else { x.exp() - 1.0 }
            }
        }),
    },
    Bug {
        id: "rotations/linear-exp-for-phi",
        misconception: "takes exp for φ, also above 0",
        story: "Below 0 it is the same. It is positive too, and overflows where elu + 1 grows by 1 a \
                step.",
        source: None,
        named_by: "rotations/linear-phi-by-numbers",
        implementation: bug!(LinearExpForPhi {
            fn phi(&self, x: f64) -> f64 {
                x.exp()
            }
            fn slope(&self, x: f64) -> f64 {
                x.exp()
            }
        }),
    },
    Bug {
        id: "rotations/linear-future-seen",
        misconception: "sums over all keys, also those after the query",
        story: "The form without a mask, from a model that reads whole texts.",
        source: None,
        named_by: "rotations/linear-causal",
        implementation: bug!(LinearFutureSeen {
            fn sees(&self, _: usize, _: usize) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "rotations/linear-own-key-hidden",
        misconception: "sums over the keys before the query, without its own",
        story: "The first query sees nothing, and divides 0 by 0.",
        source: None,
        named_by: "rotations/linear-first-token",
        implementation: bug!(LinearOwnKeyHidden {
            fn sees(&self, m: usize, n: usize) -> bool {
                n < m
            }
        }),
    },
    Bug {
        id: "rotations/linear-denominator-of-all",
        misconception: "sums the denominator over all keys",
        story: "The mask was applied to the weights, and the denominator is a sum of its own.",
        source: None,
        named_by: "rotations/linear-causal",
        implementation: bug!(LinearDenominatorOfAll {
            fn denominator(&self, features: &Features, [b, m, head]: [usize; 3]) -> f64 {
                let q = features.head(&features.q, [b, m, head]);
                (0..features.shape[1]).map(|n| dot(q, features.head(&features.k, [b, n, head]))).sum()
            }
        }),
    },
    Bug {
        id: "rotations/linear-denominator-over-heads",
        misconception: "adds up the keys of the denominator over the heads, not over the tokens",
        story: "The axes of a list were exchanged by a change elsewhere, and a running sum went along \
                the axis that was now there.",
        source: Some("fla-org/flash-linear-attention pull request 594 and issue 850"),
        named_by: "rotations/linear-heads-are-apart",
        implementation: bug!(LinearDenominatorOverHeads {
            fn denominator(&self, features: &Features, [b, m, head]: [usize; 3]) -> f64 {
                let q = features.head(&features.q, [b, m, head]);
                (0..=head).map(|h| dot(q, features.head(&features.k, [b, m, h]))).sum()
            }
        }),
    },
    Bug {
        id: "rotations/linear-divided-by-the-count",
        misconception: "divides by the number of keys",
        story: "A mean of the values, weighed by numbers that have no sum of 1. A norm behind it hides \
                it.",
        source: None,
        named_by: "rotations/linear-constant-values",
        implementation: bug!(LinearDividedByTheCount {
            fn quotient(&self, numerator: f64, _: f64, m: usize) -> f64 {
                numerator / (m + 1) as f64
            }
        }),
    },
    Bug {
        id: "rotations/linear-not-divided",
        misconception: "does not divide at all",
        story: "Results grow with the length of the text. Many later models do so, with a norm behind.",
        source: None,
        named_by: "rotations/linear-constant-values",
        implementation: bug!(LinearNotDivided {
            fn quotient(&self, numerator: f64, _: f64, _: usize) -> f64 {
                numerator
            }
        }),
    },
    Bug {
        id: "rotations/linear-gradient-of-a-constant-denominator",
        misconception: "takes the denominator for a constant",
        story: "It was computed outside of what the tape sees. Values and their gradients are right; \
                queries and keys learn slowly.",
        source: None,
        named_by: "rotations/linear-gradient-of-scale",
        implementation: bug!(LinearGradientOfAConstantDenominator {
            fn ddenominator(&self, _: f64, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "rotations/linear-gradient-of-keys-cut",
        misconception: "gives keys no gradient through the denominator",
        story: "The running sum of the keys was a call that no tape sees. Forward, dq and dv are right.",
        source: Some("fla-org/flash-linear-attention pull request 875"),
        named_by: "rotations/linear-gradient-of-scale",
        implementation: bug!(LinearGradientOfKeysCut {
            fn dkey(&self, _: f64, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "rotations/linear-gradient-of-plain-slope",
        misconception: "takes 1 for the slope of φ everywhere",
        story: "Right above 0. Below, gradients are too large, most where the feature hardly matters.",
        source: None,
        named_by: "rotations/linear-gradient-differences",
        implementation: bug!(LinearGradientOfPlainSlope {
            fn slope(&self, _: f64) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "rotations/running-reads-first",
        misconception: "reads the state before its own key and value are in it",
        story: "The two lines in the other order. The first token divides 0 by 0.",
        source: None,
        named_by: "rotations/running-own-token",
        implementation: bug!(RunningReadsFirst {
            fn token(&self, state: &mut State, [turned_q, q]: [&[f64]; 2], keys: [&[f64]; 3]) -> Vec<f64> {
                let y = self.read(state, turned_q, q);
                self.take_in(state, keys);
                y
            }
        }),
    },
    Bug {
        id: "rotations/running-total-not-carried",
        misconception: "begins the denominator's sum anew in each piece",
        story: "The state that is kept between calls holds the sum of keys times values. The sum of keys \
                was left behind.",
        source: Some("fla-org/flash-linear-attention pull request 267"),
        named_by: "rotations/running-cut-anywhere",
        implementation: bug!(RunningTotalNotCarried {
            fn begin_piece(&self, state: &mut State) {
                state.total.fill(0.0);
            }
        }),
    },
    Bug {
        id: "rotations/running-state-not-carried",
        misconception: "begins with an empty state in each piece",
        story: "The new state was returned, and the caller went on with the old one.",
        source: None,
        named_by: "rotations/running-cut-anywhere",
        implementation: bug!(RunningStateNotCarried {
            fn begin_piece(&self, state: &mut State) {
                state.total.fill(0.0);
                state.sums.fill(0.0);
            }
        }),
    },
    Bug {
        id: "rotations/running-positions-begin-anew",
        misconception: "counts the positions of each piece from the offset",
        story: "Within a piece distances are right. Across pieces they are not.",
        source: None,
        named_by: "rotations/running-cut-anywhere",
        implementation: bug!(RunningPositionsBeginAnew {
            fn running_position(&self, case: &LinearCase, _: usize, t: usize) -> usize {
                case.offset + t
            }
        }),
    },
    Bug {
        id: "rotations/running-offset-from-the-second",
        misconception: "knows the offset of the call in its first piece alone",
        story: "Later pieces count from the beginning of the text that was handed over, and not from \
                where it stands.",
        source: None,
        named_by: "rotations/running-cut-anywhere",
        implementation: bug!(RunningOffsetFromTheSecond {
            fn running_position(&self, case: &LinearCase, start: usize, t: usize) -> usize {
                if start == 0 { case.offset + t } else { start + t }
            }
        }),
    },
    Bug {
        id: "rotations/running-last-token-dropped",
        misconception: "keeps the state from before the last token of a piece",
        story: "It was stored one line too early. The next piece never sees that token.",
        source: None,
        named_by: "rotations/running-cut-anywhere",
        implementation: bug!(RunningLastTokenDropped {
            fn end_piece(&self, state: &mut State, before_last: &State) {
                state.clone_from(before_last);
            }
        }),
    },
    Bug {
        id: "rotations/running-heads-share",
        misconception: "keeps one state for all heads of a text",
        story: "The state has no axis for heads, and all heads add to it.",
        source: None,
        named_by: "rotations/running-is-all-pairs",
        implementation: bug!(RunningHeadsShare {
            fn state_of(&self, b: usize, _: usize, heads: usize) -> usize {
                b * heads
            }
        }),
    },
    Bug {
        id: "rotations/running-texts-share",
        misconception: "keeps one state for all texts of a batch",
        story: "What one text said, the next one reads. With one text at a time nothing is seen.",
        source: None,
        named_by: "rotations/running-any-input",
        implementation: bug!(RunningTextsShare {
            fn state_of(&self, _: usize, head: usize, _: usize) -> usize {
                head
            }
        }),
    },
    Bug {
        id: "rotations/running-total-turned",
        misconception: "adds turned keys to the denominator's sum",
        story: "One list of keys went into both sums.",
        source: None,
        named_by: "rotations/running-is-all-pairs",
        implementation: bug!(RunningTotalTurned {
            fn take_in(&self, state: &mut State, [turned_k, _, v]: [&[f64]; 3]) {
                Oracle.take_in(state, [turned_k, turned_k, v]);
            }
        }),
    },
    Bug {
        id: "rotations/running-values-transposed",
        misconception: "adds values times keys, and reads keys times values",
        story: "The matrix is square, so it fits either way.",
        source: None,
        named_by: "rotations/running-own-token",
        implementation: bug!(RunningValuesTransposed {
            fn take_in(&self, state: &mut State, [turned_k, k, v]: [&[f64]; 3]) {
                let hd = v.len();
                for i in 0..hd {
                    state.total[i] += k[i];
                    (0..hd).for_each(|j| state.sums[i * hd + j] += v[i] * turned_k[j]);
                }
            }
        }),
    },
];
