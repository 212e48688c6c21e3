//! Bugs of biases in the scores.

use crate::biases::interface::{BucketCase, Kernel};
use crate::biases::oracle::{BiasLoops, ByDistance};
use crate::component::{bug, bugs};
use crate::oracle::Oracle;

bugs! {
    SlopesFromOne, SlopesReversed, SlopesAllAlike, SlopesPlainRule, SlopesGoOn, SlopesSecondFromTwo, SlopesNextPower,
    SlopesSorted, AlibiFavoursFar, AlibiSquared, AlibiOneHead, AlibiBeforeTheScale, AlibiNotScaled,
    AlibiWithoutBiasInDecoding, AlibiRestarts, AlibiSymmetric, MaskAdded, BucketSign, BucketHalvesInOneDirection,
    BucketNotHalved, BucketOwnKeyIsLater, BucketTwoLogarithms, BucketLongestOffByOne, BucketCutShort,
    BucketLogarithmsInF32, BucketRounded, BucketAllExact, BucketNotClamped, T5Restarts, T5ByKeyPosition,
    T5TableTurned, T5GradientLast, T5GradientInF32, T5GradientMean, KerpleLogOfDistance, KerpleFactorOutside,
    KerpleRises, KerpleNegativeAllowed, KerpleSizeOfR1, KerpleExponentAbove2, KerpleFactorBelow2,
    KerpleStuckAtTheBound, KerplePowerRule, KerpleInnerSlope, XlFirstRowKept, XlNotShifted, XlNearestFirst,
    XlOneTooFar, XlRestarts, XlUAndVExchanged, XlWithoutU, XlWithoutV, XlPlaceNotScaled, XlScaledByAllHeads,
    XlSinesFirst, XlFutureSeen,
}

/// begins with exponent 0, so that the first slope is 1
///
/// Heads are counted from 0, and the formula counts from 1. Every head has the slope of its neighbour, and the last slope is
/// missing.
#[bug(
    "biases/slopes-from-one",
    named_by = "biases/slopes-of-powers",
    source = "aprender pull request 2143"
)]
impl BiasLoops for SlopesFromOne {
    fn slope_of_power(&self, nth: usize, n: usize) -> f64 {
        (-8.0 * (nth as f64 - 1.0) / n as f64).exp2()
    }
}

/// gives the slopes in the opposite order
///
/// The set of slopes is right, and a model that is trained anew does not care. The heads of a trained model get the slopes of
/// others.
#[bug("biases/slopes-reversed", named_by = "biases/slopes-of-powers")]
impl BiasLoops for SlopesReversed {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        (1..=num_heads).rev().map(|nth| self.slope(nth, num_heads)).collect()
    }
}

/// gives all heads the last slope
///
/// The loop over the heads computes one number and writes it everywhere.
#[bug("biases/slopes-all-alike", named_by = "biases/slopes-of-powers")]
impl BiasLoops for SlopesAllAlike {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        vec![(-8.0f64).exp2(); num_heads]
    }
}

/// takes the rule for powers of 2 for any number of heads
///
/// 2⁻⁸ᵗᐟⁿ has a value for any n. The published code has another rule for those that are no powers of 2, and models with 12
/// heads were trained with it.
#[bug(
    "biases/slopes-plain-rule",
    named_by = "biases/slopes-published",
    source = "mlx issue 343, pull request 3071"
)]
impl BiasLoops for SlopesPlainRule {
    fn slope(&self, nth: usize, num_heads: usize) -> f64 {
        self.slope_of_power(nth, num_heads)
    }
}

/// goes on with the first sequence where the second one should begin
///
/// Only the largest power of two was looked for. The heads beyond it get slopes below 2⁻⁸, one smaller than the other.
#[bug("biases/slopes-go-on", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesGoOn {
    fn slope_between(&self, nth: usize, power: usize) -> f64 {
        self.slope_of_power(power + nth, power)
    }
}

/// takes the second, fourth, .. of the second sequence
///
/// [1::2] instead of [0::2]. These are the slopes of the first sequence once more, so heads are doubled.
#[bug("biases/slopes-second-from-two", named_by = "biases/slopes-between-neighbours")]
impl BiasLoops for SlopesSecondFromTwo {
    fn slope_between(&self, nth: usize, power: usize) -> f64 {
        self.slope_of_power(2 * nth, 2 * power)
    }
}

