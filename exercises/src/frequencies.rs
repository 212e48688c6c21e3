//! The tasks of stretched RoPE.
//!
//! RoPE turns plane `i` by `theta_i = base^(-2i/d)` radians a position. For texts longer than the trained ones, a rule
//! makes other frequencies, a list with one for each plane, and some rules give a scale too. `d` is `rotary_dim`, the
//! number of elements of a head that turn, so there are `d / 2` planes. `k` is the factor by which the texts get
//! longer, and `ms` is `max_seq_len`, the trained length. All settings are valid, so nothing needs to be refused.

/// `theta_i` of plain RoPE, `[d / 2]`, which is written already, because all rules begin with it.
pub fn plain(rotary_dim: usize, base: f64) -> Vec<f64> {
    let d = rotary_dim as f64;
    (0..rotary_dim / 2).map(|i| base.powf(-2.0 * i as f64 / d)).collect()
}

/// Task `frequencies/interpolation`. Position interpolation, `[d / 2]`: `theta_i / k`, so that position `m · k` turns as `m` did.
/// Source: Chen et al. 2023.
pub fn interpolated(rotary_dim: usize, base: f64, factor: f64) -> Vec<f64> {
    // task frequencies/interpolation: begin
    todo!("task frequencies/interpolation")
    // task frequencies/interpolation: end
}

/// Task `frequencies/ntk`. NTK-aware frequencies, `[d / 2]`, which are plain ones of a larger base:
///
/// ```text
/// base' = base · k^(d / (d - 2))
/// ```
///
/// The fastest plane stays, and the slowest gets slower by exactly `k`. `d` is at least 4. Source: bloc97 2023.
pub fn ntk(rotary_dim: usize, base: f64, factor: f64) -> Vec<f64> {
    // task frequencies/ntk: begin
    todo!("task frequencies/ntk")
    // task frequencies/ntk: end
}

/// Task `frequencies/dynamic`. Dynamic NTK for a call of `seq_len` rows from position `offset` on, `[d / 2]`.
///
/// ```text
/// L = offset + seq_len                     the length of the text
/// k = f · L / ms - (f - 1)   if L > ms     k = 1   else
/// ```
///
/// `f` is `factor`, and with this `k` it is NTK, with nothing kept from one call to the next. You may call your `ntk`,
/// whose task then comes first. Source: emozilla 2023, and transformers.
pub fn dynamic_ntk(
    rotary_dim: usize,
    base: f64,
    (factor, max_seq_len): (f64, usize),
    (offset, seq_len): (usize, usize),
) -> Vec<f64> {
    // task frequencies/dynamic: begin
    todo!("task frequencies/dynamic")
    // task frequencies/dynamic: end
}

/// Settings of [`longrope`].
pub struct LongRope<'a> {
    /// `k`, on which only the scale depends.
    pub factor: f64,
    /// `ms`.
    pub max_seq_len: usize,
    /// What each plane is divided by in texts up to `ms`, `[d / 2]`.
    pub short_factor: &'a [f64],
    /// What each plane is divided by in longer texts, `[d / 2]`.
    pub long_factor: &'a [f64],
}

/// Task `frequencies/longrope`. The frequencies, `[d / 2]`, and the scale, for a call of `seq_len` rows from position `offset` on.
///
/// ```text
/// theta_i / short_i   if offset + seq_len <= ms     theta_i / long_i   else
/// scale = sqrt(1 + ln k / ln ms)                    with either list
/// ```
///
/// Source: Ding et al. 2024.
pub fn longrope(
    rotary_dim: usize,
    base: f64,
    rule: &LongRope,
    (offset, seq_len): (usize, usize),
) -> (Vec<f64>, f64) {
    // task frequencies/longrope: begin
    todo!("task frequencies/longrope")
    // task frequencies/longrope: end
}

/// Settings of [`yarn`].
pub struct Yarn {
    /// `k`.
    pub factor: f64,
    /// `ms`.
    pub max_seq_len: usize,
    /// Planes that turn more often than this over `ms` stay.
    pub beta_fast: f64,
    /// Planes that turn less often than this are interpolated.
    pub beta_slow: f64,
    /// Whether the ends of the ramp are rounded outwards to whole planes.
    pub truncate: bool,
}

