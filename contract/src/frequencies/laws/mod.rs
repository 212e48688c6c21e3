//! What stretched RoPE promises.

mod rules;
mod turns;

use crate::component::laws;
use crate::frequencies::interface::StretchedRope;
use rules::*;
use turns::*;

pub(super) use rules::matches_frequencies;
pub(super) use turns::{Asked, answers_dx, answers_y, matches_dtheta, matches_dx, matches_y};

type Any = dyn StretchedRope;

laws! {
    interpolation_at_a_multiple, interpolation_any, part_as_a_small_head, ntk_ends, ntk_is_one_base, ntk_any,
    dynamic_short_is_plain, dynamic_slowest_plane, dynamic_forgets, length_from_the_start, dynamic_any,
    longrope_list_by_length, longrope_any_divisor, longrope_scale, longrope_any, yarn_ends, yarn_ramp,
    yarn_not_rounded, yarn_scale, yarn_between, yarn_any, llama3_three_bands, llama3_a_quarter, llama3_no_jump,
    llama3_turns_alone, llama3_any, turn_first_step, rest_of_a_head_stays, part_turns_as_a_small_head,
    length_times_scale, scores_by_distance, pieces_are_the_whole, forward_any, gradient_turns_back, theta_by_hand,
    theta_adds_up, theta_differences, dx_any, dtheta_any,
}
