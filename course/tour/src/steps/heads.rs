//! Between the norm and RoPE: two fixed random matrices make queries and keys.
//!
//! An attention layer learns these matrices. Here they are only drawn, so what can be seen
//! afterwards comes from the text and from RoPE, not from training.

use super::*;
use quadrivium::tensor::modules::UnbiasedLinear;

/// Queries and keys, `[1, s, nh, hd]` each.
#[derive(Debug, Clone)]
pub struct QueriesKeys {
    /// What each token looks for.
    pub q: Heads,
    /// What each token offers.
    pub k: Heads,
}

const QUERY_SEED: u64 = 1;
const KEY_SEED: u64 = 2;

/// `q = W_q y`, `k = W_k y`, with `W ~ Normal(0, 1/h)`, so that sizes stay as they are.
///
/// # Errors
/// What the device reports.
pub fn run(dev: &Cpu, y: &Hidden) -> Result<(QueriesKeys, Duration)> {
    let (wq, wk) = (projection(dev, QUERY_SEED)?, projection(dev, KEY_SEED)?);
    let mut forward = Duration::ZERO;
    let queries_keys = timed(&mut forward, || -> Result<_> {
        Ok(QueriesKeys { q: project(&wq, y)?, k: project(&wk, y)? })
    })?;
    Ok((queries_keys, forward))
}

fn projection(dev: &Cpu, seed: u64) -> Result<UnbiasedLinear<HIDDEN, HIDDEN, f32, Cpu>> {
    let std = (HIDDEN as f64).sqrt().recip();
    let mut weight = dev.try_zeros().map_err(Error::device)?;
    Init::Normal { mean: 0.0, std, seed }.fill(&mut weight)?;
    Ok(UnbiasedLinear { weight })
}

fn project(w: &UnbiasedLinear<HIDDEN, HIDDEN, f32, Cpu>, y: &Hidden) -> Result<Heads> {
    let rows = y.shape().1;
    let heads = w.try_forward(y.clone()).map_err(Error::device)?; // [1, s, h]
    heads.try_reshape_like(&(Const, rows, Const, Const)).map_err(Error::device) // [1, s, nh, hd]
}