/// takes the first slopes of the next power of two
///
/// Rounding the number of heads up is simpler than two sequences. The steepest heads are there, and the flat ones, which see
/// far, are cut off.
#[bug("biases/slopes-next-power", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesNextPower {
    fn slope(&self, nth: usize, num_heads: usize) -> f64 {
        self.slope_of_power(nth, num_heads.next_power_of_two())
    }
}

/// sorts the slopes
///
/// The second sequence lies between the members of the first, so sorting them looks tidy. Heads change places.
#[bug("biases/slopes-sorted", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesSorted {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        let mut slopes = Oracle.slopes(num_heads);
        slopes.sort_by(|a, b| b.total_cmp(a));
        slopes
    }
}

/// adds the distance instead of taking it away
///
/// query minus key where key minus query was meant. Far tokens win, most of all in long texts.
#[bug(
    "biases/alibi-favours-far",
    named_by = "biases/alibi-by-numbers",
    source = "attention-gym pull request 86"
)]
impl BiasLoops for AlibiFavoursFar {
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        slope * (m as f64 - n as f64)
    }
}

/// takes the square of the distance
///
/// It falls too, and faster: a head with a steep slope sees three tokens.
#[bug("biases/alibi-squared", named_by = "biases/alibi-by-numbers")]
impl BiasLoops for AlibiSquared {
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        -slope * (m as f64 - n as f64).powi(2)
    }
}

/// takes the first head's slope for all heads
///
/// A slope of shape [1] is broadcast, and nothing complains.
#[bug("biases/alibi-one-head", named_by = "biases/alibi-by-numbers")]
impl BiasLoops for AlibiOneHead {
    fn alibi_scores(&self, case: &crate::biases::interface::AlibiCase) -> Vec<f64> {
        struct FirstSlope;
        impl BiasLoops for FirstSlope {
            fn slopes(&self, num_heads: usize) -> Vec<f64> {
                vec![Oracle.slope(1, num_heads); num_heads]
            }
        }
        FirstSlope.alibi_scores(case)
    }
}

/// adds the bias before it divides by √hd
///
/// A kernel that scales what it is given scales the bias as well. With 64 elements a head, the bias is an eighth of what it
/// should be.
#[bug(
    "biases/alibi-before-the-scale",
    named_by = "biases/alibi-after-the-scale",
    source = "tt-metal pull request 56406"
)]
impl BiasLoops for AlibiBeforeTheScale {
    fn alibi_score(&self, product: f64, head_dim: usize, bias: f64) -> f64 {
        (product + bias) / (head_dim as f64).sqrt()
    }
}

/// does not divide the product by √hd
///
/// The scale was taken out to keep the bias whole, and the product lost it too.
#[bug("biases/alibi-not-scaled", named_by = "biases/alibi-any")]
impl BiasLoops for AlibiNotScaled {
    fn alibi_score(&self, product: f64, _: usize, bias: f64) -> f64 {
        product + bias
    }
}

/// adds nothing when one token is decoded
///
/// The bias is built for the queries and not for the keys. For one query it is slope times 0, of shape [1, 1], and is broadcast
/// over all keys. Texts are generated without ALiBi, and nothing fails.
#[bug(
    "biases/alibi-without-bias-in-decoding",
    named_by = "biases/alibi-decoding",
    source = "keras-hub pull request 2977"
)]
impl BiasLoops for AlibiWithoutBiasInDecoding {
    fn alibi_scores(&self, case: &crate::biases::interface::AlibiCase) -> Vec<f64> {
        struct Flat;
        impl BiasLoops for Flat {
            fn alibi_bias(&self, _: f64, _: usize, _: usize) -> f64 {
                0.0
            }
        }
        if case.shape[0] == 1 { Flat.alibi_scores(case) } else { Oracle.alibi_scores(case) }
    }
}

/// counts the queries from 0 in each call, and so sees too little
///
/// The causal mask is built for a whole text. With keys of earlier calls, the first new query sees the first key alone.
#[bug("biases/alibi-restarts", named_by = "biases/alibi-decoding")]
impl BiasLoops for AlibiRestarts {
    fn alibi_position(&self, i: usize, _: usize, _: usize) -> usize {
        i
    }
}

