//! From logits to the next token.

use crate::checks::require;
use crate::error::{Error, Result};
use rand_mt::Mt64;

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingConfig {
    /// Logits are divided by it. 0 takes the likeliest token. Default 1.
    pub temperature: f64,
    /// Only the `top_k` likeliest tokens may be drawn. Default `None`: all.
    pub top_k: Option<usize>,
    /// Only the likeliest tokens may be drawn that together have this probability: each is kept before whom less than
    /// `top_p` was kept. Default 1: all.
    pub top_p: f64,
    /// Only tokens may be drawn that are at least this many times as likely as the likeliest. Default 0: all. Source: Nguyen et
    /// al. 2024, "Turning Up the Heat: Min-p Sampling".
    pub min_p: f64,
    /// The logit of a token that the text has already is divided by it, or multiplied where it is below 0. Default 1:
    /// nothing changes. Source: Keskar et al. 2019, "CTRL".
    pub repetition_penalty: f64,
    /// Seed of the draws. Default 42.
    pub seed: u64,
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 42,
        }
    }
}

impl SamplingConfig {
    /// Always the likeliest token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    fn check(&self) -> Result<()> {
        let rule = "finite and at least 0";
        let warm = self.temperature;
        require(warm.is_finite() && warm >= 0.0, "temperature", rule, warm)?;
        require(self.top_k != Some(0), "top_k", "at least 1", 0.0)?;
        let rule = "above 0 and at most 1";
        require(self.top_p > 0.0 && self.top_p <= 1.0, "top_p", rule, self.top_p)?;
        let (rule, least) = ("at least 0 and at most 1", self.min_p);
        require((0.0..=1.0).contains(&least), "min_p", rule, least)?;
        let penalty = self.repetition_penalty;
        let rule = "finite and above 0";
        require(penalty.is_finite() && penalty > 0.0, "repetition_penalty", rule, penalty)
    }

    /// Makes tokens that a text has already less likely: `repetition_penalty`.
    ///
    /// # Errors
    /// Settings that are outside their range; an id that has no logit.
    pub fn penalize(&self, logits: &mut [f32], text: &[usize]) -> Result<()> {
        self.check()?;
        let mut seen = vec![false; logits.len()];
        for (position, id) in text.iter().enumerate() {
            let Some(seen) = seen.get_mut(*id) else {
                let (id, vocab_size) = (*id, logits.len());
                return Err(Error::TokenId { id, batch: 0, position, vocab_size });
            };
            *seen = true;
        }
        let penalty = self.repetition_penalty as f32;
        for (logit, _) in logits.iter_mut().zip(seen).filter(|(_, seen)| *seen) {
            *logit = if *logit < 0.0 { *logit * penalty } else { *logit / penalty };
        }
        Ok(())
    }

    /// With which probability each token is drawn, `[v]`, for the logits `[v]` of one place.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    pub fn probabilities(&self, logits: &[f32]) -> Result<Vec<f64>> {
        self.check()?;
        let kept = self.kept(logits)?;
        let total: f64 = kept.iter().map(|(_, p)| p).sum();
        let mut all = vec![0.0; logits.len()];
        kept.into_iter().for_each(|(id, p)| all[id] = p / total);
        Ok(all)
    }

    // ANCHOR: sample
    /// The token that `unit` decides on, a number from 0 to below 1, for the logits `[v]` of one place. Of equal logits the
    /// one with the smaller id counts as likelier. An id whose logit is minus infinity is never chosen: give it to rows that
    /// no token has, where a table was padded.
    ///
    /// # Errors
    /// Settings that are outside their range; `unit` outside `[0, 1)`. No logits; a
    /// logit that is NaN or plus infinity; none that is above minus infinity.
    pub fn choose(&self, logits: &[f32], unit: f64) -> Result<usize> {
        self.check()?;
        require((0.0..1.0).contains(&unit), "unit", "at least 0 and below 1", unit)?;
        let kept = self.kept(logits)?;
        let total: f64 = kept.iter().map(|(_, p)| p).sum();
        let mut left = unit * total;
        for (id, p) in &kept {
            left -= p;
            if left < 0.0 {
                return Ok(*id);
            }
        }
        Ok(kept[kept.len() - 1].0) // rounding left a little over
    }

    /// The tokens that may be drawn, the likeliest first, with probabilities of which the first is 1.
    fn kept(&self, logits: &[f32]) -> Result<Vec<(usize, f64)>> {
        let refused = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
        if let Some(id) = logits.iter().position(refused) {
            let (name, rule) = ("every logit", "a number below infinity; the model has diverged");
            return Err(Error::Setting { name, rule, got: logits[id].into() });
        }
        let mut order: Vec<usize> =
            (0..logits.len()).filter(|&id| logits[id] > f32::NEG_INFINITY).collect();
        if logits.is_empty() {
            return Err(Error::Empty { name: "logits", shape: vec![0] });
        }
        let rule = "above -infinity: else no token may be drawn";
        require(!order.is_empty(), "the largest logit", rule, f64::NEG_INFINITY)?;
        let likelier = |a: &usize, b: &usize| {
            logits[*b].partial_cmp(&logits[*a]).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b))
        };
        order.sort_unstable_by(likelier);
        order.truncate(self.top_k.unwrap_or(usize::MAX));
        if self.temperature == 0.0 {
            order.truncate(1);
        }
        let first = f64::from(logits[order[0]]);
        let p = |id: usize| match self.temperature {
            0.0 => 1.0,
            warm => ((f64::from(logits[id]) - first) / warm).exp(),
        };
        let mut kept: Vec<(usize, f64)> = order.into_iter().map(|id| (id, p(id))).collect();
        let enough = self.top_p * kept.iter().map(|(_, p)| p).sum::<f64>();
        let mut before = 0.0;
        let inside = kept.iter().take_while(|(_, p)| {
            let inside = before < enough;
            before += p;
            inside
        });
        let inside = inside.count();
        kept.truncate(inside);
        kept.retain(|(_, p)| *p >= self.min_p); // the likeliest has 1
        Ok(kept)
    }
    // ANCHOR_END: sample
}

/// Draws tokens. The same settings and logits give the same tokens.
///
/// ```
/// use quadrivium::model::{Sampler, SamplingConfig};
///
/// let mut greedy = Sampler::new(SamplingConfig::greedy())?;
/// assert_eq!(greedy.next(&[0.1, 2.0, -1.0])?, 1);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    config: SamplingConfig,
    random: Mt64,
}

impl Sampler {
    /// A sampler that begins with its seed.
    ///
    /// # Errors
    /// A temperature below 0 or not finite, `top_k` 0, `top_p` outside `(0, 1]`, `min_p` outside `[0, 1]`, a
    /// `repetition_penalty` that is not finite or not above 0.
    pub fn new(config: SamplingConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { config, random: Mt64::new(config.seed) })
    }

    /// How the next token is chosen.
    pub fn config(&self) -> &SamplingConfig {
        &self.config
    }

    /// The next number of the draws, from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        unit(&mut self.random)
    }

    /// The next token, for the logits `[v]` of one place.
    ///
    /// # Errors
    /// No logits; a logit that is NaN or plus infinity; none that is above minus infinity.
    pub fn next(&mut self, logits: &[f32]) -> Result<usize> {
        let mut after = self.random.clone();
        let token = self.config.choose(logits, unit(&mut after))?;
        self.random = after; // a call that fails has drawn nothing
        Ok(token)
    }
}

/// From 0 to below 1.
fn unit(random: &mut Mt64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
