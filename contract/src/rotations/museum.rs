//! Bugs of more rotations.

use crate::component::{bug, bugs};
use crate::oracle::Oracle;
use crate::rotations::interface::{AxialCase, LinearCase, Sections, XPosCase};
use crate::rotations::oracle::{Features, RotationsLoops, State, dot, section};

bugs! {
    XPosSameScale, XPosSignsExchanged, XPosQueriesOnly, XPosCenteredOnTheCall, XPosScaleWithoutOffset,
    XPosRotationWithoutOffset, XPosCenterForgotten, XPosShareOfThePlanes, XPosScaleBaseForgotten, XPosGammaNotDivided,
    XPosPlanesReversed, XPosScalesOfPairs, AxialRowsForBoth, AxialSectionsTakeTurns, AxialFrequenciesGoOn,
    AxialListBeginsAnew, AxialStepsOfTheHead, AxialCoordinatesReversed, AxialLastTwoExchanged, AxialNumberOfTheToken,
    AxialCountsFromOne, AxialSecondZeroed, AxialSectionsInDimensions, AxialPairsInSections, AxialSumOfCoordinates,
    AxialScaledToThePicture, AxialGradientTurnsOn, AxialGradientNotTurned, LinearDenominatorTurned, LinearPhiMissing,
    LinearPhiAfterRotation, LinearRelu, LinearEluAlone, LinearExpForPhi, LinearFutureSeen, LinearOwnKeyHidden,
    LinearDenominatorOfAll, LinearDenominatorOverHeads, LinearDividedByTheCount, LinearNotDivided,
    LinearGradientOfAConstantDenominator, LinearGradientOfKeysCut, LinearGradientOfPlainSlope, RunningReadsFirst,
    RunningTotalNotCarried, RunningStateNotCarried, RunningPositionsBeginAnew, RunningOffsetFromTheSecond,
    RunningLastTokenDropped, RunningHeadsShare, RunningTextsShare, RunningTotalTurned, RunningValuesTransposed,
}

/// multiplies keys by the scale for queries
///
/// One table was built and used twice, so the scales no longer cancel, and a score depends on the sum of the positions.
/// Near position 0 nothing shows.
#[bug("rotations/xpos-same-scale", named_by = "rotations/xpos-scales-cancel")]
impl RotationsLoops for XPosSameScale {
    fn key_scale(&self, zeta: f64, exponent: f64) -> f64 {
        zeta.powf(exponent)
    }
}

/// divides queries by the scale and multiplies keys by it
///
/// The scales still cancel at distance 0, but a score now grows with the distance.
#[bug("rotations/xpos-signs-exchanged", named_by = "rotations/xpos-fades")]
impl RotationsLoops for XPosSignsExchanged {
    fn query_scale(&self, zeta: f64, exponent: f64) -> f64 {
        zeta.powf(-exponent)
    }
    fn key_scale(&self, zeta: f64, exponent: f64) -> f64 {
        zeta.powf(exponent)
    }
}

/// scales only the queries
///
/// A score then depends on the position of its query, and all rows of a late query become small.
#[bug("rotations/xpos-queries-only", named_by = "rotations/xpos-scales-cancel")]
impl RotationsLoops for XPosQueriesOnly {
    fn key_scale(&self, _: f64, _: f64) -> f64 {
        1.0
    }
}

/// counts the scales' positions from the middle of each call
///
/// In one call both sides have the same middle, which cancels, but keys cached from an earlier call had another one.
#[bug("rotations/xpos-centered-on-the-call", named_by = "rotations/xpos-relative")]
impl RotationsLoops for XPosCenteredOnTheCall {
    fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
        row as f64 - (case.shape[1] / 2) as f64
    }
}

/// counts the scales' positions from the first row of each call
///
/// The rotation knows the offset of a call with a cache, but the scale does not. Training has no offset, so only generation
/// is wrong.
#[bug(
    "rotations/xpos-scale-without-offset",
    named_by = "rotations/xpos-relative",
    source = "lucidrains/rotary-embedding-torch issue 27: no offset for xPos with cached keys"
)]
impl RotationsLoops for XPosScaleWithoutOffset {
    fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
        row as f64 - case.center as f64
    }
}

