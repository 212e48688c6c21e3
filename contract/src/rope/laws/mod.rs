//! What NTK-aware RoPE promises, call by call: frequencies, tables, the rotation and its
//! gradient, the module.

pub(super) mod frequencies;
mod ids;
pub(super) mod module;
pub(super) mod rotation;

use crate::component::laws;
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;
use frequencies::*;
use ids::*;
use module::*;
use proptest::strategy::Strategy;
use rotation::*;

type Rope = dyn NtkAwareRope;

laws! {
    // --- frequencies ------------------------------------------------------------------------
    fastest_plane_first, plain_frequencies, ntk_slows_last_plane, ntk_constant_quotient, ntk_composes,
    frequencies_f64_loops, frequencies_refuse,
    // --- tables -----------------------------------------------------------------------------
    tables_position_zero, tables_position_one, tables_equal_halves, tables_on_circle, tables_rows, tables_precision,
    tables_f64_loops,
    // --- rotate -----------------------------------------------------------------------------
    rotate_unit_vector, rotate_position_zero, rotate_keeps_lengths, rotate_linear, rotate_same_for_all,
    rotate_planes_apart, rotate_composes, rotate_interleaved, layouts_agree, rotate_table_shape, rotate_f64_loops,
    // --- layouts ----------------------------------------------------------------------------
    interleaved_order, interleaved_any_size, half_split_order, half_split_any_size, layouts_round_trip,
    // --- gradient ---------------------------------------------------------------------------
    gradient_turns_back, gradient_keeps_lengths, gradient_undoes, gradient_adjoint, gradient_f64_loops,
    // --- ratio_for_length -------------------------------------------------------------------
    long_ratio_edges, long_ratio_smallest_even, ratio_any_length,
    // --- the module -------------------------------------------------------------------------
    fresh_state, turns_by_position, relative_positions, offset_is_position, exact_end_uses_cache,
    offset_counts_in_length, long_call_ratio, long_call_same_either_way, static_state_stays, dynamic_grows,
    dynamic_later_calls, dynamic_grows_again, dynamic_never_shrinks, large_positions, overflow_is_refused,
    refused_call_changes_nothing, settings_refused, modules_are_apart,
    // --- a position for each token ----------------------------------------------------------
    each_token_its_position, each_text_its_length, position_ids_turn_back, one_id_for_each_token, module_f64_loops,
}

/// `n` values from -4 to 4 in steps of 0.004. Most have no end in binary, so that products round;
/// and whole numbers are drawn and shrunk faster than floats.
fn values(n: usize) -> impl Strategy<Value = Vec<f32>> {
    let steps = proptest::collection::vec(-1000..=1000i32, n);
    steps.prop_map(|steps| steps.into_iter().map(|step| step as f32 / 250.0).collect())
}

/// The oracle with a plus in its turns.
struct Terms;

impl RopeLoops for Terms {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] + x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]]
    }

    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [dy[0] * cos[0] + dy[1] * sin[1], dy[1] * cos[1] + dy[0] * sin[0]]
    }
}

fn absolute(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| value.abs()).collect()
}

/// A case with absolute values.
fn positive(case: &RotateCase) -> RotateCase {
    let Tables { cos, sin } = &case.tables;
    let tables = Tables { cos: absolute(cos), sin: absolute(sin) };
    RotateCase { x: absolute(&case.x), tables, ..case.clone() }
}

/// How large the terms of each value of `y` are: `|x cos| + |partner sin|`.
fn sizes(case: &RotateCase) -> Vec<f64> {
    Terms.rotate(&positive(case))
}

/// The same for each value of `dx`. Cosine and sine of the partner are those at its own place.
fn sizes_back(case: &RotateCase, dy: &[f32]) -> Vec<f64> {
    Terms.rotate_backward(&positive(case), &absolute(dy))
}

/// `|x| + |partner|` for each value of half-split heads.
fn partner_sizes(d: usize, x: &[f32]) -> Vec<f64> {
    let mate = |i: usize| x[i - i % d + (i + d / 2) % d];
    (0..x.len()).map(|i| f64::from(x[i].abs()) + f64::from(mate(i).abs())).collect()
}
