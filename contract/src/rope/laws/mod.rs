//! What NTK-aware RoPE promises, call by call: frequencies, tables, the rotation and its
//! gradient, the module.

pub(super) mod frequencies;
mod ids;
pub(super) mod module;
pub(super) mod rotation;

use crate::category::Category;
use crate::component::{Invariant, NET};
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;
use frequencies::*;
use ids::*;
use module::*;
use proptest::strategy::Strategy;
use rotation::*;

type Rope = dyn NtkAwareRope;

/// All of them, the parts first, in each part the most telling first.
pub static INVARIANTS: &[Invariant<Rope>] = &[
    // --- frequencies ------------------------------------------------------------------------
    Invariant {
        id: "rope/fastest-plane-first",
        sentence: "Plane 0 is the fastest, 1 radian per position whatever the base and the \
                   ratio, and each plane is slower than the one before.",
        formula: "θ₀ = 1,  θ_{i+1} < θ_i",
        chapter: "rope#frequencies",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("It says which end is which, what many tutorials have wrong."),
        check: fastest_plane_first,
    },
    Invariant {
        id: "rope/plain-frequencies",
        sentence: "Without NTK, ratio 1, the frequencies go from 1 down towards 1/base in equal \
                   quotients: 1, 0.1, 0.01, 0.001 for d = 8.",
        formula: "k = 1  ⇒  θ_i = base^(−2i/d)",
        chapter: "rope#frequencies",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("Numbers that are known by heart, without NTK in the way."),
        check: plain_frequencies,
    },
    Invariant {
        id: "rope/ntk-slows-last-plane",
        sentence: "NTK slows the last plane by exactly the ratio, as position interpolation \
                   would.",
        formula: "θ_{d/2−1}(k) = θ_{d/2−1}(1) / k",
        chapter: "rope#ntk",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("What NTK is for, in one number."),
        check: ntk_slows_last_plane,
    },
    Invariant {
        id: "rope/ntk-constant-quotient",
        sentence: "From plane to plane the frequency falls by one constant quotient, with NTK \
                   too.",
        formula: "θ_{i+1} / θ_i = 1/(c·β),  β = base^(2/d),  c = k^(2/(d−2))",
        chapter: "rope#ntk",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("The other half of NTK: the end points alone do not fix the planes between."),
        check: ntk_constant_quotient,
    },
    Invariant {
        id: "rope/ntk-composes",
        sentence: "Ratio k₁ and then k₂ is ratio k₁·k₂: NTK is nothing but another base.",
        formula: "θ(base, k₁·k₂) = θ(base·k₁^(d/(d−2)), k₂)",
        chapter: "rope#ntk",
        category: Category::Frequencies,
        weight: 1,
        stays: Some("A law without an oracle: it holds for every right NTK, whatever its numbers."),
        check: ntk_composes,
    },
    Invariant {
        id: "rope/frequencies-f64-loops",
        sentence: "For any head size, base and ratio, frequencies are what plain f64 loops give.",
        formula: "θ_i = (base·k^(d/(d−2)))^(−2i/d)",
        chapter: "rope#frequencies",
        category: Category::Frequencies,
        weight: 3,
        stays: Some(NET),
        check: frequencies_f64_loops,
    },
    Invariant {
        id: "rope/frequencies-refuse",
        sentence: "Head sizes that are odd or below 4, bases of 1 or less and ratios below 1 are \
                   refused.",
        formula: "d odd, d < 4, base ≤ 1 or k < 1  ⇒  no result",
        chapter: "rope#frequencies",
        category: Category::Refusal,
        weight: 1,
        stays: None,
        check: frequencies_refuse,
    },
    // --- tables -----------------------------------------------------------------------------
    Invariant {
        id: "rope/tables-position-zero",
        sentence: "At position 0 all cosines are 1 and all sines are 0, exactly.",
        formula: "C[0, j] = 1,  S[0, j] = 0",
        chapter: "rope#tables",
        category: Category::Rotation,
        weight: 1,
        stays: Some("The row that can be written down without a calculator."),
        check: tables_position_zero,
    },
    Invariant {
        id: "rope/tables-position-one",
        sentence: "At position 1 the first plane has turned by 1 radian.",
        formula: "C[1, 0] = cos 1,  S[1, 0] = sin 1",
        chapter: "rope#tables",
        category: Category::Rotation,
        weight: 1,
        stays: Some("The first row that tells radians from degrees, and cos 1 can be looked up."),
        check: tables_position_one,
    },
    Invariant {
        id: "rope/tables-equal-halves",
        sentence: "Both halves of a row are equal, bit for bit: plane i stands in columns i and \
                   i + d/2.",
        formula: "C[t, i] = C[t, i + d/2],  S[t, i] = S[t, i + d/2]",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 2,
        stays: Some("A wrong layout shows here by name; elsewhere it is just a wrong number."),
        check: tables_equal_halves,
    },
    Invariant {
        id: "rope/tables-on-circle",
        sentence: "Each cosine and its sine lie on the circle.",
        formula: "C² + S² = 1, within 4·2⁻²⁴",
        chapter: "rope#tables",
        category: Category::Rotation,
        weight: 1,
        stays: Some("A law without an oracle: it tells a wrong size from a wrong angle."),
        check: tables_on_circle,
    },
    Invariant {
        id: "rope/tables-rows",
        sentence: "Row t is for position start + t, and there are as many rows as positions.",
        formula: "tables(a..b)[t] = tables(0..b)[a + t]",
        chapter: "rope#tables",
        category: Category::Offset,
        weight: 1,
        stays: Some("It looks at the rows alone, whatever stands in them."),
        check: tables_rows,
    },
    Invariant {
        id: "rope/tables-precision",
        sentence: "Angles are exact enough at position 4095, at 20,010 and at a million. \
                   Positions and frequencies in half precision are not.",
        formula: "|C − cos(n·θ)| ≤ n·2⁻²³ + 4·2⁻²⁴;  angles in f64 give 2⁻²⁴ at every n",
        chapter: "rope#precision",
        category: Category::Precision,
        weight: 2,
        stays: None,
        check: tables_precision,
    },
    Invariant {
        id: "rope/tables-f64-loops",
        sentence: "For any settings and positions, tables are what plain f64 loops give.",
        formula: "C[t, j] = cos((a + t)·θ_{j mod d/2}),  S likewise",
        chapter: "rope#tables",
        category: Category::Rotation,
        weight: 3,
        stays: Some(NET),
        check: tables_f64_loops,
    },
    // --- rotate -----------------------------------------------------------------------------
    Invariant {
        id: "rope/rotate-unit-vector",
        sentence: "A 1 in dimension 0 becomes cos 1 in dimension 0 and sin 1 in dimension d/2 at \
                   position 1; and so for each dimension.",
        formula: "R₁·e₀ = cos 1·e₀ + sin 1·e_{d/2}",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 2,
        stays: Some("It shows layout and sign at once, by numbers that can be checked by hand."),
        check: rotate_unit_vector,
    },
    Invariant {
        id: "rope/rotate-position-zero",
        sentence: "Position 0 is the identity, bit for bit.",
        formula: "R₀·x = x",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 1,
        stays: Some("The one position with an exact answer."),
        check: rotate_position_zero,
    },
    Invariant {
        id: "rope/rotate-keeps-lengths",
        sentence: "A rotation keeps the length of each pair.",
        formula: "y_i² + y_{i+d/2}² = x_i² + x_{i+d/2}²",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 2,
        stays: Some("It says what a rotation is, without an oracle."),
        check: rotate_keeps_lengths,
    },
    Invariant {
        id: "rope/rotate-linear",
        sentence: "The rotation is linear in x: nothing is added, nothing is bent.",
        formula: "R(2x + z) = 2·R(x) + R(z)",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 1,
        stays: Some("A law without an oracle: it tells what is added or bent from what is turned."),
        check: rotate_linear,
    },
    Invariant {
        id: "rope/rotate-same-for-all",
        sentence: "Every batch row and every head turns by the same angle: only the place in the \
                   sequence counts.",
        formula: "x[b, t, n] = x[0, t, 0]  ⇒  y[b, t, n] = y[0, t, 0]",
        chapter: "rope#rotation",
        category: Category::Order,
        weight: 2,
        stays: Some("A position that counts along the wrong axis shows here by name."),
        check: rotate_same_for_all,
    },
    Invariant {
        id: "rope/rotate-planes-apart",
        sentence: "A NaN in one plane leaves all other planes, heads and rows as they were, bit \
                   for bit.",
        formula: "x_i = NaN  ⇒  y_j unchanged for j ≠ i, i + d/2",
        chapter: "rope#rotation",
        category: Category::Order,
        weight: 1,
        stays: None,
        check: rotate_planes_apart,
    },
    Invariant {
        id: "rope/rotate-composes",
        sentence: "Turning by m and then by n is turning by m + n.",
        formula: "R_n·R_m = R_{m+n}",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 1,
        stays: Some("The law from which the relative property follows."),
        check: rotate_composes,
    },
    Invariant {
        id: "rope/rotate-interleaved",
        sentence: "In the interleaved layout neighbours turn together: a 1 in dimension 0 becomes \
                   cos 1 there and sin 1 in dimension 1.",
        formula: "R₁·e₀ = cos 1·e₀ + sin 1·e₁",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 2,
        stays: Some("The same witness for the second layout, which may be written later."),
        check: rotate_interleaved,
    },
    Invariant {
        id: "rope/layouts-agree",
        sentence: "The two layouts are one rotation: reorder, turn in the other layout, reorder \
                   back.",
        formula: "R_half = P⁻¹ · R_interleaved · P",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 2,
        stays: Some("It ties the two layouts together, which separate witnesses do not."),
        check: layouts_agree,
    },
    Invariant {
        id: "rope/rotate-table-shape",
        sentence: "Tables must have one row for each row of x. One row for all, or more rows \
                   than x has, is refused.",
        formula: "rows(C) ≠ s  ⇒  no result",
        chapter: "rope#rotation",
        category: Category::Refusal,
        weight: 1,
        stays: None,
        check: rotate_table_shape,
    },
    Invariant {
        id: "rope/rotate-f64-loops",
        sentence: "For any tables, on the circle or not, and either layout, y is what plain f64 \
                   loops give.",
        formula: "y = x ⊙ C + rotate_half(x) ⊙ S,  rotate_half(x) = (−x[d/2..], x[..d/2])",
        chapter: "rope#rotation",
        category: Category::Rotation,
        weight: 3,
        stays: Some(NET),
        check: rotate_f64_loops,
    },
    // --- layouts ----------------------------------------------------------------------------
    Invariant {
        id: "rope/interleaved-order",
        sentence: "Interleaving takes the first of the first half, the first of the second half, \
                   and so on, in each head.",
        formula: "P: 0, d/2, 1, d/2 + 1, …",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 1,
        stays: Some("The order itself, to be read off: a round trip can't tell which way it went."),
        check: interleaved_order,
    },
    Invariant {
        id: "rope/interleaved-any-size",
        sentence: "Heads of any even size are reordered so, however many there are.",
        formula: "P·x for d = 4, 6, 8, …",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 1,
        stays: Some(NET),
        check: interleaved_any_size,
    },
    Invariant {
        id: "rope/half-split-order",
        sentence: "Splitting takes the even places first and then the odd ones, in each head.",
        formula: "P⁻¹: 0, 2, 4, …, 1, 3, 5, …",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 1,
        stays: Some("The order itself, to be read off: a round trip can't tell which way it went."),
        check: half_split_order,
    },
    Invariant {
        id: "rope/half-split-any-size",
        sentence: "Heads of any even size are reordered back, however many there are.",
        formula: "P⁻¹·x for d = 4, 6, 8, …",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 1,
        stays: Some(NET),
        check: half_split_any_size,
    },
    Invariant {
        id: "rope/layouts-round-trip",
        sentence: "The two reorderings undo each other.",
        formula: "P⁻¹·P·x = x = P·P⁻¹·x",
        chapter: "rope#layouts",
        category: Category::Order,
        weight: 1,
        stays: Some("A law without an oracle, for any values and every head size."),
        check: layouts_round_trip,
    },
    // --- gradient ---------------------------------------------------------------------------
    Invariant {
        id: "rope/gradient-turns-back",
        sentence: "The gradient turns back: a 1 in dimension 0 becomes cos 1 there and −sin 1 in \
                   its partner at position 1.",
        formula: "R₁ᵀ·e₀ = cos 1·e₀ − sin 1·e_{d/2}",
        chapter: "rope#gradient",
        category: Category::Gradient,
        weight: 2,
        stays: Some("It shows the sign of the turn by numbers that can be checked by hand."),
        check: gradient_turns_back,
    },
    Invariant {
        id: "rope/gradient-keeps-lengths",
        sentence: "The gradient is as long as dy, pair by pair: RoPE neither feeds nor starves \
                   the layers below.",
        formula: "dx_i² + dx_{i+d/2}² = dy_i² + dy_{i+d/2}²",
        chapter: "rope#gradient",
        category: Category::Gradient,
        weight: 1,
        stays: Some("It says why RoPE is kind to training, without an oracle."),
        check: gradient_keeps_lengths,
    },
    Invariant {
        id: "rope/gradient-undoes",
        sentence: "Turning x and sending the result back through the gradient gives x again.",
        formula: "Rᵀ·R = 1",
        chapter: "rope#gradient",
        category: Category::Gradient,
        weight: 1,
        stays: Some("Forward and backward against each other: it needs no formula for either."),
        check: gradient_undoes,
    },
    Invariant {
        id: "rope/gradient-adjoint",
        sentence: "The gradient is the transpose of what the forward pass does, whatever that is.",
        formula: "⟨dy, R·x⟩ = ⟨Rᵀ·dy, x⟩",
        chapter: "rope#gradient",
        category: Category::Gradient,
        weight: 2,
        stays: None,
        check: gradient_adjoint,
    },
    Invariant {
        id: "rope/gradient-f64-loops",
        sentence: "For any tables and either layout, dx is what plain f64 loops give.",
        formula: "dx = Rᵀ·dy",
        chapter: "rope#gradient",
        category: Category::Gradient,
        weight: 3,
        stays: Some(NET),
        check: gradient_f64_loops,
    },
    // --- ratio_for_length -------------------------------------------------------------------
    Invariant {
        id: "rope/long-ratio-edges",
        sentence: "A long call's ratio is right at the edges: it changes one position past a \
                   multiple of 2·ms, to the next even number.",
        formula: "k'(L) = 2·⌈L / (2·ms)⌉;  ms = 3: k'(6) = 2, k'(7) = 4, k'(13) = 6",
        chapter: "rope#long-calls",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("The edges by hand, where every wrong rounding shows."),
        check: long_ratio_edges,
    },
    Invariant {
        id: "rope/long-ratio-smallest-even",
        sentence: "A long call's ratio is even, large enough, and no smaller even number would do.",
        formula: "k' even,  ms·k' ≥ L,  ms·(k' − 2) < L",
        chapter: "rope#long-calls",
        category: Category::Frequencies,
        weight: 1,
        stays: None,
        check: long_ratio_smallest_even,
    },
    Invariant {
        id: "rope/ratio-any-length",
        sentence: "For any length and training length, also the largest, the ratio is the one of the definition.",
        formula: "k' = 2·⌈L / (2·ms)⌉,  L to 2⁶⁴ − 1",
        chapter: "rope#long-calls",
        category: Category::Frequencies,
        weight: 1,
        stays: Some(NET),
        check: ratio_any_length,
    },
    // --- the module -------------------------------------------------------------------------
    Invariant {
        id: "rope/fresh-state",
        sentence: "A new module holds its ratio and a cache of ms·k rows with that ratio's \
                   frequencies.",
        formula: "es = ms·k,  C, S: [es, d]",
        chapter: "rope#cache",
        category: Category::State,
        weight: 2,
        stays: Some("A wrong cache is named before any call hides or shows it."),
        check: fresh_state,
    },
    Invariant {
        id: "rope/turns-by-position",
        sentence: "Row t of the module's output is turned by position t.",
        formula: "x_t = e_j  ⇒  y_t = cos(t·θ_j)·e_j + sin(t·θ_j)·e_{j+d/2}",
        chapter: "rope#rotation",
        category: Category::Offset,
        weight: 2,
        stays: Some("The module's first answer, by numbers that can be checked by hand."),
        check: turns_by_position,
    },
    Invariant {
        id: "rope/relative-positions",
        sentence: "The inner product of a rotated query and a rotated key depends on their \
                   distance only.",
        formula: "⟨R_m·q, R_n·k⟩ = ⟨R_{m−n}·q, k⟩",
        chapter: "rope#why",
        category: Category::Offset,
        weight: 2,
        stays: Some("What RoPE is for, in one formula, without an oracle."),
        check: relative_positions,
    },
    Invariant {
        id: "rope/offset",
        sentence: "A row alone, with its position as offset, gives what it gives among all rows: \
                   decoding token by token equals one call.",
        formula: "rope(x)[t] = rope(x[t], offset = t)",
        chapter: "rope#offset",
        category: Category::Offset,
        weight: 3,
        stays: Some("Decoding with a cache stands and falls with it; no oracle is needed."),
        check: offset_is_position,
    },
    Invariant {
        id: "rope/exact-end-uses-cache",
        sentence: "A call that ends exactly at the end of the cache uses the cache and changes \
                   nothing.",
        formula: "offset + s = es  ⇒  k stays",
        chapter: "rope#long-calls",
        category: Category::Offset,
        weight: 1,
        stays: Some("The edge between short and long, from the short side."),
        check: exact_end_uses_cache,
    },
    Invariant {
        id: "rope/offset-counts-in-length",
        sentence: "Whether a call is long, and its ratio, depend on offset + s, not on s alone.",
        formula: "L = offset + s;  L > es  ⇒  k' = 2·⌈L / (2·ms)⌉",
        chapter: "rope#long-calls",
        category: Category::Offset,
        weight: 2,
        stays: Some("It looks at calls that are long by their offset alone."),
        check: offset_counts_in_length,
    },
    Invariant {
        id: "rope/long-call-ratio",
        sentence: "A call past the cache turns all its rows by the frequencies of k'.",
        formula: "L > es  ⇒  y_t = R_{offset+t}(k')·x_t",
        chapter: "rope#long-calls",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("The edges of long calls, before anything about what stays."),
        check: long_call_ratio,
    },
    Invariant {
        id: "rope/long-call-same-either-way",
        sentence: "The output of a long call does not depend on dynamic: only what stays \
                   afterwards does.",
        formula: "y(dynamic = true) = y(dynamic = false)",
        chapter: "rope#long-calls",
        category: Category::Frequencies,
        weight: 1,
        stays: Some("It compares the module with itself, so that one branch can't drift away."),
        check: long_call_same_either_way,
    },
    Invariant {
        id: "rope/static-state-stays",
        sentence: "With dynamic = false a long call leaves no trace: ratio, cache and later short \
                   calls are what they were, bit for bit.",
        formula: "dynamic = false  ⇒  state after = state before",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 2,
        stays: None,
        check: static_state_stays,
    },
    Invariant {
        id: "rope/dynamic-grows",
        sentence: "With dynamic = true a long call replaces the ratio and the whole cache for \
                   good.",
        formula: "dynamic = true, L > es  ⇒  k = k', es = ms·k', C = C(k'), S = S(k')",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 2,
        stays: Some("The state itself, before any later call depends on it."),
        check: dynamic_grows,
    },
    Invariant {
        id: "rope/dynamic-later-calls",
        sentence: "After a dynamic module has grown, short calls use the new frequencies too.",
        formula: "dynamic = true, then L ≤ ms·k'  ⇒  y_t = R_{offset+t}(k')·x_t",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 2,
        stays: Some("It shows by values, not by a report, that the cache was replaced."),
        check: dynamic_later_calls,
    },
    Invariant {
        id: "rope/dynamic-grows-again",
        sentence: "A dynamic module grows as often as calls get longer, each time measured from \
                   ms.",
        formula: "k' = 2·⌈L / (2·ms)⌉ for the second long call as for the first",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 1,
        stays: None,
        check: dynamic_grows_again,
    },
    Invariant {
        id: "rope/dynamic-never-shrinks",
        sentence: "A dynamic module does not shrink when calls get shorter again.",
        formula: "L ≤ es  ⇒  k stays",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 1,
        stays: Some("Some libraries shrink on purpose, so the rule has to be said."),
        check: dynamic_never_shrinks,
    },
    Invariant {
        id: "rope/large-positions",
        sentence: "The module is exact at large odd positions, from its cache and past it.",
        formula: "|y − y₆₄| ≤ (n·2⁻²³ + 8·2⁻²⁴)·(|x_i| + |x_{i+d/2}|),  n > 16,384",
        chapter: "rope#precision",
        category: Category::Offset,
        weight: 2,
        stays: None,
        check: large_positions,
    },
    Invariant {
        id: "rope/overflow-is-refused",
        sentence: "An offset so large that offset + s overflows is refused.",
        formula: "offset + s ≥ 2⁶⁴  ⇒  no result",
        chapter: "rope#offset",
        category: Category::Refusal,
        weight: 1,
        stays: Some("Wrapped or clamped offsets break it by name."),
        check: overflow_is_refused,
    },
    Invariant {
        id: "rope/refused-call-changes-nothing",
        sentence: "A call that is refused leaves the module as it was.",
        formula: "no result  ⇒  state after = state before",
        chapter: "rope#long-calls",
        category: Category::State,
        weight: 1,
        stays: None,
        check: refused_call_changes_nothing,
    },
    Invariant {
        id: "rope/settings-refused",
        sentence: "A module with a bad head size, base, ratio or training length is not built.",
        formula: "d odd, d < 4, base ≤ 1, k < 1 or ms = 0  ⇒  no module",
        chapter: "rope#cache",
        category: Category::Refusal,
        weight: 1,
        stays: None,
        check: settings_refused,
    },
    Invariant {
        id: "rope/modules-are-apart",
        sentence: "Two modules do not know of each other, whatever they share inside.",
        formula: "calls of A change no result of B",
        chapter: "rope#cache",
        category: Category::State,
        weight: 1,
        stays: Some("It is the only one that has two modules at once."),
        check: modules_are_apart,
    },
    // --- a position for each token ----------------------------------------------------------
    Invariant {
        id: "rope/each-token-its-position",
        sentence: "With position_ids each token is turned by its own position, as a text alone is: packed, padded at its \
                   start, in any order, in each row of the batch.",
        formula: "y[b, t] = R_{p[b, t]}·x[b, t]",
        chapter: "rope#position-ids",
        category: Category::Offset,
        weight: 2,
        stays: None,
        check: each_token_its_position,
    },
    Invariant {
        id: "rope/each-text-its-length",
        sentence: "With position_ids a text past the cache gets the frequencies of its own length, and a shorter one beside \
                   it keeps those that it has alone.",
        formula: "p[b, t..] = 0, 1, …, L − 1  ⇒  k' = 2·⌈L / (2·ms)⌉ if L > es, else k",
        chapter: "rope#position-ids",
        category: Category::Frequencies,
        weight: 1,
        stays: None,
        check: each_text_its_length,
    },
    Invariant {
        id: "rope/position-ids-turn-back",
        sentence: "What position_ids have turned, the gradient turns back by the same positions.",
        formula: "R_pᵀ·R_p·x = x",
        chapter: "rope#position-ids",
        category: Category::Gradient,
        weight: 1,
        stays: None,
        check: position_ids_turn_back,
    },
    Invariant {
        id: "rope/one-id-for-each-token",
        sentence: "Position_ids that are not one for each token are refused, and nothing changes.",
        formula: "shape(p) ≠ [b, s]  ⇒  no result",
        chapter: "rope#position-ids",
        category: Category::Refusal,
        weight: 1,
        stays: None,
        check: one_id_for_each_token,
    },
    Invariant {
        id: "rope/module-f64-loops",
        sentence: "For any settings and any few calls, outputs and states are what plain f64 \
                   loops give.",
        formula: "y_t = R_{offset+t}(k)·x_t, and the state after each call",
        chapter: "rope#cache",
        category: Category::State,
        weight: 3,
        stays: Some(NET),
        check: module_f64_loops,
    },
];

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
