//! The learning rate of each step.

/// A learning rate that rises from 0 and falls along a cosine.
///
/// Steps are counted from 0, and step `i` has what `get_cosine_schedule_with_warmup` of transformers gives for `i + 1`
/// of as many steps, with the end `end` instead of 0: the first step already moves, and the last one has the rate `end`.
/// Without a warm-up it is PyTorch's `CosineAnnealingLR` with `T_max = steps - 1` and `eta_min = end`.
///
/// Source: Loshchilov and Hutter 2017, "SGDR"; with warm-up as for Llama.
///
/// ```
/// use quadrivium::training::Schedule;
///
/// let schedule = Schedule { peak: 1.0, warmup: 4, steps: 12, end: 0.1 };
/// assert_eq!(schedule.rate(0), 0.25); // step 0 moves already
/// assert_eq!(schedule.rate(3), 1.0);
/// assert!((schedule.rate(7) - 0.55).abs() < 1e-12); // half way down
/// assert!((schedule.rate(11) - 0.1).abs() < 1e-12); // the last step
/// assert_eq!(schedule.rate(1000), 0.1);
/// let at_once = Schedule { warmup: 0, ..schedule };
/// assert_eq!(at_once.rate(0), 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The highest rate: that of the last step of the warm-up, or of step 0 if there is no warm-up.
    pub peak: f64,
    /// Steps on the way up. Step `i` of them, counted from 0, has `peak (i + 1) / warmup`.
    pub warmup: usize,
    /// Steps in all. The last one has the rate `end`, unless it still belongs to the warm-up.
    pub steps: usize,
    /// The rate of the last step, and of all steps after it.
    pub end: f64,
}

impl Schedule {
    // ANCHOR: rate
    /// The rate of step `step`, counted from 0.
    pub fn rate(&self, step: usize) -> f64 {
        let Self { peak, warmup, steps, end } = *self;
        if step < warmup.min(steps) {
            return peak * (step as f64 + 1.0) / warmup as f64;
        }
        let (highest, last) = (warmup.saturating_sub(1), steps.saturating_sub(1)); // steps with `peak`, `end`
        if step >= last {
            return end;
        }
        let part = (step - highest) as f64 / (last - highest) as f64; //      0 to 1
        end + (peak - end) * (1.0 + (std::f64::consts::PI * part).cos()) / 2.0
    }
    // ANCHOR_END: rate
}
