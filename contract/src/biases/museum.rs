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

/// starts with exponent 0, so that the first slope is 1
///
/// Heads are counted from 0, but the formula counts from 1. Every head has its neighbour's slope, and the last slope is
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

/// returns the slopes in reverse order
///
/// The set of slopes is right, so a model trained from scratch does not care, but the heads of a trained model get each
/// other's slopes.
#[bug("biases/slopes-reversed", named_by = "biases/slopes-of-powers")]
impl BiasLoops for SlopesReversed {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        (1..=num_heads).rev().map(|nth| self.slope(nth, num_heads)).collect()
    }
}

/// gives every head the last slope
///
/// The loop over the heads computes one number and writes it everywhere.
#[bug("biases/slopes-all-alike", named_by = "biases/slopes-of-powers")]
impl BiasLoops for SlopesAllAlike {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        vec![(-8.0f64).exp2(); num_heads]
    }
}

/// applies the rule for powers of 2 to any number of heads
///
/// 2⁻⁸ᵗᐟⁿ has a value for any n. The published code has a different rule where n is not a power of 2, and models with
/// 12 heads were trained with it.
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

/// continues the first sequence where the second one should start
///
/// The code only looks for the largest power of two, so the heads beyond it get ever smaller slopes below 2⁻⁸.
#[bug("biases/slopes-go-on", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesGoOn {
    fn slope_between(&self, nth: usize, power: usize) -> f64 {
        self.slope_of_power(power + nth, power)
    }
}

/// takes the second, fourth, .. of the second sequence
///
/// [1::2] was written for [0::2]. These are the slopes of the first sequence again, so heads are doubled.
#[bug("biases/slopes-second-from-two", named_by = "biases/slopes-between-neighbours")]
impl BiasLoops for SlopesSecondFromTwo {
    fn slope_between(&self, nth: usize, power: usize) -> f64 {
        self.slope_of_power(2 * nth, 2 * power)
    }
}

/// takes the first slopes of the next power of two
///
/// Rounding the number of heads up is simpler than two sequences. The steepest heads are there, but the flat ones, which
/// see far, are cut off.
#[bug("biases/slopes-next-power", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesNextPower {
    fn slope(&self, nth: usize, num_heads: usize) -> f64 {
        self.slope_of_power(nth, num_heads.next_power_of_two())
    }
}

/// sorts the slopes
///
/// The second sequence lies between the members of the first, so sorting looks tidy, but it makes heads change places.
#[bug("biases/slopes-sorted", named_by = "biases/slopes-published")]
impl BiasLoops for SlopesSorted {
    fn slopes(&self, num_heads: usize) -> Vec<f64> {
        let mut slopes = Oracle.slopes(num_heads);
        slopes.sort_by(|a, b| b.total_cmp(a));
        slopes
    }
}

/// adds the distance instead of subtracting it
///
/// query minus key was written for key minus query, so far tokens win, most of all in long texts.
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

/// squares the distance
///
/// The bias falls too, only faster: a head with a steep slope sees three tokens.
#[bug("biases/alibi-squared", named_by = "biases/alibi-by-numbers")]
impl BiasLoops for AlibiSquared {
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        -slope * (m as f64 - n as f64).powi(2)
    }
}

/// uses the first head's slope for all heads
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

/// adds the bias before dividing by √hd
///
/// A kernel that scales its input scales the bias as well. With 64 elements a head, the bias is an eighth of what it should
/// be.
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
/// The scale was taken out to protect the bias, and the product lost it too.
#[bug("biases/alibi-not-scaled", named_by = "biases/alibi-any")]
impl BiasLoops for AlibiNotScaled {
    fn alibi_score(&self, product: f64, _: usize, bias: f64) -> f64 {
        product + bias
    }
}

/// adds no bias when decoding one token
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
/// The causal mask is built for a whole text. With keys from earlier calls, the first new query sees only the first key.
#[bug("biases/alibi-restarts", named_by = "biases/alibi-decoding")]
impl BiasLoops for AlibiRestarts {
    fn alibi_position(&self, i: usize, _: usize, _: usize) -> usize {
        i
    }
}