/// Task `frequencies/yarn`. The frequencies, `[d / 2]`, and the scale.
///
/// ```text
/// plane(turns) = d · ln(ms / (turns · 2π)) / (2 ln base)        which plane turns so often over ms; not whole
/// first = plane(beta_fast)     rounded down if truncate         at least 0
/// last  = plane(beta_slow)     rounded up if truncate           at most d - 1
/// kept_i = 1 - (i - first) / (last - first)                     cut off at 0 and 1
/// theta_i · kept_i + theta_i / k · (1 - kept_i)
/// scale = 0.1 ln k + 1
/// ```
///
/// `first` is below `last`. Source: Peng et al. 2023, and its authors' code.
pub fn yarn(rotary_dim: usize, base: f64, rule: &Yarn) -> (Vec<f64>, f64) {
    // task frequencies/yarn: begin
    todo!("task frequencies/yarn")
    // task frequencies/yarn: end
}

/// Settings of [`llama3`].
pub struct Llama3 {
    /// `k`.
    pub factor: f64,
    /// `ms`.
    pub max_seq_len: usize,
    /// Planes that turn less often than this over `ms` are interpolated.
    pub low_freq_factor: f64,
    /// Planes that turn more often than this stay.
    pub high_freq_factor: f64,
}

/// Task `frequencies/llama3`. The frequencies of Llama 3.1's rule, `[d / 2]`.
///
/// ```text
/// turns_i = ms · theta_i / 2π
/// kept_i = (turns_i - low) / (high - low)                       cut off at 0 and 1
/// theta_i · kept_i + theta_i / k · (1 - kept_i)
/// ```
///
/// Source: Llama 3.1's code.
pub fn llama3(rotary_dim: usize, base: f64, rule: &Llama3) -> Vec<f64> {
    // task frequencies/llama3: begin
    todo!("task frequencies/llama3")
    // task frequencies/llama3: end
}

/// Task `frequencies/turn`. Turns `x`, `[b, s, nh, hd]` in one row, by its positions.
///
/// There are `p` frequencies, so the first `2p` elements of each head turn, and plane `i` is made of elements `i` and
/// `i + p`. Row `t` is at position `m = offset + t`.
///
/// ```text
/// y_i     = scale · (x_i cos(m theta_i) - x_{i+p} sin(m theta_i))
/// y_{i+p} = scale · (x_{i+p} cos(m theta_i) + x_i sin(m theta_i))
/// y_j     = x_j                                                 for j >= 2p
/// ```
///
/// Build the angles in `f64`, as in task `rope/tables`, so that they are right at every position. Angles in `f32` pass
/// too, but then the grade says by how much yours are off.
pub fn turn(
    x: &[f32],
    [_, s, nh, hd]: [usize; 4],
    (frequencies, scale): (&[f64], f64),
    offset: usize,
) -> Vec<f32> {
    // task frequencies/turn: begin
    todo!("task frequencies/turn")
    // task frequencies/turn: end
}

/// Task `frequencies/gradient`. The gradients of `turn` by hand: `dx`, `[b, s, nh, hd]`, and `dtheta`, `[p]`.
///
/// `dy` is the gradient of the loss with respect to `y`.
///
/// ```text
/// dx_i     = scale · (dy_i cos(m theta_i) + dy_{i+p} sin(m theta_i))
/// dx_{i+p} = scale · (dy_{i+p} cos(m theta_i) - dy_i sin(m theta_i))
/// dx_j     = dy_j                                               for j >= 2p
/// dtheta_i = sum over b, s and nh of m · (dy_{i+p} y_i - dy_i y_{i+p})
/// ```
///
/// `y` is not handed in, so compute it from `x`. What `turn` says about the angles applies to these as well.
pub fn turn_backward(
    x: &[f32],
    dy: &[f32],
    [_, s, nh, hd]: [usize; 4],
    (frequencies, scale): (&[f64], f64),
    offset: usize,
) -> (Vec<f32>, Vec<f32>) {
    // task frequencies/gradient: begin
    todo!("task frequencies/gradient")
    // task frequencies/gradient: end
}