/// takes the size of the distance and lets queries see later keys
///
/// A slope for both directions is what encoders use. A decoder needs the mask as well.
#[bug("biases/alibi-symmetric", named_by = "biases/alibi-no-future")]
impl BiasLoops for AlibiSymmetric {
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        -slope * m.abs_diff(n) as f64
    }
    fn alibi_sees(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// adds −∞ to the score of a later key, where it is to have the score −∞
///
/// Added to a number, −∞ hides it. A later key that holds NaN or infinity comes through: NaN plus −∞ is NaN.
#[bug("biases/mask-added", named_by = "biases/alibi-no-future")]
impl BiasLoops for MaskAdded {
    fn hidden(&self, score: f64) -> f64 {
        score + f64::NEG_INFINITY
    }
}

/// takes query minus key where key minus query is asked
///
/// In one direction, all earlier keys count as later ones and are in bucket 0. In both directions, the halves are exchanged.
#[bug("biases/bucket-sign", named_by = "biases/bucket-of-later-keys")]
impl BiasLoops for BucketSign {
    fn bucket(&self, case: &BucketCase) -> usize {
        Oracle.bucket(&BucketCase { relative: -case.relative, ..*case })
    }
}

/// gives earlier keys half of the buckets in one direction too
///
/// The encoder's rule in the decoder. Half of the table is never read, and a trained table is read in the wrong rows.
#[bug("biases/bucket-halves-in-one-direction", named_by = "biases/bucket-of-later-keys")]
impl BiasLoops for BucketHalvesInOneDirection {
    fn buckets_of_direction(&self, case: &BucketCase) -> usize {
        (case.num_buckets / 2).max(1)
    }
    fn exact(&self, count: usize) -> usize {
        (count / 2).max(1)
    }
    fn last(&self, bucket: usize, count: usize) -> usize {
        bucket.min(count - 1)
    }
}

/// does not halve the buckets in both directions, and lets later keys begin at the same place
///
/// The number of buckets of one direction was forgotten. Earlier and later keys share their buckets.
#[bug("biases/bucket-not-halved", named_by = "biases/bucket-halves")]
impl BiasLoops for BucketNotHalved {
    fn buckets_of_direction(&self, case: &BucketCase) -> usize {
        case.num_buckets
    }
    fn is_later(&self, _: &BucketCase) -> bool {
        false
    }
}

/// puts distance 0 into the second half
///
/// >= 0 instead of > 0. The token itself shares a number with no one and was meant to be the first.
#[bug("biases/bucket-own-key-is-later", named_by = "biases/bucket-halves")]
impl BiasLoops for BucketOwnKeyIsLater {
    fn is_later(&self, case: &BucketCase) -> bool {
        case.bidirectional && case.relative >= 0
    }
}

/// takes one logarithm with base 2 and the other with base e
///
/// A quotient of logarithms has no base, as long as both have the same.
#[bug("biases/bucket-two-logarithms", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketTwoLogarithms {
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        Oracle.nth(distance, exact, count, max_distance) / std::f64::consts::LN_2
    }
}

/// reaches the last bucket one distance too early or too late, with max_distance − 1
///
/// The largest distance of 128 positions is 127, so 127 was put into the formula. Most buckets stay as they are.
#[bug("biases/bucket-longest-off-by-one", named_by = "biases/bucket-any")]
impl BiasLoops for BucketLongestOffByOne {
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        // As it is written with a distance of 1 between the two, which is never divided by 0.
        let largest = ((max_distance - 1) as f64 / exact as f64).ln().max(1e-3);
        (distance as f64 / exact as f64).ln() / largest * (count - exact) as f64
    }
}

/// cuts what should be a whole number, and is one less by its last digit
///
/// ln 8 / ln 2 is 3 on paper, and 2.9999999999999996 or 3 in f64, as the division has it. What is cut then is in the bucket
/// before.
#[bug("biases/bucket-cut-short", named_by = "biases/bucket-last-digit")]
impl BiasLoops for BucketCutShort {
    fn whole(&self, nth: f64) -> f64 {
        nth.floor()
    }
}

