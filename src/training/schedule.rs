//! The learning rate of each step.

/// A learning rate that rises from 0 and falls along a cosine.
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
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The highest rate, that of the last step of the warm-up.
    pub peak: f64,
    /// Steps on the way up. Step `i` of them, counted from 0, has `peak (i + 1) / warmup`.
    pub warmup: usize,
    /// Steps in all. The last one has the rate `end`, unless it still belongs to the warm-up.
    pub steps: usize,
    /// The rate of the last step, and of those behind it.
    pub end: f64,
}

impl Schedule {
    // ANCHOR: rate
    /// The rate of step `step`, counted from 0.
    pub fn rate(&self, step: usize) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        if step + 1 >= self.steps {
            return self.end;
        }
        let (begin, last) = (self.warmup as f64 - 1.0, self.steps as f64 - 1.0);
        let part = (step as f64 - begin) / (last - begin); //                 0 to 1
        self.end + (self.peak - self.end) * (1.0 + (std::f64::consts::PI * part).cos()) / 2.0
    }
    // ANCHOR_END: rate
}