/// uses the absolute distance and lets queries see later keys
///
/// Encoders use a slope in both directions, but a decoder needs the mask as well.
#[bug("biases/alibi-symmetric", named_by = "biases/alibi-no-future")]
impl BiasLoops for AlibiSymmetric {
    fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
        -slope * m.abs_diff(n) as f64
    }
    fn alibi_sees(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// adds −∞ to a later key's score instead of replacing it
///
/// Added to a number, −∞ hides it, but a later key with NaN or infinity comes through: NaN plus −∞ is NaN.
#[bug("biases/mask-added", named_by = "biases/alibi-no-future")]
impl BiasLoops for MaskAdded {
    fn hidden(&self, score: f64) -> f64 {
        score + f64::NEG_INFINITY
    }
}

/// uses query minus key where key minus query is meant
///
/// In one direction all earlier keys count as later ones and are in bucket 0. In both directions the halves are swapped.
#[bug("biases/bucket-sign", named_by = "biases/bucket-of-later-keys")]
impl BiasLoops for BucketSign {
    fn bucket(&self, case: &BucketCase) -> usize {
        Oracle.bucket(&BucketCase { relative: -case.relative, ..*case })
    }
}

/// gives earlier keys only half of the buckets in one direction too
///
/// This is the encoder's rule in the decoder. Half of the table is never read, and a trained table is read in the wrong
/// rows.
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

/// does not halve the buckets in both directions, and lets later keys start at the same bucket
///
/// The count for both directions was used as that for one, so earlier and later keys share their buckets.
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
/// >= was written for >, so the token itself gets a number that it shares with none, instead of the first.
#[bug("biases/bucket-own-key-is-later", named_by = "biases/bucket-halves")]
impl BiasLoops for BucketOwnKeyIsLater {
    fn is_later(&self, case: &BucketCase) -> bool {
        case.bidirectional && case.relative >= 0
    }
}

/// takes one logarithm with base 2 and the other with base e
///
/// A quotient of logarithms has no base only as long as both have the same.
#[bug("biases/bucket-two-logarithms", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketTwoLogarithms {
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        Oracle.nth(distance, exact, count, max_distance) / std::f64::consts::LN_2
    }
}

/// reaches the last bucket one distance too early or too late, with max_distance − 1
///
/// The largest distance of 128 positions is 127, so 127 went into the formula. Most buckets stay as they are.
#[bug("biases/bucket-longest-off-by-one", named_by = "biases/bucket-any")]
impl BiasLoops for BucketLongestOffByOne {
    fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
        // As it is written with a distance of 1 between the two, which is never divided by 0.
        let largest = ((max_distance - 1) as f64 / exact as f64).ln().max(1e-3);
        (distance as f64 / exact as f64).ln() / largest * (count - exact) as f64
    }
}

/// truncates what should be a whole number but falls short of it in its last digit
///
/// ln 8 / ln 2 is 3 on paper, but in f64 it is 2.9999999999999996 or 3, depending on the division. Truncation then gives
/// the bucket before.
#[bug("biases/bucket-cut-short", named_by = "biases/bucket-last-digit")]
impl BiasLoops for BucketCutShort {
    fn whole(&self, nth: f64) -> f64 {
        nth.floor()
    }
}

/// computes the logarithms in f32 instead of f64
///
/// T5's code does so, and at its own sizes there is no difference.
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

/// rounds the logarithm to the nearest whole number instead of down
///
/// A cast truncates and round does not, so each growing bucket starts too early.
#[bug("biases/bucket-rounded", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketRounded {
    fn whole(&self, nth: f64) -> f64 {
        nth.round()
    }
}

/// gives each distance its own bucket, up to the last
///
/// min(j, n − 1) leaves out the logarithmic half. Near keys are right, so texts of a few tokens show nothing.
#[bug("biases/bucket-all-exact", named_by = "biases/bucket-edges")]
impl BiasLoops for BucketAllExact {
    fn bucket_of_distance(&self, distance: usize, count: usize, _: usize) -> usize {
        distance.min(count - 1)
    }
}

/// keeps counting past the last bucket
///
/// The minimum was left out, so a farther key reads a row that belongs to another direction, or none.
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
/// With a cache, each new token is query 0, and all keys seem to be later ones. Generation continues, a little worse.
#[bug("biases/t5-restarts", named_by = "biases/t5-decoding", source = "candle pull request 899")]
impl BiasLoops for T5Restarts {
    fn t5_position(&self, i: usize, _: usize, _: usize) -> usize {
        i
    }
}