/// takes the logarithms in f32, where f64 is demanded
///
/// T5's code does. With its own sizes nobody can tell.
#[bug("biases/bucket-logarithms-in-f32", named_by = "biases/bucket-last-digit")]
impl BiasLoops for BucketLogarithmsInF32 {
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        let [of, largest] = [distance, max_distance].map(|d| (d as f32 / exact as f32).ln());
        f64::from(of / largest * (count - exact) as f32)
    }
    fn whole(&self, nth: f64) -> f64 {
        (nth + 1e-6).floor()
    }
}

/// rounds the logarithm to the nearest whole number, not down
///
/// A cast cuts and round does not. Each growing bucket begins too early.
#[bug("biases/bucket-rounded", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketRounded {
    fn whole(&self, nth: f64) -> f64 {
        nth.round()
    }
}

/// gives each distance a bucket of its own, up to the last
///
/// The logarithmic half was left out: min(j, n − 1). Near keys are right, and texts of a few tokens show nothing.
#[bug("biases/bucket-all-exact", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketAllExact {
    fn bucket_of_distance(&self, distance: usize, count: usize, _: usize) -> usize {
        distance.min(count - 1)
    }
}

/// goes on counting behind the last bucket
///
/// The minimum was left out. A farther key reads a row that another direction owns, or none.
#[bug(
    "biases/bucket-not-clamped",
    named_by = "biases/bucket-never-decreases",
    source = "candle pull request 1312"
)]
impl BiasLoops for BucketNotClamped {
    fn last(&self, bucket: usize, _: usize) -> usize {
        bucket
    }
    fn t5_place(&self, bucket: usize, head: usize, [num_buckets, nh]: [usize; 2]) -> usize {
        // Behind the table there is none: what stands there is anything.
        bucket % num_buckets * nh + head
    }
}

/// counts the queries from 0 in each call
///
/// With a cache, each new token is query 0, and all keys seem to be later ones. Generation goes on, a little worse.
#[bug("biases/t5-restarts", named_by = "biases/t5-decoding", source = "candle pull request 899")]
impl BiasLoops for T5Restarts {
    fn t5_position(&self, i: usize, _: usize, _: usize) -> usize {
        i
    }
}

/// takes the position of the key for the distance
///
/// A bucket for each key was computed once and used for all queries. For the last query it is the right table turned around.
#[bug("biases/t5-by-key-position", named_by = "biases/t5-relative")]
impl BiasLoops for T5ByKeyPosition {
    fn relative(&self, _: usize, n: usize) -> i64 {
        -(n as i64)
    }
}

/// reads the table as heads by buckets
///
/// Both shapes have the same number of elements, and a flat index does not tell them apart.
#[bug("biases/t5-table-turned", named_by = "biases/t5-reads-its-bucket")]
impl BiasLoops for T5TableTurned {
    fn t5_place(&self, bucket: usize, head: usize, [num_buckets, _]: [usize; 2]) -> usize {
        head * num_buckets + bucket
    }
}

/// keeps the last gradient of a bucket instead of the sum
///
/// A scatter that assigns where one that adds was meant. With one pair in each bucket it is right.
#[bug("biases/t5-gradient-last", named_by = "biases/t5-gradient-counts")]
impl BiasLoops for T5GradientLast {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        of_places.last().copied().unwrap_or(0.0)
    }
}

/// adds up in f32, where f64 is demanded
///
/// A bucket of a long text gathers millions of pairs. From 2²⁴ on, a sum in f32 does not feel another 1.
#[bug("biases/t5-gradient-in-f32", named_by = "biases/t5-gradient-in-f64")]
impl BiasLoops for T5GradientInF32 {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        f64::from(of_places.iter().map(|dy| *dy as f32).sum::<f32>())
    }
}

/// averages the gradients of a bucket
///
/// So that far buckets, which hold many pairs, learn no faster. It is another loss, and no gradient of this one.
#[bug("biases/t5-gradient-mean", named_by = "biases/t5-gradient-counts")]
impl BiasLoops for T5GradientMean {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        of_places.iter().sum::<f64>() / of_places.len().max(1) as f64
    }
}

/// takes ln(r₂ j) without the 1
///
/// At distance 0 that is minus infinity, so a token does not see itself; someone adds a small number, and near keys win by a
/// lot.
#[bug("biases/kerple-log-of-distance", named_by = "biases/kerple-nothing-at-0")]
impl BiasLoops for KerpleLogOfDistance {
    fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => (1e-6 + r2 * j).ln(),
            Kernel::Power => Oracle.fallen(kernel, r2, j),
        }
    }
}