/// counts the rotation's positions from the first row of each call
///
/// The scale knows the offset, but the rotation does not, so a new query meets the cached keys as if it were at their
/// beginning.
#[bug("rotations/xpos-rotation-without-offset", named_by = "rotations/xpos-relative")]
impl RotationsLoops for XPosRotationWithoutOffset {
    fn xpos_position(&self, _: &XPosCase, row: usize) -> f64 {
        row as f64
    }
}

/// uses 0 as the center
///
/// Scores do not depend on the center, so nothing shows until keys far from 0 overflow, which the center should prevent.
#[bug("rotations/xpos-center-forgotten", named_by = "rotations/xpos-center")]
impl RotationsLoops for XPosCenterForgotten {
    fn scale_position(&self, case: &XPosCase, row: usize) -> f64 {
        (case.offset + row) as f64
    }
}

/// uses i/d where the scale has 2i/d
///
/// The index of a plane was confused with that of a dimension. The last plane should hardly fade, but fades by a third.
#[bug("rotations/xpos-share-of-the-planes", named_by = "rotations/xpos-by-numbers")]
impl RotationsLoops for XPosShareOfThePlanes {
    fn share(&self, i: usize, hd: usize) -> f64 {
        i as f64 / hd as f64
    }
}

/// fades by ζ at each position instead of each 512
///
/// The exponent is the position itself, so beyond some ten positions the first plane is gone.
#[bug("rotations/xpos-scale-base-forgotten", named_by = "rotations/xpos-fades")]
impl RotationsLoops for XPosScaleBaseForgotten {
    fn exponent(&self, case: &XPosCase, row: usize) -> f64 {
        self.scale_position(case, row)
    }
}

/// adds 0.4 to the share without dividing by 1.4
///
/// The last plane then has a scale above 1, so queries grow where they should shrink.
#[bug("rotations/xpos-gamma-not-divided", named_by = "rotations/xpos-by-numbers")]
impl RotationsLoops for XPosGammaNotDivided {
    fn zeta(&self, i: usize, hd: usize) -> f64 {
        self.share(i, hd) + 0.4
    }
}

/// lets the slow planes fade fastest
///
/// The list of scales was built from the other end, so far tokens lose what tells their distance, and keep what does not.
#[bug("rotations/xpos-planes-reversed", named_by = "rotations/xpos-by-numbers")]
impl RotationsLoops for XPosPlanesReversed {
    fn zeta(&self, i: usize, hd: usize) -> f64 {
        Oracle.zeta(hd / 2 - 1 - i, hd)
    }
}

/// repeats each scale for neighbours, although the rotation is half-split
///
/// One function mixes two layouts: the two dimensions of a plane get the scales of two planes, and the rotation no longer
/// cancels.
#[bug("rotations/xpos-scales-of-pairs", named_by = "rotations/xpos-by-numbers")]
impl RotationsLoops for XPosScalesOfPairs {
    fn scaled_as(&self, i: usize, side: usize, hd: usize) -> usize {
        (i + side * (hd / 2)) / 2
    }
}

/// rotates both halves of the planes by the row
///
/// A kernel read the first half of the table and used it for both halves of a head. In one dimension the halves are equal, so
/// it had always been right.
#[bug(
    "rotations/axial-rows-for-both",
    named_by = "rotations/axial-sections-start-anew",
    source = "Tencent/ncnn issue 6833"
)]
impl RotationsLoops for AxialRowsForBoth {
    fn coordinate(&self, case: &AxialCase, row: usize, _: usize) -> f64 {
        Oracle.coordinate(case, row, 0)
    }
}

/// alternates the sections plane by plane
///
/// Newer models do so. A library that had learned it used it for the older ones too, whose sections are blocks.
#[bug(
    "rotations/axial-sections-take-turns",
    named_by = "rotations/axial-rows-and-columns",
    source = "Blaizzy/mlx-vlm pull request 576"
)]
impl RotationsLoops for AxialSectionsTakeTurns {
    fn axis(&self, case: &AxialCase, plane: usize) -> usize {
        plane % case.planes.len()
    }
}

/// starts the frequencies of the columns where those of the rows end
///
/// That is right for sections of one list, but wrong for a direct sum: columns turn so slowly that near ones look alike.
#[bug("rotations/axial-frequencies-go-on", named_by = "rotations/axial-sections-start-anew")]
impl RotationsLoops for AxialFrequenciesGoOn {
    fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
        self.theta(plane, case.shape[3] / 2, case.base)
    }
}