/// uses the key's position as the distance
///
/// A bucket for each key was computed once and used for all queries. For the last query it is the right table reversed.
#[bug("biases/t5-by-key-position", named_by = "biases/t5-relative")]
impl BiasLoops for T5ByKeyPosition {
    fn relative(&self, _: usize, n: usize) -> i64 {
        -(n as i64)
    }
}

/// reads the table as heads by buckets
///
/// Both shapes have the same number of elements, and a flat index cannot tell them apart.
#[bug("biases/t5-table-turned", named_by = "biases/t5-reads-its-bucket")]
impl BiasLoops for T5TableTurned {
    fn t5_place(&self, bucket: usize, head: usize, [num_buckets, _]: [usize; 2]) -> usize {
        head * num_buckets + bucket
    }
}

/// keeps only the last gradient of a bucket instead of the sum
///
/// A scatter that assigns was used for one that adds, which is right with one pair per bucket.
#[bug("biases/t5-gradient-last", named_by = "biases/t5-gradient-counts")]
impl BiasLoops for T5GradientLast {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        of_places.last().copied().unwrap_or(0.0)
    }
}

/// adds up the gradient in f32 instead of f64
///
/// A bucket of a long text gathers millions of pairs, and from 2²⁴ on a sum in f32 ignores another 1.
#[bug("biases/t5-gradient-in-f32", named_by = "biases/t5-gradient-in-f64")]
impl BiasLoops for T5GradientInF32 {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        f64::from(of_places.iter().map(|dy| *dy as f32).sum::<f32>())
    }
}

/// averages the gradients of a bucket
///
/// It keeps far buckets, which hold many pairs, from learning faster, but it is not the gradient of this loss.
#[bug("biases/t5-gradient-mean", named_by = "biases/t5-gradient-counts")]
impl BiasLoops for T5GradientMean {
    fn t5_gathered(&self, of_places: &[f64]) -> f64 {
        of_places.iter().sum::<f64>() / of_places.len().max(1) as f64
    }
}

/// takes ln(r₂ j) without the 1
///
/// At distance 0 that is minus infinity, so a token does not see itself. With a small number added against that, near keys
/// win by a lot.
#[bug("biases/kerple-log-of-distance", named_by = "biases/kerple-nothing-at-0")]
impl BiasLoops for KerpleLogOfDistance {
    fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => (1e-6 + r2 * j).ln(),
            Kernel::Power => Oracle.fallen(kernel, r2, j),
        }
    }
}

/// computes ln(1 + r₂) j, with the distance outside the logarithm
///
/// A bracket was closed too early, which makes it ALiBi with a learned slope.
#[bug("biases/kerple-factor-outside", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleFactorOutside {
    fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic => (1.0 + r2).ln() * j,
            Kernel::Power => Oracle.fallen(kernel, r2, j),
        }
    }
}

/// adds what should be subtracted
///
/// The sign was left to training, but r₁ is kept positive, so it can never flip it.
#[bug("biases/kerple-rises", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleRises {
    fn kerple_bias(&self, r1: f64, fallen: f64) -> f64 {
        r1 * fallen
    }
}

/// uses r₁ as it is, even below 0
///
/// An optimizer gets there in one step, and then the farthest keys get the most.
#[bug("biases/kerple-negative-allowed", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleNegativeAllowed {
    fn kept_r1(&self, r1: f64) -> f64 {
        r1
    }
}

/// uses the absolute value of r₁ where 0.01 is meant
///
/// Positive is positive, but the absolute value's gradient flips its sign at 0, and a number below 0 counts as much as one
/// above.
#[bug("biases/kerple-size-of-r1", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleSizeOfR1 {
    fn kept_r1(&self, r1: f64) -> f64 {
        r1.abs()
    }
}

/// lets the exponent grow beyond 2
///
/// The lower bound was kept and the upper one forgotten. j³ falls as well, although it is no longer a kernel.
#[bug("biases/kerple-exponent-above-2", named_by = "biases/kerple-bounds")]
impl BiasLoops for KerpleExponentAbove2 {
    fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
        Oracle.kept_r2(Kernel::Logarithmic, r2)
    }
}