/// takes ln(1 + r₂) j, with the distance outside of the logarithm
///
/// A bracket was closed too early. It is ALiBi with a learned slope.
#[bug("biases/kerple-factor-outside", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleFactorOutside {
    fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => (1.0 + r2).ln() * j,
            Kernel::Power => Oracle.fallen(kernel, r2, j),
        }
    }
}

/// adds what should be taken away
///
/// The sign was left to what is learned. r₁ is kept positive, so it can never turn it.
#[bug("biases/kerple-rises", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleRises {
    fn kerple_bias(&self, r1: f64, fallen: f64) -> f64 {
        r1 * fallen
    }
}

/// takes r₁ as it is, also below 0
///
/// An optimizer takes it there in one step, and then the farthest keys get the most.
#[bug("biases/kerple-negative-allowed", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleNegativeAllowed {
    fn kept_r1(&self, r1: f64) -> f64 {
        r1
    }
}

/// takes the size of r₁ where 0.01 is meant
///
/// Positive is positive. But the gradient of the size turns its sign at 0, and a number below 0 counts as much as one above.
#[bug("biases/kerple-size-of-r1", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleSizeOfR1 {
    fn kept_r1(&self, r1: f64) -> f64 {
        r1.abs()
    }
}

/// lets the exponent grow beyond 2
///
/// j³ falls as well, and nobody sees that it is no kernel any more. The lower bound was kept, the upper one forgotten.
#[bug("biases/kerple-exponent-above-2", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleExponentAbove2 {
    fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
        Oracle.kept_r2(Kernel::Logarithmic, r2)
    }
}

/// keeps the factor in the logarithm below 2 as well
///
/// One class for both kernels, and one pair of bounds.
#[bug("biases/kerple-factor-below-2", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleFactorBelow2 {
    fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
        Oracle.kept_r2(Kernel::Power, r2)
    }
}

/// gives a number out of bounds no gradient
///
/// The bound was written as a clamp on the tape, and a clamp has no slope outside. What was once pushed below 0.01 stays there
/// for good.
#[bug("biases/kerple-stuck-at-the-bound", named_by = "biases/kerple-gradient-at-the-bound")]
impl BiasLoops for KerpleStuckAtTheBound {
    fn through_bounds(&self, dr: f64, given: f64, kept: f64) -> f64 {
        if given == kept { dr } else { 0.0 }
    }
}

/// differentiates j^r₂ by j where r₂ is asked
///
/// r₂ j^(r₂ − 1) is the rule that everybody knows. The exponent is what is learned, so it is j^r₂ ln j.
#[bug("biases/kerple-power-rule", named_by = "biases/kerple-gradient-differences")]
impl BiasLoops for KerplePowerRule {
    fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => Oracle.slope_of_r2(kernel, [r1, r2], j),
            Kernel::Power if j == 0.0 => 0.0,
            Kernel::Power => -r1 * r2 * j.powf(r2 - 1.0),
        }
    }
}

/// leaves out j, the inner slope of the logarithm
///
/// 1 / (1 + r₂ j) is the outer slope. At distance 1 both are the same.
#[bug("biases/kerple-inner-slope", named_by = "biases/kerple-gradient-differences")]
impl BiasLoops for KerpleInnerSlope {
    fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic if j > 0.0 => -r1 / (1.0 + r2 * j),
            _ => Oracle.slope_of_r2(kernel, [r1, r2], j),
        }
    }
}

/// cuts the last row of the shifted scores where the first one should go
///
/// [:-1] instead of [1:]. The shapes agree, and each row gets the distances of another one.
#[bug(
    "biases/xl-first-row-kept",
    named_by = "biases/xl-place-alone",
    source = "annotated_deep_learning_paper_implementations issue 185"
)]
impl BiasLoops for XlFirstRowKept {
    fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
        let t = rows[0].len();
        let at = i * t + n;
        match (at / (t + 1), at % (t + 1)) {
            (_, 0) => 0.0,
            (row, column) => rows[row][column - 1],
        }
    }
}