/// restarts the frequencies in each section, even where one list is cut
///
/// Text is then rotated differently from RoPE, and a model trained on text has to relearn its positions.
#[bug("rotations/axial-list-begins-anew", named_by = "rotations/axial-one-list")]
impl RotationsLoops for AxialListBeginsAnew {
    fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
        let [axis, place] = section(case, plane);
        self.theta(place, case.planes[axis], case.base)
    }
}

/// restarts each section with the steps of the whole head
///
/// The frequencies of a section of p planes fall as if it had all d/2, so their slow half is missing.
#[bug("rotations/axial-steps-of-the-head", named_by = "rotations/axial-sections-start-anew")]
impl RotationsLoops for AxialStepsOfTheHead {
    fn frequency(&self, case: &AxialCase, plane: usize) -> f64 {
        let place = match case.sections {
            Sections::Anew => section(case, plane)[1],
            Sections::OneList => plane,
        };
        self.theta(place, case.shape[3] / 2, case.base)
    }
}

/// takes the coordinates in the other order, columns first
///
/// Which comes first is a convention, and models differ. With another model's weights an image is seen mirrored at the
/// diagonal.
#[bug(
    "rotations/axial-coordinates-reversed",
    named_by = "rotations/axial-rows-and-columns",
    source = "Meituan-AutoML/VisionLLaMA issue 4 asks about it; ggml-org/llama.cpp pull request 13282, where two models differ"
)]
impl RotationsLoops for AxialCoordinatesReversed {
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        Oracle.coordinate(case, row, case.planes.len() - 1 - axis)
    }
}

/// swaps coordinates 1 and 2 where there are three
///
/// Time, height and width became time, width and height. With two coordinates all is well.
#[bug("rotations/axial-last-two-exchanged", named_by = "rotations/axial-any-input")]
impl RotationsLoops for AxialLastTwoExchanged {
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        let exchanged = if case.planes.len() == 3 { [0, 2, 1][axis] } else { axis };
        Oracle.coordinate(case, row, exchanged)
    }
}

/// rotates all planes by the index of the token
///
/// The coordinates were computed but not passed on, so a picture is a text, line after line. The patch below is as far away
/// as a whole line.
#[bug("rotations/axial-number-of-the-token", named_by = "rotations/axial-origin")]
impl RotationsLoops for AxialNumberOfTheToken {
    fn coordinate(&self, _: &AxialCase, row: usize, _: usize) -> f64 {
        row as f64
    }
}

/// counts rows and columns from 1
///
/// Scores depend only on differences, so they do not change. It shows where keys meet those of a library that counts from
/// 0.
#[bug("rotations/axial-counts-from-one", named_by = "rotations/axial-origin")]
impl RotationsLoops for AxialCountsFromOne {
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        Oracle.coordinate(case, row, axis) + 1.0
    }
}

/// sets the second coordinate to 0
///
/// A line meant for the first coordinate of a still picture was one line too low.
#[bug(
    "rotations/axial-second-zeroed",
    named_by = "rotations/axial-rows-and-columns",
    source = "vllm-project/vllm pull request 29425: the height of another model's tokens"
)]
impl RotationsLoops for AxialSecondZeroed {
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        if axis == 1 { 0.0 } else { Oracle.coordinate(case, row, axis) }
    }
}

/// counts sections in dimensions of the head instead of planes
///
/// The section sizes were doubled for a table that has each plane twice, but then cut one that has it once. The last
/// coordinate rotates nothing.
#[bug("rotations/axial-sections-in-dimensions", named_by = "rotations/axial-rows-and-columns")]
impl RotationsLoops for AxialSectionsInDimensions {
    fn axis(&self, case: &AxialCase, plane: usize) -> usize {
        section(case, plane / 2)[0]
    }
}

/// pairs the dimensions within each section's part of the head instead of the whole
///
/// Each section is a RoPE on its own slice of the head. It is a valid layout, and right for weights that use it.
#[bug("rotations/axial-pairs-in-sections", named_by = "rotations/axial-sections-start-anew")]
impl RotationsLoops for AxialPairsInSections {
    fn axial_pair(&self, case: &AxialCase, plane: usize) -> [usize; 2] {
        let [axis, place] = section(case, plane);
        let before: usize = case.planes[..axis].iter().sum();
        [2 * before + place, 2 * before + case.planes[axis] + place]
    }
}

