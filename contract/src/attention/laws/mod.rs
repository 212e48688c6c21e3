//! What grouped-query attention and its cache promise.

mod cache;
mod gradients;
mod tolerance;
mod values;

pub(super) use cache::{Pieces, keeps_special, matches_pieces};
pub(super) use gradients::{
    Asked, Rows, matches_dk, matches_dq, matches_dv, matches_softmax_back, matches_y,
};
pub(super) use values::{matches_mask, matches_repeat, matches_repeat_back};

use crate::attention::interface::*;
use crate::category::Category;
use crate::component::{Invariant, NET};
use crate::describe::List;
use crate::graded_cases::Draw;
use crate::run::Run;
use proptest::prelude::*;
use std::fmt;

type Attention = dyn GroupedQueryAttention;

macro_rules! laws {
    ($($id:literal, $chapter:literal, $category:ident, $weight:literal, $check:expr, $stays:expr;
       $sentence:literal; $formula:literal;)+) => {
        /// All of them, the most telling first.
        pub static INVARIANTS: &[Invariant<Attention>] = &[$(Invariant {
            id: concat!("attention/", $id),
            sentence: $sentence,
            formula: $formula,
            chapter: concat!("attention#", $chapter),
            category: Category::$category,
            weight: $weight,
            stays: $stays,
            check: $check,
        },)+];
    };
}