/// does not shift the scores by distance
///
/// All rows begin with the farthest distance. Only the last query is right.
#[bug("biases/xl-not-shifted", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlNotShifted {
    fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
        rows[i][n]
    }
}

/// turns the distances around: the nearest key gets what belongs to the farthest
///
/// A range that goes up where one that goes down was meant. Near and far change places, and no shape tells.
#[bug("biases/xl-nearest-first", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlNearestFirst {
    fn by_key(&self, rows: &ByDistance, i: usize, m: usize, n: usize) -> f64 {
        rows[i][m - n]
    }
}

/// takes each key for one position farther away
///
/// The range of distances goes from t to 1 and not from t − 1 to 0.
#[bug("biases/xl-one-too-far", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlOneTooFar {
    fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
        Oracle.sinusoid(j + 1.0, c, hidden_size, base)
    }
}

/// counts the queries from 0 in each call, as if there were no memory
///
/// The keys of the memory are past keys, so the distances have to grow by their number.
#[bug(
    "biases/xl-restarts",
    named_by = "biases/xl-decoding",
    source = "x-transformers pull request 103"
)]
impl BiasLoops for XlRestarts {
    fn xl_position(&self, i: usize, _: usize, _: usize) -> usize {
        i
    }
}

/// exchanges u and v
///
/// They have one shape and start from one distribution. Training makes up for it; a loaded checkpoint does not.
#[bug("biases/xl-u-and-v-exchanged", named_by = "biases/xl-content-alone")]
impl BiasLoops for XlUAndVExchanged {
    fn content(&self, q: f64, _: f64, v: f64, k: f64) -> f64 {
        (q + v) * k
    }
    fn place(&self, q: f64, u: f64, _: f64, r: f64) -> f64 {
        (q + u) * r
    }
}

/// leaves u out
///
/// Attention's own scores are there already, and only the distances were added to them.
#[bug("biases/xl-without-u", named_by = "biases/xl-content-alone")]
impl BiasLoops for XlWithoutU {
    fn content(&self, q: f64, _: f64, _: f64, k: f64) -> f64 {
        q * k
    }
}

/// leaves v out
///
/// Then a query of zeros does not care how far a key is away.
#[bug("biases/xl-without-v", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlWithoutV {
    fn place(&self, q: f64, _: f64, _: f64, r: f64) -> f64 {
        q * r
    }
}

/// divides the product with the key by √hd, and not that with the distance
///
/// The scores came out of attention with their scale, and the bias was added to them as it was.
#[bug("biases/xl-place-not-scaled", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlPlaceNotScaled {
    fn xl_score(&self, content: f64, place: f64, head_dim: usize) -> f64 {
        content / (head_dim as f64).sqrt() + place
    }
}

/// divides by the root of the size of all heads
///
/// The size of a layer was at hand where that of a head was meant. The softmax becomes flatter.
#[bug(
    "biases/xl-scaled-by-all-heads",
    named_by = "biases/xl-content-alone",
    source = "conformer pull request 55"
)]
impl BiasLoops for XlScaledByAllHeads {
    fn xl_scores(&self, case: &crate::biases::interface::XlCase) -> Vec<f64> {
        let heads = (case.shape[2] as f64).sqrt();
        Oracle.xl_scores(case).into_iter().map(|score| score / heads).collect()
    }
}

/// has all sines before all cosines
///
/// The authors' code has them so, and then W_r has its columns in that order too. A file with one order, read by code with the
/// other, is wrong.
#[bug("biases/xl-sines-first", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlSinesFirst {
    fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
        let half = hidden_size / 2;
        Oracle.sinusoid(j, c % half * 2 + c / half, hidden_size, base)
    }
}

/// lets queries see later keys, with what the shift leaves there
///
/// Behind its own key, a shifted row holds a 0 and then the next row. The mask hides it, if there is one.
#[bug("biases/xl-future-seen", named_by = "biases/xl-no-future", source = "espnet issue 2684")]
impl BiasLoops for XlFutureSeen {
    fn xl_sees(&self, _: usize, _: usize) -> bool {
        true
    }
    fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
        let (s, t) = (rows.len(), rows[0].len());
        let at = s + i * t + n;
        match (at / (t + 1), at % (t + 1)) {
            (_, 0) => 0.0,
            (row, column) => rows[row][column - 1],
        }
    }
}