/// rotates every plane by the sum of the coordinates
///
/// Tables for rows and columns were added before the cosine, so all patches on one diagonal have the same position.
#[bug("rotations/axial-sum-of-coordinates", named_by = "rotations/axial-rows-and-columns")]
impl RotationsLoops for AxialSumOfCoordinates {
    fn coordinate(&self, case: &AxialCase, row: usize, _: usize) -> f64 {
        (0..case.planes.len()).map(|axis| Oracle.coordinate(case, row, axis)).sum()
    }
}

/// measures coordinates in 16ths of the largest one
///
/// Each picture is brought to the same size, so that large ones rotate no further than small ones, and some models are
/// trained this way. But a patch that comes later changes all angles, and a score depends on where the picture ends.
#[bug("rotations/axial-scaled-to-the-picture", named_by = "rotations/axial-relative")]
impl RotationsLoops for AxialScaledToThePicture {
    fn coordinate(&self, case: &AxialCase, row: usize, axis: usize) -> f64 {
        let largest = case.coordinates.iter().copied().max().unwrap_or(0).max(1);
        Oracle.coordinate(case, row, axis) * 16.0 / largest as f64
    }
}

/// rotates the gradient in the direction of the forward pass
///
/// The forward pass and all lengths are right, but training is slow.
#[bug("rotations/axial-gradient-turns-on", named_by = "rotations/axial-gradient-turns-back")]
impl RotationsLoops for AxialGradientTurnsOn {
    fn turn_back(&self, dy: [f64; 2], angle: f64) -> [f64; 2] {
        self.turn(dy, angle)
    }
}

/// passes the gradient through unrotated
///
/// The rotation has no backward pass, as if it were a constant.
#[bug("rotations/axial-gradient-not-turned", named_by = "rotations/axial-gradient-turns-back")]
impl RotationsLoops for AxialGradientNotTurned {
    fn turn_back(&self, dy: [f64; 2], _: f64) -> [f64; 2] {
        dy
    }
}

/// rotates the denominator too
///
/// Queries and keys are rotated once, at the top. The sum of rotated products can be 0 or below, and then the result is
/// huge or has the wrong sign.
#[bug("rotations/linear-denominator-turned", named_by = "rotations/linear-numerator-alone")]
impl RotationsLoops for LinearDenominatorTurned {
    fn in_denominator(&self, case: &LinearCase, head: &[f64], position: usize) -> Vec<f64> {
        self.in_numerator(case, head, position)
    }
}

/// leaves out φ
///
/// Products of plain queries and keys can have any sign, and so can their sums.
#[bug("rotations/linear-phi-missing", named_by = "rotations/linear-phi-by-numbers")]
impl RotationsLoops for LinearPhiMissing {
    fn phi(&self, x: f64) -> f64 {
        x
    }
    fn slope(&self, _: f64) -> f64 {
        1.0
    }
}

/// rotates queries and keys first, and applies φ to the result
///
/// All weights are then positive, so no denominator is in danger, but a product of such features does not depend on the
/// distance alone.
#[bug("rotations/linear-phi-after-rotation", named_by = "rotations/linear-relative")]
impl RotationsLoops for LinearPhiAfterRotation {
    fn in_numerator(&self, case: &LinearCase, head: &[f64], position: usize) -> Vec<f64> {
        let turned = self.turned(case, head, position as f64);
        turned.into_iter().map(|x| self.phi(x)).collect()
    }
}

/// uses relu for φ
///
/// A query with no positive element has only weights of 0, and divides 0 by 0.
#[bug("rotations/linear-relu", named_by = "rotations/linear-phi-by-numbers")]
impl RotationsLoops for LinearRelu {
    fn phi(&self, x: f64) -> f64 {
        x.max(0.0)
    }
    fn slope(&self, x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { 0.0 }
    }
}

/// uses elu for φ, without the 1
///
/// The sums of weights can then be 0 or below.
#[bug("rotations/linear-elu-alone", named_by = "rotations/linear-phi-by-numbers")]
impl RotationsLoops for LinearEluAlone {
    fn phi(&self, x: f64) -> f64 {
        if x > 0.0 { x } else { x.exp() - 1.0 }
    }
}