laws! {
    "repeat-neighbours", "groups", Order, 2, values::repeat_neighbours,
        Some("The order that everybody must have, in numbers that are known by heart.");
        "Repeated heads stand beside each other, 0, 0, 1, 1, and not in turns, 0, 1, 0, 1.";
        "repeat(x, n)[j] = x[j / n]";
    "repeat-any-size", "groups", Order, 1, values::repeat_any_size, Some(NET);
        "Heads of any number and size are repeated in that order.";
        "repeat(x, n)[j] = x[j / n]";
    "repeat-gradient", "groups", Gradient, 1, values::repeat_gradient, Some(NET);
        "The gradient of a head is the sum over its copies.";
        "dx[j] = Σ dy[i] over the copies i of j";
    "mask-triangle", "mask", Mask, 1, values::mask_triangle,
        Some("The mask that is known by heart.");
        "With nothing in the cache, row t of the mask sees columns 0 to t: a triangle with its diagonal.";
        "p = 0  ⇒  mask[t][j] = 1 where j ≤ t";
    "mask-with-cache", "mask", Mask, 2, values::mask_with_cache,
        Some("The mask that is known by heart, where tokens came before.");
        "With p positions in the cache, the mask has p + s columns, and every row sees the first p + 1 at least.";
        "mask[t][j] = 1 where j ≤ p + t";
    "mask-tail", "mask", Mask, 1, values::mask_tail,
        Some("A law without an oracle: it compares masks with each other.");
        "The mask of the last s tokens of a text is the last s rows of the text's mask.";
        "mask(s, t − s) = the last s rows of mask(t, 0)";
    "mask-any-size", "mask", Mask, 1, values::mask_any_size, Some(NET);
        "Any number of new tokens after any number in the cache has this mask.";
        "mask[t][j] = 1 where j ≤ p + t";
    "first-token", "definition", Statistics, 1, values::first_token,
        None;
        "The first token of a text sees itself alone, so it gets its own value, bit for bit, however low its score is.";
        "p = 0  ⇒  y₀ = v₀";
    "equal-scores", "definition", Statistics, 2, values::equal_scores,
        Some("It needs no exponential: the answer is a plain mean.");
        "A query of zeros gives all positions one score, and gets the mean of the values that it sees.";
        "q = 0  ⇒  y = mean of v₀ .. v at p + t";
    "score-scale", "scale", Statistics, 2, values::score_scale,
        None;
        "Scores are divided by the root of the head size: a product of √hd · ln 3 weighs three times as much as one of 0.";
        "q·k₀ = √hd · ln 3,  q·k₁ = 0  ⇒  weights 3/4 and 1/4";
    "causal", "mask", Mask, 3, values::causal,
        Some("A law without an oracle: it compares attention with itself, at each position.");
        "Other keys and values at a position change no row before it, not by a bit, and every row from it on.";
        "k′, v′ differ at j  ⇒  y_t unchanged for p + t < j";
    "unseen-keys", "mask", Mask, 2, values::unseen_keys,
        None;
        "A key that a row does not see has no part in it, whatever it holds, also NaN and infinities.";
        "k_j = NaN or ±∞  ⇒  y_t unchanged for p + t < j";
    "key-shift", "softmax", Statistics, 2, values::key_shift,
        Some("What a softmax knows of its scores: their differences. It needs no oracle.");
        "One vector added to all keys changes nothing: all scores of a query grow by one number.";
        "y(q, k + c, v) = y(q, k, v)";
    "large-scores", "softmax", Precision, 2, values::large_scores,
        None;
        "Scores of hundreds up to a million, of either sign, give numbers, because the largest is subtracted first.";
        "softmax(x) = softmax(x − max x)";
    "weights-sum-to-one", "softmax", Statistics, 2, values::weights_sum_to_one,
        Some("It looks at the weights alone, without an oracle.");
        "The weights of a row sum to 1: if all values are one number, the result is that number.";
        "v = c  ⇒  y = c";
    "decode", "mask", Mask, 3, values::decode,
        Some("A law without an oracle: what a cache is for.");
        "Fewer queries than keys are the last ones: their rows are those of a call with all queries.";
        "y(q_last, k, v) = the last rows of y(q, k, v)";
    "past-is-a-bag", "definition", Order, 1, values::past_is_a_bag,
        Some("It says what attention does not know: the order of what it reads.");
        "Keys and values may change places together: the last token's result stays.";
        "y(q, P·k, P·v) = y(q, k, v), for a query that sees all";
    "groups-are-copies", "groups", Order, 2, values::groups_are_copies,
        Some("A law without an oracle: it compares grouped heads with heads of their own.");
        "Grouped heads give what as many key heads as query heads give, if each is a copy of its group's.";
        "y(q, k, v) = y(q, repeat(k), repeat(v))";
    "heads-change-places", "groups", Order, 1, values::heads_change_places,
        Some("A law without an oracle: only the group tells a query head from another.");
        "The query heads of one group may change places, and their results change places with them.";
        "y(P·q, k, v) = P·y(q, k, v), P within the groups";
    "batch-rows-apart", "definition", Order, 1, values::batch_rows_apart,
        None;
        "A text of NaN gives NaN, and leaves the other texts of the batch as they were, bit for bit.";
        "row b of q, k, v is NaN  ⇒  row b of y is NaN, the others unchanged";
    "forward-f64-loops", "definition", Statistics, 3, values::forward_f64_loops, Some(NET);
        "On any input, y is what plain f64 loops give.";
        "y = softmax(q·kᵀ / √hd + mask) · v";
    "forward-refuses", "groups", Refusal, 1, values::forward_refuses,
        None;
        "Key heads that do not divide the query heads are refused, and so are more queries than keys.";
        "nh mod nkv ≠ 0, or t < s  ⇒  an error";
    "gradient-differences", "gradient", Gradient, 2, gradients::gradient_differences,
        None;
        "The gradients are the slopes that differences of the implementation's own outputs show.";
        "dx ≈ (8(L(x+δ) − L(x−δ)) − (L(x+2δ) − L(x−2δ))) / 12δ";
    "gradient-of-the-future", "gradient", Mask, 2, gradients::gradient_of_the_future,
        Some("Exactly 0, without a tolerance: it says what a mask means for a gradient.");
        "What a token does not see gets no gradient from it: exactly 0.";
        "dy is 0 but for the first new token  ⇒  dk, dv are 0 behind p";
    "gradient-of-values-adds-up", "gradient", Gradient, 2, gradients::gradient_of_values_adds_up,
        Some("A sum that needs no softmax: it tells whether a group's heads are all counted.");
        "The gradients of all values of a head add up to dy, over all queries and all heads of its group.";
        "Σ_j dv_j = Σ_t Σ_group dy_t";
    "gradient-of-keys-cancels", "gradient", Gradient, 2, gradients::gradient_of_keys_cancels,
        Some("It follows from key-shift, and needs no oracle.");
        "The gradients of all keys of a head add up to 0, because one vector more in all keys changes nothing.";
        "Σ_j dk_j = 0";
    "gradient-of-queries", "gradient", Gradient, 2, gradients::gradient_of_queries, Some(NET);
        "On any input, dq is what plain f64 loops give.";
        "dq_t = Σ_j w_tj (dw_tj − Σ w·dw) k_j / √hd";
    "gradient-of-keys", "gradient", Gradient, 2, gradients::gradient_of_keys, Some(NET);
        "On any input, dk is what plain f64 loops give.";
        "dk_j = Σ_group Σ_t w_tj (dw_tj − Σ w·dw) q_t / √hd";
    "gradient-of-values", "gradient", Gradient, 2, gradients::gradient_of_values, Some(NET);
        "On any input, dv is what plain f64 loops give.";
        "dv_j = Σ_group Σ_t w_tj dy_t";
    "softmax-gradient-sums-to-zero", "softmax-gradient", Gradient, 2, gradients::softmax_gradient_sums_to_zero,
        Some("It tells a gradient that forgets the sum, without an oracle.");
        "The gradients of a row's scores add up to 0, because its weights go on adding up to 1.";
        "Σ dx = 0, per row";
    "softmax-gradient-of-certainty", "softmax-gradient", Gradient, 1, gradients::softmax_gradient_of_certainty,
        Some("The answer is known by heart, and it is why attention can stop learning.");
        "A row that gives all its weight to one position has no gradient, whatever dy is.";
        "y = 0 and 1 only  ⇒  dx = 0";
    "softmax-gradient-of-a-level", "softmax-gradient", Gradient, 1, gradients::softmax_gradient_of_a_level,
        Some("A law without an oracle: it compares the gradient with itself.");
        "One number added to all dy of a row changes nothing.";
        "dx(y, dy + c) = dx(y, dy)";
    "softmax-gradient-f64-loops", "softmax-gradient", Gradient, 2, gradients::softmax_gradient_f64_loops, Some(NET);
        "On any rows, also such as do not sum to 1, dx is what plain f64 loops give.";
        "dx = y · (dy − Σ y·dy)";
    "cache-keeps", "cache", State, 2, cache::cache_keeps,
        Some("What a cache is, in small numbers.");
        "A cache gives back all keys and values that it was given, in their order, bit for bit, in every batch row.";
        "push(a), push(b)  ⇒  a then b";
    "pieces-are-one-call", "cache", State, 3, cache::pieces_are_one_call,
        Some("A law without an oracle: it is what a user of the cache relies on.");
        "A text in pieces, or token by token, gives what one call gives.";
        "y of the pieces = y of the whole";
    "full-cache-refuses", "cache", Refusal, 2, cache::full_cache_refuses,
        None;
        "A piece that does not fit is refused, and nothing is overwritten; one that just fits is taken.";
        "p + s > capacity  ⇒  an error";
    "refused-piece-changes-nothing", "cache", State, 2, cache::refused_piece_changes_nothing,
        None;
        "A refused piece leaves the cache as it was, and the next piece that fits goes on from there.";
        "push(a), error, push(b)  ⇒  a then b";
    "cache-refuses-other-shapes", "cache", Refusal, 1, cache::cache_refuses_other_shapes,
        Some("The refusal alone, whatever comes after it.");
        "Another batch, other heads or another head size than those that are kept are refused.";
        "[b, nkv, hd] differs from what is kept  ⇒  an error";
    "caches-are-apart", "cache", State, 1, cache::caches_are_apart,
        None;
        "Two caches share nothing: each block of a model has one of its own.";
        "push to one  ⇒  the other unchanged";
    "cache-any-size", "cache", State, 1, cache::cache_any_size, Some(NET);
        "Pieces of any sizes are kept, in any number of batch rows and heads.";
        "push(a), push(b), push(c)  ⇒  a then b then c";
}