/// keeps the factor in the logarithm below 2 as well
///
/// One class serves both kernels, with a single pair of bounds.
#[bug("biases/kerple-factor-below-2", named_by = "biases/kerple-by-numbers")]
impl BiasLoops for KerpleFactorBelow2 {
    fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
        Oracle.kept_r2(Kernel::Power, r2)
    }
}

/// gives a parameter out of bounds no gradient
///
/// The bound is a clamp on the tape, and a clamp has no slope outside. A parameter once pushed below 0.01 stays there for
/// good.
#[bug("biases/kerple-stuck-at-the-bound", named_by = "biases/kerple-gradient-at-the-bound")]
impl BiasLoops for KerpleStuckAtTheBound {
    fn through_bounds(&self, dr: f64, given: f64, kept: f64) -> f64 {
        if given == kept { dr } else { 0.0 }
    }
}

/// differentiates j^r₂ by j instead of r₂
///
/// r₂ j^(r₂ − 1) is the familiar rule, but here the exponent is learned, so the derivative is j^r₂ ln j.
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

/// leaves out j, the logarithm's inner derivative
///
/// 1 / (1 + r₂ j) is the outer derivative, and at distance 1 both are the same.
#[bug("biases/kerple-inner-slope", named_by = "biases/kerple-gradient-differences")]
impl BiasLoops for KerpleInnerSlope {
    fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
        match kernel {
            Kernel::Logarithmic if j > 0.0 => -r1 / (1.0 + r2 * j),
            _ => Oracle.slope_of_r2(kernel, [r1, r2], j),
        }
    }
}

/// drops the last row of the shifted scores instead of the first
///
/// [:-1] was written for [1:]. The shapes agree, but each row gets another row's distances.
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
/// All rows start with the farthest distance, so only the last query is right.
#[bug("biases/xl-not-shifted", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlNotShifted {
    fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
        rows[i][n]
    }
}

/// reverses the distances: the nearest key gets what belongs to the farthest
///
/// A range goes up instead of down. Near and far change places, and no shape shows it.
#[bug("biases/xl-nearest-first", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlNearestFirst {
    fn by_key(&self, rows: &ByDistance, i: usize, m: usize, n: usize) -> f64 {
        rows[i][m - n]
    }
}

/// treats each key as one position farther away
///
/// The range of distances goes from t to 1 instead of t − 1 to 0.
#[bug("biases/xl-one-too-far", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlOneTooFar {
    fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
        Oracle.sinusoid(j + 1.0, c, hidden_size, base)
    }
}

/// counts the queries from 0 in each call, as if there were no memory
///
/// The keys in memory are past keys, so the distances have to grow by their number.
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

/// swaps u and v
///
/// They have the same shape and initial distribution. Training makes up for it, but a loaded checkpoint does not.
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
/// Attention's own scores were already there, and only the distances were added to them.
#[bug("biases/xl-without-u", named_by = "biases/xl-content-alone")]
impl BiasLoops for XlWithoutU {
    fn content(&self, q: f64, _: f64, _: f64, k: f64) -> f64 {
        q * k
    }
}

/// leaves v out
///
/// Then a query of zeros does not care how far away a key is.
#[bug("biases/xl-without-v", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlWithoutV {
    fn place(&self, q: f64, _: f64, _: f64, r: f64) -> f64 {
        q * r
    }
}

/// divides the product with the key by √hd, but not that with the distance
///
/// The scores came out of attention with their scale, and the bias was added without one.
#[bug("biases/xl-place-not-scaled", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlPlaceNotScaled {
    fn xl_score(&self, content: f64, place: f64, head_dim: usize) -> f64 {
        content / (head_dim as f64).sqrt() + place
    }
}

/// divides by the root of all heads' total size
///
/// The size of a layer was at hand instead of a head's, so the softmax becomes flatter.
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

/// puts all sines before all cosines
///
/// The authors' code does so, and its W_r has its columns in that order too. A file written in one order is read
/// wrongly by code for the other.
#[bug("biases/xl-sines-first", named_by = "biases/xl-place-alone")]
impl BiasLoops for XlSinesFirst {
    fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
        let half = hidden_size / 2;
        Oracle.sinusoid(j, c % half * 2 + c / half, hidden_size, base)
    }
}

/// lets queries see later keys, with whatever the shift leaves there
///
/// After its own key, a shifted row holds a 0 and then the next row. The mask hides it, if there is one.
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