/// uses exp for φ, even above 0
///
/// Below 0 it is the same. It is positive too, but overflows where elu + 1 grows by 1 a step.
#[bug("rotations/linear-exp-for-phi", named_by = "rotations/linear-phi-by-numbers")]
impl RotationsLoops for LinearExpForPhi {
    fn phi(&self, x: f64) -> f64 {
        x.exp()
    }
    fn slope(&self, x: f64) -> f64 {
        x.exp()
    }
}

/// sums over all keys, including those after the query
///
/// It is the form without a mask, from a model that reads whole texts.
#[bug("rotations/linear-future-seen", named_by = "rotations/linear-causal")]
impl RotationsLoops for LinearFutureSeen {
    fn sees(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// sums over the keys before the query, without its own
///
/// The first query sees nothing, and divides 0 by 0.
#[bug("rotations/linear-own-key-hidden", named_by = "rotations/linear-first-token")]
impl RotationsLoops for LinearOwnKeyHidden {
    fn sees(&self, m: usize, n: usize) -> bool {
        n < m
    }
}

/// sums the denominator over all keys
///
/// The mask was applied to the weights, but the denominator is a separate sum.
#[bug("rotations/linear-denominator-of-all", named_by = "rotations/linear-causal")]
impl RotationsLoops for LinearDenominatorOfAll {
    fn denominator(&self, features: &Features, [b, m, head]: [usize; 3]) -> f64 {
        let q = features.head(&features.q, [b, m, head]);
        (0..features.shape[1]).map(|n| dot(q, features.head(&features.k, [b, n, head]))).sum()
    }
}

/// adds up the denominator's keys over the heads instead of the tokens
///
/// A change elsewhere swapped two axes of a list, and a running sum went along the wrong one.
#[bug(
    "rotations/linear-denominator-over-heads",
    named_by = "rotations/linear-heads-are-apart",
    source = "fla-org/flash-linear-attention pull request 594 and issue 850"
)]
impl RotationsLoops for LinearDenominatorOverHeads {
    fn denominator(&self, features: &Features, [b, m, head]: [usize; 3]) -> f64 {
        let q = features.head(&features.q, [b, m, head]);
        (0..=head).map(|h| dot(q, features.head(&features.k, [b, m, h]))).sum()
    }
}

/// divides by the number of keys
///
/// It is a mean of the values, with weights that do not sum to 1. A norm after it hides it.
#[bug("rotations/linear-divided-by-the-count", named_by = "rotations/linear-constant-values")]
impl RotationsLoops for LinearDividedByTheCount {
    fn quotient(&self, numerator: f64, _: f64, m: usize) -> f64 {
        numerator / (m + 1) as f64
    }
}

/// does not divide at all
///
/// Results grow with the length of the text. Many later models do so, with a norm afterwards.
#[bug("rotations/linear-not-divided", named_by = "rotations/linear-constant-values")]
impl RotationsLoops for LinearNotDivided {
    fn quotient(&self, numerator: f64, _: f64, _: usize) -> f64 {
        numerator
    }
}

/// treats the denominator as a constant
///
/// It was computed off the tape. Values and their gradients are right, but queries and keys learn slowly.
#[bug(
    "rotations/linear-gradient-of-a-constant-denominator",
    named_by = "rotations/linear-gradient-of-scale"
)]
impl RotationsLoops for LinearGradientOfAConstantDenominator {
    fn ddenominator(&self, _: f64, _: f64) -> f64 {
        0.0
    }
}

/// gives keys no gradient through the denominator
///
/// The running sum of the keys was computed by a call off the tape. The forward pass, dq and dv are right.
#[bug(
    "rotations/linear-gradient-of-keys-cut",
    named_by = "rotations/linear-gradient-of-scale",
    source = "fla-org/flash-linear-attention pull request 875"
)]
impl RotationsLoops for LinearGradientOfKeysCut {
    fn dkey(&self, _: f64, _: f64) -> f64 {
        0.0
    }
}

/// uses 1 as the derivative of φ everywhere
///
/// That is right above 0. Below, gradients are too large, most where the feature hardly matters.
#[bug(
    "rotations/linear-gradient-of-plain-slope",
    named_by = "rotations/linear-gradient-differences"
)]
impl RotationsLoops for LinearGradientOfPlainSlope {
    fn slope(&self, _: f64) -> f64 {
        1.0
    }
}