// --- inputs ---------------------------------------------------------------------------------

/// `b`, `s` and `t`; query and key heads; the head size.
fn sizes(
    [batch, queries, keys]: [usize; 3],
    heads: (usize, usize),
    head_dim: usize,
) -> AttendSizes {
    let (num_heads, num_kv_heads) = heads;
    AttendSizes { batch, queries, keys, num_heads, num_kv_heads, head_dim }
}

/// Uneven values of both signs. The queries are a quarter of the keys, so that no weight is nearly 1.
fn case_of(sizes: AttendSizes, salt: u64) -> AttendCase {
    let n = |shape: [usize; 4]| shape.iter().product();
    let mut draw = Draw::new(&Run::default(), salt);
    let q = draw.values(n(sizes.of_queries())).iter().map(|q| q / 4.0).collect();
    let k = draw.values(n(sizes.of_keys()));
    AttendCase { sizes, q, k, v: draw.values(n(sizes.of_keys())) }
}

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Case {
    case: AttendCase,
    dy: Vec<f32>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy = {}", List(dy))
    }
}

/// Up to two texts of up to three new tokens, some of them after others, in one to three groups.
fn cases() -> impl Strategy<Value = Case> {
    let heads = prop::sample::select(vec![(1, 1), (2, 1), (2, 2), (4, 2), (3, 1), (6, 3)]);
    (1..=2usize, 1..=3usize, 0..=2usize, heads, 1..=4usize).prop_flat_map(|(b, s, p, heads, hd)| {
        let sizes = sizes([b, s, p + s], heads, hd);
        let n = |shape: [usize; 4]| shape.iter().product::<usize>();
        let values = |n| proptest::collection::vec(-2.0f32..2.0, n);
        let (queries, keys) = (n(sizes.of_queries()), n(sizes.of_keys()));
        (values(queries), values(keys), values(keys), values(queries))
            .prop_map(move |(q, k, v, dy)| Case { case: AttendCase { sizes, q, k, v }, dy })
    })
}
