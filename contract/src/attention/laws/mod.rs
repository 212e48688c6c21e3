//! What grouped-query attention and its cache promise.

mod cache;
mod gradients;
mod tolerance;
mod values;
mod window;

pub(super) use cache::{Pieces, keeps_special, matches_pieces};
pub(super) use gradients::{
    Asked, Rows, matches_dk, matches_dq, matches_dv, matches_softmax_back, matches_y,
};
pub(super) use values::{matches_mask, matches_repeat, matches_repeat_back};
pub(super) use window::matches_window;

use crate::attention::interface::*;
use crate::component::laws;
use crate::describe::List;
use crate::graded_cases::Draw;
use crate::run::Run;
use proptest::prelude::*;
use std::fmt;

type Attention = dyn GroupedQueryAttention;

laws! {
    values::repeat_neighbours, values::repeat_any_size, values::repeat_gradient, values::mask_triangle,
    values::mask_with_cache, values::mask_tail, values::mask_any_size, values::first_token, values::equal_scores,
    values::score_scale, values::causal, values::unseen_keys, values::key_shift, values::large_scores,
    values::weights_sum_to_one, values::decode, values::past_is_a_bag, values::groups_are_copies,
    values::heads_change_places, values::batch_rows_apart, values::forward_f64_loops, values::forward_refuses,
    gradients::gradient_differences, gradients::gradient_of_the_future, gradients::gradient_of_values_adds_up,
    gradients::gradient_of_keys_cancels, gradients::gradient_of_queries, gradients::gradient_of_keys,
    gradients::gradient_of_values, gradients::softmax_gradient_sums_to_zero, gradients::softmax_gradient_of_certainty,
    gradients::softmax_gradient_of_a_level, gradients::softmax_gradient_f64_loops, cache::cache_keeps,
    cache::pieces_are_one_call, cache::full_cache_refuses, cache::refused_piece_changes_nothing,
    cache::cache_refuses_other_shapes, cache::caches_are_apart, cache::cache_any_size, window::window_band,
    window::window_with_cache, window::window_of_the_text, window::window_any_size,
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