/// reads the state before adding its own key and value
///
/// The two lines are in the wrong order, so the first token divides 0 by 0.
#[bug("rotations/running-reads-first", named_by = "rotations/running-own-token")]
impl RotationsLoops for RunningReadsFirst {
    fn token(&self, state: &mut State, [turned_q, q]: [&[f64]; 2], keys: [&[f64]; 3]) -> Vec<f64> {
        let y = self.read(state, turned_q, q);
        self.take_in(state, keys);
        y
    }
}

/// restarts the denominator's sum in each piece
///
/// The state kept between calls holds the sum of keys times values, but not the sum of keys.
#[bug(
    "rotations/running-total-not-carried",
    named_by = "rotations/running-cut-anywhere",
    source = "fla-org/flash-linear-attention pull request 267"
)]
impl RotationsLoops for RunningTotalNotCarried {
    fn begin_piece(&self, state: &mut State) {
        state.total.fill(0.0);
    }
}

/// starts each piece with an empty state
///
/// The new state was returned, but the caller kept using the old one.
#[bug("rotations/running-state-not-carried", named_by = "rotations/running-cut-anywhere")]
impl RotationsLoops for RunningStateNotCarried {
    fn begin_piece(&self, state: &mut State) {
        state.total.fill(0.0);
        state.sums.fill(0.0);
    }
}

/// counts the positions of each piece from the offset
///
/// Distances are right within a piece, but not across pieces.
#[bug("rotations/running-positions-begin-anew", named_by = "rotations/running-cut-anywhere")]
impl RotationsLoops for RunningPositionsBeginAnew {
    fn running_position(&self, case: &LinearCase, _: usize, t: usize) -> usize {
        case.offset + t
    }
}

/// applies the offset of the call only in its first piece
///
/// Later pieces count from the beginning of the given text instead of its actual position.
#[bug("rotations/running-offset-from-the-second", named_by = "rotations/running-cut-anywhere")]
impl RotationsLoops for RunningOffsetFromTheSecond {
    fn running_position(&self, case: &LinearCase, start: usize, t: usize) -> usize {
        if start == 0 { case.offset + t } else { start + t }
    }
}

/// keeps the state from before the last token of a piece
///
/// It was stored one line too early, so the next piece never sees that token.
#[bug("rotations/running-last-token-dropped", named_by = "rotations/running-cut-anywhere")]
impl RotationsLoops for RunningLastTokenDropped {
    fn end_piece(&self, state: &mut State, before_last: &State) {
        state.clone_from(before_last);
    }
}

/// keeps one state for all heads of a text
///
/// The state has no axis for heads, so all heads add to it.
#[bug("rotations/running-heads-share", named_by = "rotations/running-is-all-pairs")]
impl RotationsLoops for RunningHeadsShare {
    fn state_of(&self, b: usize, _: usize, heads: usize) -> usize {
        b * heads
    }
}

/// keeps one state for all texts of a batch
///
/// Each text reads what the others said, which goes unnoticed with one text at a time.
#[bug("rotations/running-texts-share", named_by = "rotations/running-any-input")]
impl RotationsLoops for RunningTextsShare {
    fn state_of(&self, _: usize, head: usize, _: usize) -> usize {
        head
    }
}

/// adds rotated keys to the denominator's sum
///
/// One list of keys went into both sums.
#[bug("rotations/running-total-turned", named_by = "rotations/running-is-all-pairs")]
impl RotationsLoops for RunningTotalTurned {
    fn take_in(&self, state: &mut State, [turned_k, _, v]: [&[f64]; 3]) {
        Oracle.take_in(state, [turned_k, turned_k, v]);
    }
}

/// adds values times keys, but reads keys times values
///
/// The matrix is square, so it fits either way.
#[bug("rotations/running-values-transposed", named_by = "rotations/running-own-token")]
impl RotationsLoops for RunningValuesTransposed {
    fn take_in(&self, state: &mut State, [turned_k, k, v]: [&[f64]; 3]) {
        let hd = v.len();
        for i in 0..hd {
            state.total[i] += k[i];
            (0..hd).for_each(|j| state.sums[i * hd + j] += v[i] * turned_k[j]);
        }
    }
}
