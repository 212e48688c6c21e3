//! What more rotations promise.

use super::checks::{axial::*, linear::*, xpos::*};
use crate::component::laws;

laws! {
    xpos_by_numbers, xpos_center, xpos_scales_cancel, xpos_relative, xpos_fades, xpos_any_input, axial_origin,
    axial_anew, axial_one_list, axial_text, axial_separate, axial_swap, axial_keeps_lengths, axial_relative,
    axial_any_input, axial_turns_back, axial_gradient, phi_by_numbers, first_token, constant_values, numerator_alone,
    causal, linear_relative, heads_are_apart, linear_any_input, gradient_of_scale, gradient_of_constants,
    gradient_differences, gradient_of_queries, gradient_of_keys, gradient_of_values, running_own_token,
    running_is_all_pairs, running_cut, running_any_input,
}
