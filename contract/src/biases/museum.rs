//! Bugs of biases in the scores.

use crate::biases::interface::{BucketCase, Kernel, ScoreBiases};
use crate::biases::oracle::{BiasLoops, ByDistance, implementation};
use crate::component::Bug;
use crate::oracle::Oracle;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl BiasLoops for $name { $($steps)* }
        || -> Box<dyn ScoreBiases> { implementation($name) }
    }};
}

/// All of them.
pub static BUGS: &[Bug<dyn ScoreBiases>] = &[
    Bug {
        id: "biases/slopes-from-one",
        misconception: "begins with exponent 0, so that the first slope is 1",
        story: "Heads are counted from 0, and the formula counts from 1. Every head has the slope of its neighbour, and the \
                last slope is missing.",
        source: Some("aprender pull request 2143"),
        named_by: "biases/slopes-of-powers",
        implementation: bug!(SlopesFromOne {
            fn slope_of_power(&self, nth: usize, n: usize) -> f64 {
                (-8.0 * (nth as f64 - 1.0) / n as f64).exp2()
            }
        }),
    },
    Bug {
        id: "biases/slopes-reversed",
        misconception: "gives the slopes in the opposite order",
        story: "The set of slopes is right, and a model that is trained anew does not care. The heads of a trained model get \
                the slopes of others.",
        source: None,
        named_by: "biases/slopes-of-powers",
        implementation: bug!(SlopesReversed {
            fn slopes(&self, num_heads: usize) -> Vec<f64> {
                (1..=num_heads).rev().map(|nth| self.slope(nth, num_heads)).collect()
            }
        }),
    },
    Bug {
        id: "biases/slopes-all-alike",
        misconception: "gives all heads the last slope",
        story: "The loop over the heads computes one number and writes it everywhere.",
        source: None,
        named_by: "biases/slopes-of-powers",
        implementation: bug!(SlopesAllAlike {
            fn slopes(&self, num_heads: usize) -> Vec<f64> {
                vec![(-8.0f64).exp2(); num_heads]
            }
        }),
    },
    Bug {
        id: "biases/slopes-plain-rule",
        misconception: "takes the rule for powers of 2 for any number of heads",
        story: "2⁻⁸ᵗᐟⁿ has a value for any n. The published code has another rule for those that are no powers of 2, and \
                models with 12 heads were trained with it.",
        source: Some("mlx issue 343, pull request 3071"),
        named_by: "biases/slopes-published",
        implementation: bug!(SlopesPlainRule {
            fn slope(&self, nth: usize, num_heads: usize) -> f64 {
                self.slope_of_power(nth, num_heads)
            }
        }),
    },
    Bug {
        id: "biases/slopes-go-on",
        misconception: "goes on with the first sequence where the second one should begin",
        story: "Only the largest power of two was looked for. The heads beyond it get slopes below 2⁻⁸, one smaller than the \
                other.",
        source: None,
        named_by: "biases/slopes-published",
        implementation: bug!(SlopesGoOn {
            fn slope_between(&self, nth: usize, power: usize) -> f64 {
                self.slope_of_power(power + nth, power)
            }
        }),
    },
    Bug {
        id: "biases/slopes-second-from-two",
        misconception: "takes the second, fourth, .. of the second sequence",
        story: "[1::2] instead of [0::2]. These are the slopes of the first sequence once more, so heads are doubled.",
        source: None,
        named_by: "biases/slopes-between-neighbours",
        implementation: bug!(SlopesSecondFromTwo {
            fn slope_between(&self, nth: usize, power: usize) -> f64 {
                self.slope_of_power(2 * nth, 2 * power)
            }
        }),
    },
    Bug {
        id: "biases/slopes-next-power",
        misconception: "takes the first slopes of the next power of two",
        story: "Rounding the number of heads up is simpler than two sequences. The steepest heads are there, and the flat \
                ones, which see far, are cut off.",
        source: None,
        named_by: "biases/slopes-published",
        implementation: bug!(SlopesNextPower {
            fn slope(&self, nth: usize, num_heads: usize) -> f64 {
                self.slope_of_power(nth, num_heads.next_power_of_two())
            }
        }),
    },
    Bug {
        id: "biases/slopes-sorted",
        misconception: "sorts the slopes",
        story: "The second sequence lies between the members of the first, so sorting them looks tidy. Heads change places.",
        source: None,
        named_by: "biases/slopes-published",
        implementation: bug!(SlopesSorted {
            fn slopes(&self, num_heads: usize) -> Vec<f64> {
                let mut slopes = Oracle.slopes(num_heads);
                slopes.sort_by(|a, b| b.total_cmp(a));
                slopes
            }
        }),
    },
    Bug {
        id: "biases/alibi-favours-far",
        misconception: "adds the distance instead of taking it away",
        story: "query minus key where key minus query was meant. Far tokens win, most of all in long texts.",
        source: Some("attention-gym pull request 86"),
        named_by: "biases/alibi-by-numbers",
        implementation: bug!(AlibiFavoursFar {
            fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
                slope * (m as f64 - n as f64)
            }
        }),
    },
    Bug {
        id: "biases/alibi-squared",
        misconception: "takes the square of the distance",
        story: "It falls too, and faster: a head with a steep slope sees three tokens.",
        source: None,
        named_by: "biases/alibi-by-numbers",
        implementation: bug!(AlibiSquared {
            fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
                -slope * (m as f64 - n as f64).powi(2)
            }
        }),
    },
    Bug {
        id: "biases/alibi-one-head",
        misconception: "takes the first head's slope for all heads",
        story: "A slope of shape [1] is broadcast, and nothing complains.",
        source: None,
        named_by: "biases/alibi-by-numbers",
        implementation: bug!(AlibiOneHead {
            fn alibi_scores(&self, case: &crate::biases::interface::AlibiCase) -> Vec<f64> {
                struct FirstSlope;
                impl BiasLoops for FirstSlope {
                    fn slopes(&self, num_heads: usize) -> Vec<f64> {
                        vec![Oracle.slope(1, num_heads); num_heads]
                    }
                }
                FirstSlope.alibi_scores(case)
            }
        }),
    },
    Bug {
        id: "biases/alibi-before-the-scale",
        misconception: "adds the bias before it divides by √hd",
        story: "A kernel that scales what it is given scales the bias as well. With 64 elements a head, the bias is an eighth \
                of what it should be.",
        source: Some("tt-metal pull request 56406"),
        named_by: "biases/alibi-after-the-scale",
        implementation: bug!(AlibiBeforeTheScale {
            fn alibi_score(&self, product: f64, head_dim: usize, bias: f64) -> f64 {
                (product + bias) / (head_dim as f64).sqrt()
            }
        }),
    },
    Bug {
        id: "biases/alibi-not-scaled",
        misconception: "does not divide the product by √hd",
        story: "The scale was taken out to keep the bias whole, and the product lost it too.",
        source: None,
        named_by: "biases/alibi-any",
        implementation: bug!(AlibiNotScaled {
            fn alibi_score(&self, product: f64, _: usize, bias: f64) -> f64 {
                product + bias
            }
        }),
    },
    Bug {
        id: "biases/alibi-without-bias-in-decoding",
        misconception: "adds nothing when one token is decoded",
        story: "The bias is built for the queries and not for the keys. For one query it is slope times 0, of shape [1, 1], \
                and is broadcast over all keys. Texts are generated without ALiBi, and nothing fails.",
        source: Some("keras-hub pull request 2977"),
        named_by: "biases/alibi-decoding",
        implementation: bug!(AlibiWithoutBiasInDecoding {
            fn alibi_scores(&self, case: &crate::biases::interface::AlibiCase) -> Vec<f64> {
                struct Flat;
                impl BiasLoops for Flat {
                    fn alibi_bias(&self, _: f64, _: usize, _: usize) -> f64 {
                        0.0
                    }
                }
                if case.shape[0] == 1 { Flat.alibi_scores(case) } else { Oracle.alibi_scores(case) }
            }
        }),
    },
    Bug {
        id: "biases/alibi-restarts",
        misconception: "counts the queries from 0 in each call, and so sees too little",
        story: "The causal mask is built for a whole text. With keys of earlier calls, the first new query sees the first key \
                alone.",
        source: None,
        named_by: "biases/alibi-decoding",
        implementation: bug!(AlibiRestarts {
            fn alibi_position(&self, i: usize, _: usize, _: usize) -> usize {
                i
            }
        }),
    },
    Bug {
        id: "biases/alibi-symmetric",
        misconception: "takes the size of the distance and lets queries see later keys",
        story: "A slope for both directions is what encoders use. A decoder needs the mask as well.",
        source: None,
        named_by: "biases/alibi-no-future",
        implementation: bug!(AlibiSymmetric {
            fn alibi_bias(&self, slope: f64, m: usize, n: usize) -> f64 {
                -slope * m.abs_diff(n) as f64
            }
            fn alibi_sees(&self, _: usize, _: usize) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "biases/mask-added",
        misconception: "adds −∞ to the score of a later key, where it is to have the score −∞",
        story: "Added to a number, −∞ hides it. A later key that holds NaN or infinity comes through: NaN plus −∞ is NaN.",
        source: None,
        named_by: "biases/alibi-no-future",
        implementation: bug!(MaskAdded {
            fn hidden(&self, score: f64) -> f64 {
                score + f64::NEG_INFINITY
            }
        }),
    },
    Bug {
        id: "biases/bucket-sign",
        misconception: "takes query minus key where key minus query is asked",
        story: "In one direction, all earlier keys count as later ones and are in bucket 0. In both directions, the halves are \
                exchanged.",
        source: None,
        named_by: "biases/bucket-of-later-keys",
        implementation: bug!(BucketSign {
            fn bucket(&self, case: &BucketCase) -> usize {
                Oracle.bucket(&BucketCase { relative: -case.relative, ..*case })
            }
        }),
    },
    Bug {
        id: "biases/bucket-halves-in-one-direction",
        misconception: "gives earlier keys half of the buckets in one direction too",
        story: "The encoder's rule in the decoder. Half of the table is never read, and a trained table is read in the wrong \
                rows.",
        source: None,
        named_by: "biases/bucket-of-later-keys",
        implementation: bug!(BucketHalvesInOneDirection {
            fn buckets_of_direction(&self, case: &BucketCase) -> usize {
                (case.num_buckets / 2).max(1)
            }
            fn exact(&self, count: usize) -> usize {
                (count / 2).max(1)
            }
            fn last(&self, bucket: usize, count: usize) -> usize {
                bucket.min(count - 1)
            }
        }),
    },
    Bug {
        id: "biases/bucket-not-halved",
        misconception: "does not halve the buckets in both directions, and lets later keys begin at the same place",
        story: "The number of buckets of one direction was forgotten. Earlier and later keys share their buckets.",
        source: None,
        named_by: "biases/bucket-halves",
        implementation: bug!(BucketNotHalved {
            fn buckets_of_direction(&self, case: &BucketCase) -> usize {
                case.num_buckets
            }
            fn is_later(&self, _: &BucketCase) -> bool {
                false
            }
        }),
    },
    Bug {
        id: "biases/bucket-own-key-is-later",
        misconception: "puts distance 0 into the second half",
        story: ">= 0 instead of > 0. The token itself shares a number with no one and was meant to be the first.",
        source: None,
        named_by: "biases/bucket-halves",
        implementation: bug!(BucketOwnKeyIsLater {
            fn is_later(&self, case: &BucketCase) -> bool {
                case.bidirectional && case.relative >= 0
            }
        }),
    },
    Bug {
        id: "biases/bucket-two-logarithms",
        misconception: "takes one logarithm with base 2 and the other with base e",
        story: "A quotient of logarithms has no base, as long as both have the same.",
        source: None,
        named_by: "biases/bucket-edges",
        implementation: bug!(BucketTwoLogarithms {
            fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
                Oracle.nth(distance, exact, count, max_distance) / std::f64::consts::LN_2
            }
        }),
    },
    Bug {
        id: "biases/bucket-longest-off-by-one",
        misconception: "reaches the last bucket one distance too early or too late, with max_distance − 1",
        story: "The largest distance of 128 positions is 127, so 127 was put into the formula. Most buckets stay as they are.",
        source: None,
        named_by: "biases/bucket-any",
        implementation: bug!(BucketLongestOffByOne {
            fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
                // As it is written with a distance of 1 between the two, which is never divided by 0.
                let largest = ((max_distance - 1) as f64 / exact as f64).ln().max(1e-3);
                (distance as f64 / exact as f64).ln() / largest * (count - exact) as f64
            }
        }),
    },
    Bug {
        id: "biases/bucket-cut-short",
        misconception: "cuts what should be a whole number, and is one less by its last digit",
        story: "ln 8 / ln 2 is 3 on paper, and 2.9999999999999996 or 3 in f64, as the division has it. What is cut then is in \
                the bucket before.",
        source: None,
        named_by: "biases/bucket-last-digit",
        implementation: bug!(BucketCutShort {
            fn whole(&self, nth: f64) -> f64 {
                nth.floor()
            }
        }),
    },
    Bug {
        id: "biases/bucket-logarithms-in-f32",
        misconception: "takes the logarithms in f32, where f64 is demanded",
        story: "T5's code does. With its own sizes nobody can tell.",
        source: None,
        named_by: "biases/bucket-last-digit",
        implementation: bug!(BucketLogarithmsInF32 {
            fn nth(&self, distance: usize, exact: usize, count: usize, max_distance: usize) -> f64 {
                let [of, largest] = [distance, max_distance].map(|d| (d as f32 / exact as f32).ln());
                f64::from(of / largest * (count - exact) as f32)
            }
            fn whole(&self, nth: f64) -> f64 {
                (nth + 1e-6).floor()
            }
        }),
    },
    Bug {
        id: "biases/bucket-rounded",
        misconception: "rounds the logarithm to the nearest whole number, not down",
        story: "A cast cuts and round does not. Each growing bucket begins too early.",
        source: None,
        named_by: "biases/bucket-edges",
        implementation: bug!(BucketRounded {
            fn whole(&self, nth: f64) -> f64 {
                nth.round()
            }
        }),
    },
    Bug {
        id: "biases/bucket-all-exact",
        misconception: "gives each distance a bucket of its own, up to the last",
        story: "The logarithmic half was left out: min(j, n − 1). Near keys are right, and texts of a few tokens show nothing.",
        source: None,
        named_by: "biases/bucket-edges",
        implementation: bug!(BucketAllExact {
            fn bucket_of_distance(&self, distance: usize, count: usize, _: usize) -> usize {
                distance.min(count - 1)
            }
        }),
    },
    Bug {
        id: "biases/bucket-not-clamped",
        misconception: "goes on counting behind the last bucket",
        story: "The minimum was left out. A farther key reads a row that another direction owns, or none.",
        source: Some("candle pull request 1312"),
        named_by: "biases/bucket-never-decreases",
        implementation: bug!(BucketNotClamped {
            fn last(&self, bucket: usize, _: usize) -> usize {
                bucket
            }
            fn t5_place(&self, bucket: usize, head: usize, [num_buckets, nh]: [usize; 2]) -> usize {
                // Behind the table there is none: what stands there is anything.
                bucket % num_buckets * nh + head
            }
        }),
    },
    Bug {
        id: "biases/t5-restarts",
        misconception: "counts the queries from 0 in each call",
        story: "With a cache, each new token is query 0, and all keys seem to be later ones. Generation goes on, a little worse.",
        source: Some("candle pull request 899"),
        named_by: "biases/t5-decoding",
        implementation: bug!(T5Restarts {
            fn t5_position(&self, i: usize, _: usize, _: usize) -> usize {
                i
            }
        }),
    },
    Bug {
        id: "biases/t5-by-key-position",
        misconception: "takes the position of the key for the distance",
        story: "A bucket for each key was computed once and used for all queries. For the last query it is the right table \
                turned around.",
        source: None,
        named_by: "biases/t5-relative",
        implementation: bug!(T5ByKeyPosition {
            fn relative(&self, _: usize, n: usize) -> i64 {
                -(n as i64)
            }
        }),
    },
    Bug {
        id: "biases/t5-table-turned",
        misconception: "reads the table as heads by buckets",
        story: "Both shapes have the same number of elements, and a flat index does not tell them apart.",
        source: None,
        named_by: "biases/t5-reads-its-bucket",
        implementation: bug!(T5TableTurned {
            fn t5_place(&self, bucket: usize, head: usize, [num_buckets, _]: [usize; 2]) -> usize {
                head * num_buckets + bucket
            }
        }),
    },
    Bug {
        id: "biases/t5-gradient-last",
        misconception: "keeps the last gradient of a bucket instead of the sum",
        story: "A scatter that assigns where one that adds was meant. With one pair in each bucket it is right.",
        source: None,
        named_by: "biases/t5-gradient-counts",
        implementation: bug!(T5GradientLast {
            fn t5_gathered(&self, of_places: &[f64]) -> f64 {
                of_places.last().copied().unwrap_or(0.0)
            }
        }),
    },
    Bug {
        id: "biases/t5-gradient-in-f32",
        misconception: "adds up in f32, where f64 is demanded",
        story: "A bucket of a long text gathers millions of pairs. From 2²⁴ on, a sum in f32 does not feel another 1.",
        source: None,
        named_by: "biases/t5-gradient-in-f64",
        implementation: bug!(T5GradientInF32 {
            fn t5_gathered(&self, of_places: &[f64]) -> f64 {
                f64::from(of_places.iter().map(|dy| *dy as f32).sum::<f32>())
            }
        }),
    },
    Bug {
        id: "biases/t5-gradient-mean",
        misconception: "averages the gradients of a bucket",
        story: "So that far buckets, which hold many pairs, learn no faster. It is another loss, and no gradient of this one.",
        source: None,
        named_by: "biases/t5-gradient-counts",
        implementation: bug!(T5GradientMean {
            fn t5_gathered(&self, of_places: &[f64]) -> f64 {
                of_places.iter().sum::<f64>() / of_places.len().max(1) as f64
            }
        }),
    },
    Bug {
        id: "biases/kerple-log-of-distance",
        misconception: "takes ln(r₂ j) without the 1",
        story: "At distance 0 that is minus infinity, so a token does not see itself; someone adds a small number, and near \
                keys win by a lot.",
        source: None,
        named_by: "biases/kerple-nothing-at-0",
        implementation: bug!(KerpleLogOfDistance {
            fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
                match kernel {
                    Kernel::Logarithmic => (1e-6 + r2 * j).ln(),
                    Kernel::Power => Oracle.fallen(kernel, r2, j),
                }
            }
        }),
    },
    Bug {
        id: "biases/kerple-factor-outside",
        misconception: "takes ln(1 + r₂) j, with the distance outside of the logarithm",
        story: "A bracket was closed too early. It is ALiBi with a learned slope.",
        source: None,
        named_by: "biases/kerple-by-numbers",
        implementation: bug!(KerpleFactorOutside {
            fn fallen(&self, kernel: Kernel, r2: f64, j: f64) -> f64 {
                match kernel {
                    Kernel::Logarithmic => (1.0 + r2).ln() * j,
                    Kernel::Power => Oracle.fallen(kernel, r2, j),
                }
            }
        }),
    },
    Bug {
        id: "biases/kerple-rises",
        misconception: "adds what should be taken away",
        story: "The sign was left to what is learned. r₁ is kept positive, so it can never turn it.",
        source: None,
        named_by: "biases/kerple-by-numbers",
        implementation: bug!(KerpleRises {
            fn kerple_bias(&self, r1: f64, fallen: f64) -> f64 {
                r1 * fallen
            }
        }),
    },
    Bug {
        id: "biases/kerple-negative-allowed",
        misconception: "takes r₁ as it is, also below 0",
        story: "An optimizer takes it there in one step, and then the farthest keys get the most.",
        source: None,
        named_by: "biases/kerple-bounds",
        implementation: bug!(KerpleNegativeAllowed {
            fn kept_r1(&self, r1: f64) -> f64 {
                r1
            }
        }),
    },
    Bug {
        id: "biases/kerple-size-of-r1",
        misconception: "takes the size of r₁ where 0.01 is meant",
        story: "Positive is positive. But the gradient of the size turns its sign at 0, and a number below 0 counts as much as \
                one above.",
        source: None,
        named_by: "biases/kerple-bounds",
        implementation: bug!(KerpleSizeOfR1 {
            fn kept_r1(&self, r1: f64) -> f64 {
                r1.abs()
            }
        }),
    },
    Bug {
        id: "biases/kerple-exponent-above-2",
        misconception: "lets the exponent grow beyond 2",
        story: "j³ falls as well, and nobody sees that it is no kernel any more. The lower bound was kept, the upper one \
                forgotten.",
        source: None,
        named_by: "biases/kerple-bounds",
        implementation: bug!(KerpleExponentAbove2 {
            fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
                Oracle.kept_r2(Kernel::Logarithmic, r2)
            }
        }),
    },
    Bug {
        id: "biases/kerple-factor-below-2",
        misconception: "keeps the factor in the logarithm below 2 as well",
        story: "One class for both kernels, and one pair of bounds.",
        source: None,
        named_by: "biases/kerple-by-numbers",
        implementation: bug!(KerpleFactorBelow2 {
            fn kept_r2(&self, _: Kernel, r2: f64) -> f64 {
                Oracle.kept_r2(Kernel::Power, r2)
            }
        }),
    },
    Bug {
        id: "biases/kerple-stuck-at-the-bound",
        misconception: "gives a number out of bounds no gradient",
        story: "The bound was written as a clamp on the tape, and a clamp has no slope outside. What was once pushed below \
                0.01 stays there for good.",
        source: None,
        named_by: "biases/kerple-gradient-at-the-bound",
        implementation: bug!(KerpleStuckAtTheBound {
            fn through_bounds(&self, dr: f64, given: f64, kept: f64) -> f64 {
                if given == kept { dr } else { 0.0 }
            }
        }),
    },
    Bug {
        id: "biases/kerple-power-rule",
        misconception: "differentiates j^r₂ by j where r₂ is asked",
        story: "r₂ j^(r₂ − 1) is the rule that everybody knows. The exponent is what is learned, so it is j^r₂ ln j.",
        source: None,
        named_by: "biases/kerple-gradient-differences",
        implementation: bug!(KerplePowerRule {
            fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
                match kernel {
                    Kernel::Logarithmic => Oracle.slope_of_r2(kernel, [r1, r2], j),
                    Kernel::Power if j == 0.0 => 0.0,
                    Kernel::Power => -r1 * r2 * j.powf(r2 - 1.0),
                }
            }
        }),
    },
    Bug {
        id: "biases/kerple-inner-slope",
        misconception: "leaves out j, the inner slope of the logarithm",
        story: "1 / (1 + r₂ j) is the outer slope. At distance 1 both are the same.",
        source: None,
        named_by: "biases/kerple-gradient-differences",
        implementation: bug!(KerpleInnerSlope {
            fn slope_of_r2(&self, kernel: Kernel, [r1, r2]: [f64; 2], j: f64) -> f64 {
                match kernel {
                    Kernel::Logarithmic if j > 0.0 => -r1 / (1.0 + r2 * j),
                    _ => Oracle.slope_of_r2(kernel, [r1, r2], j),
                }
            }
        }),
    },
    Bug {
        id: "biases/xl-first-row-kept",
        misconception: "cuts the last row of the shifted scores where the first one should go",
        story: "[:-1] instead of [1:]. The shapes agree, and each row gets the distances of another one.",
        source: Some("annotated_deep_learning_paper_implementations issue 185"),
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlFirstRowKept {
            fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
                let t = rows[0].len();
                let at = i * t + n;
                match (at / (t + 1), at % (t + 1)) {
                    (_, 0) => 0.0,
                    (row, column) => rows[row][column - 1],
                }
            }
        }),
    },
    Bug {
        id: "biases/xl-not-shifted",
        misconception: "does not shift the scores by distance",
        story: "All rows begin with the farthest distance. Only the last query is right.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlNotShifted {
            fn by_key(&self, rows: &ByDistance, i: usize, _: usize, n: usize) -> f64 {
                rows[i][n]
            }
        }),
    },
    Bug {
        id: "biases/xl-nearest-first",
        misconception: "turns the distances around: the nearest key gets what belongs to the farthest",
        story: "A range that goes up where one that goes down was meant. Near and far change places, and no shape tells.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlNearestFirst {
            fn by_key(&self, rows: &ByDistance, i: usize, m: usize, n: usize) -> f64 {
                rows[i][m - n]
            }
        }),
    },
    Bug {
        id: "biases/xl-one-too-far",
        misconception: "takes each key for one position farther away",
        story: "The range of distances goes from t to 1 and not from t − 1 to 0.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlOneTooFar {
            fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
                Oracle.sinusoid(j + 1.0, c, hidden_size, base)
            }
        }),
    },
    Bug {
        id: "biases/xl-restarts",
        misconception: "counts the queries from 0 in each call, as if there were no memory",
        story: "The keys of the memory are past keys, so the distances have to grow by their number.",
        source: Some("x-transformers pull request 103"),
        named_by: "biases/xl-decoding",
        implementation: bug!(XlRestarts {
            fn xl_position(&self, i: usize, _: usize, _: usize) -> usize {
                i
            }
        }),
    },
    Bug {
        id: "biases/xl-u-and-v-exchanged",
        misconception: "exchanges u and v",
        story: "They have one shape and start from one distribution. Training makes up for it; a loaded checkpoint does not.",
        source: None,
        named_by: "biases/xl-content-alone",
        implementation: bug!(XlUAndVExchanged {
            fn content(&self, q: f64, _: f64, v: f64, k: f64) -> f64 {
                (q + v) * k
            }
            fn place(&self, q: f64, u: f64, _: f64, r: f64) -> f64 {
                (q + u) * r
            }
        }),
    },
    Bug {
        id: "biases/xl-without-u",
        misconception: "leaves u out",
        story: "Attention's own scores are there already, and only the distances were added to them.",
        source: None,
        named_by: "biases/xl-content-alone",
        implementation: bug!(XlWithoutU {
            fn content(&self, q: f64, _: f64, _: f64, k: f64) -> f64 {
                q * k
            }
        }),
    },
    Bug {
        id: "biases/xl-without-v",
        misconception: "leaves v out",
        story: "Then a query of zeros does not care how far a key is away.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlWithoutV {
            fn place(&self, q: f64, _: f64, _: f64, r: f64) -> f64 {
                q * r
            }
        }),
    },
    Bug {
        id: "biases/xl-place-not-scaled",
        misconception: "divides the product with the key by √hd, and not that with the distance",
        story: "The scores came out of attention with their scale, and the bias was added to them as it was.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlPlaceNotScaled {
            fn xl_score(&self, content: f64, place: f64, head_dim: usize) -> f64 {
                content / (head_dim as f64).sqrt() + place
            }
        }),
    },
    Bug {
        id: "biases/xl-scaled-by-all-heads",
        misconception: "divides by the root of the size of all heads",
        story: "The size of a layer was at hand where that of a head was meant. The softmax becomes flatter.",
        source: Some("conformer pull request 55"),
        named_by: "biases/xl-content-alone",
        implementation: bug!(XlScaledByAllHeads {
            fn xl_scores(&self, case: &crate::biases::interface::XlCase) -> Vec<f64> {
                let heads = (case.shape[2] as f64).sqrt();
                Oracle.xl_scores(case).into_iter().map(|score| score / heads).collect()
            }
        }),
    },
    Bug {
        id: "biases/xl-sines-first",
        misconception: "has all sines before all cosines",
        story: "The authors' code has them so, and then W_r has its columns in that order too. A file with one order, read by \
                code with the other, is wrong.",
        source: None,
        named_by: "biases/xl-place-alone",
        implementation: bug!(XlSinesFirst {
            fn sinusoid(&self, j: f64, c: usize, hidden_size: usize, base: f64) -> f64 {
                let half = hidden_size / 2;
                Oracle.sinusoid(j, c % half * 2 + c / half, hidden_size, base)
            }
        }),
    },
    Bug {
        id: "biases/xl-future-seen",
        misconception: "lets queries see later keys, with what the shift leaves there",
        story: "Behind its own key, a shifted row holds a 0 and then the next row. The mask hides it, if there is one.",
        source: Some("espnet issue 2684"),
        named_by: "biases/xl-no-future",
        implementation: bug!(XlFutureSeen {
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
        }),
    },
];
