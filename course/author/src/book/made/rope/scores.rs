//! What attention sees: products of turned queries and keys.

use super::*;
use notebook_support::heat::heat_maps;
use std::path::Path;

/// Positions that are shown.
const SHOWN: usize = 48;

/// One query and one key, at every pair of positions: turned, and with positions added.
///
/// # Errors
/// A file that can't be written.
pub fn stripes(out: &Path) -> Result<()> {
    const D: usize = 16;
    let wave =
        |step: f32| -> Vec<f32> { (0..D).map(|i| (step * (i as f32 + 1.0)).sin()).collect() };
    let (q, k) = (wave(1.3), wave(0.7));
    let rope = module::<D>(BASE, SHOWN, 1, false)?;
    let at = |x: &[f32]| turned(&rope, &x.repeat(SHOWN), 0);
    let theta = rotary_frequencies(D, BASE, 1.0)?;
    let added = |x: &[f32]| -> Vec<f32> {
        let positions = (0..SHOWN).flat_map(|m| {
            let angles: Vec<f64> = theta.iter().map(|theta| m as f64 * theta).collect();
            let sines = angles.iter().map(|angle| angle.sin() as f32).collect::<Vec<_>>();
            sines.into_iter().chain(angles.into_iter().map(|angle| angle.cos() as f32))
        });
        positions.zip(x.iter().cycle()).map(|(p, x)| p + x).collect()
    };
    let products = |q: Vec<f32>, k: Vec<f32>| -> Vec<Vec<f64>> {
        q.chunks(D).map(|q| k.chunks(D).map(|k| dot(q, k)).collect()).collect()
    };
    let (turn, add) = (products(at(&q)?, at(&k)?), products(added(&q), added(&k)));
    let maps = [("turned: equal along each diagonal", &turn[..]), ("added: not equal", &add[..])];
    save(out, "Does a product know more than the distance?", (960, 500), |area| {
        heat_maps(area, "q·k", maps, &[])
    })
}

/// `ms` of the decode that is shown.
pub const MS: usize = 256;

/// A dynamic module that decodes past its cache: the scores of the first query with the new ratio,
/// with keys that are cached under the old one and with keys turned again.
pub struct Decode {
    /// `k'`.
    pub ratio: usize,
    /// The score of each cached key, 1 for the best possible.
    pub stale: Vec<f64>,
    /// The same if all keys had the new ratio.
    pub whole: Vec<f64>,
    /// The same if nothing had changed.
    pub old: Vec<f64>,
}

/// All queries and keys are the same vector of ones.
///
/// # Errors
/// What the module reports.
pub fn decode() -> Result<Decode> {
    let ones = [1.0f32; HEAD];
    let mut rope = module::<HEAD>(BASE, MS, 1, true)?;
    let mut cached = Vec::new();
    for n in 0..MS {
        cached.push(rope.try_forward_mut((rows::<HEAD>(&ones), n))?.as_vec());
    }
    let old = turned(&module::<HEAD>(BASE, MS + 1, 1, false)?, &ones, MS)?;
    let query = rope.try_forward_mut((rows::<HEAD>(&ones), MS))?.as_vec();
    let mut fresh = Vec::new();
    for n in 0..MS {
        fresh.push(turned(&rope, &ones, n)?);
    }
    let scores = |query: &[f32], keys: &[Vec<f32>]| -> Vec<f64> {
        keys.iter().map(|key| dot(query, key) / HEAD as f64).collect()
    };
    Ok(Decode {
        ratio: rope.ratio(),
        stale: scores(&query, &cached),
        whole: scores(&query, &fresh),
        old: scores(&old, &cached),
    })
}

/// The scores of [`decode`].
///
/// # Errors
/// A file that can't be written.
pub fn stale_keys(out: &Path) -> Result<()> {
    let Decode { ratio, stale, whole: all, old } = decode()?;
    let points = |scores: Vec<f64>| -> Vec<(f64, f64)> {
        scores.into_iter().enumerate().map(|(n, score)| (n as f64, score)).collect()
    };
    save(out, "What does the query at 256 see when k has changed?", (900, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..MS as f64, -0.1..1.05)?;
        axes(
            chart
                .configure_mesh()
                .x_desc("position n of the cached key")
                .y_desc("score, 1 for the best")
                .x_labels(9)
                .y_labels(6)
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| format!("{y:.1}")),
        )
        .draw()?;
        line(&mut chart, points(old), "all under k = 1", GREEN, 3)?;
        line(&mut chart, points(all), format!("all under k' = {ratio}"), BLUE, 8)?;
        let name = format!("keys under k = 1, query under k' = {ratio}");
        line(&mut chart, points(stale), name, VERMILLION, 0)?;
        let mut labels = chart.configure_series_labels();
        legend(labels.position(SeriesLabelPosition::UpperLeft).legend_area_size(34)).draw()?;
        Ok(())
    })
}
