//! Made for the chapter on map of position encodings.

mod figures;
mod formulas;
mod places;

use self::formulas::*;
use super::kinds::{Figure, Made, Numbers};
use crate::error::{Error, Result};
use notebook_support::plot::thousands;
use quadrivium::rope::ntk_base;
use std::f64::consts::TAU;

/// The head size of the examples, which is Llama 2's, as are the others.
const HEAD_DIM: usize = 128;
/// `base`.
const BASE: f64 = 10_000.0;
/// `ms`, the training length.
const TRAINED: usize = 4096;
/// `h`, the hidden size.
const HIDDEN: usize = 4096;
/// `nh`, the heads of a layer.
const HEADS: usize = 32;
/// How many times longer the context is made.
const STRETCH: f64 = 4.0;

const MIB: usize = 1 << 20;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "encodings-places", draw: places::draw },
        Figure { name: "encodings-learned", draw: figures::learned },
        Figure { name: "encodings-sinusoids", draw: figures::sinusoids },
        Figure { name: "encodings-t5", draw: figures::t5 },
        Figure { name: "encodings-alibi", draw: figures::alibi },
        Figure { name: "encodings-rope", draw: figures::rope },
        Figure { name: "encodings-interpolation", draw: figures::interpolation },
        Figure { name: "encodings-ntk", draw: figures::ntk },
        Figure { name: "encodings-yarn", draw: figures::yarn_ramp },
        Figure { name: "encodings-phases", draw: figures::phases },
        Figure { name: "encodings-biases", draw: figures::biases },
    ],
    listings: &[],
    numbers,
};

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let add = &mut |name: &str, value: String| numbers.add(&format!("encodings/{name}"), value);

    // Learned and sinusoidal.
    let seen = figures::rows_seen()?;
    add("rows-seen-first", format!("{}", seen[0]));
    add("rows-unseen", format!("{}", seen.iter().filter(|&&count| count == 0.0).count()));
    add("learned-parameters", thousands(TRAINED * HIDDEN));
    add("learned-mib", thousands(TRAINED * HIDDEN * 4 / MIB));

    // Biases.
    for distance in [10, 20, 63, 100] {
        add(&format!("t5-bucket-{distance}"), t5_bucket(distance, 32, 128).to_string());
    }
    let last = (0..).find(|&distance| t5_bucket(distance, 32, 128) == 31).unwrap_or_default();
    add("t5-last-from", last.to_string());
    add("t5-parameters", thousands(32 * HEADS));
    add("bias-gib", (HEADS * TRAINED * TRAINED * 2 / (1024 * MIB)).to_string());
    add("bias-additions", thousands(HEADS * TRAINED * TRAINED));
    let slopes = alibi_slopes(8);
    add("alibi-first", format!("{}", slopes[0]));
    add("alibi-last", format!("{}", slopes[7]));
    add("alibi-reach-first", format!("{:.0}", 8.0 / slopes[0]));
    add("alibi-reach-last", thousands((8.0 / slopes[7]) as usize));

    add("alibi-3000-last", format!("{:.1}", 3000.0 * slopes[7]));
    add("alibi-3000-first", thousands((3000.0 * slopes[0]) as usize));

    // Rotations.
    let plain = figures::frequencies(1.0)?;
    add("rope-table-mib", (2 * TRAINED * HEAD_DIM * 4 / MIB).to_string());
    add("rope-operations", thousands(2 * 3 * TRAINED * HIDDEN));
    add("score-operations", thousands(2 * TRAINED * TRAINED * HIDDEN));
    let unfinished = plain.len() - figures::first_unfinished()?;
    add("first-unfinished", figures::first_unfinished()?.to_string());
    add("unfinished", unfinished.to_string());
    let slow = interpolated(HEAD_DIM, BASE, STRETCH)?;
    add("interpolated-step", format!("{}", slow[0]));
    add("plain-step", format!("{}", plain[0]));
    let base = ntk_base(BASE, HEAD_DIM, STRETCH).map_err(Error::from)?;
    add("ntk-base", thousands(base.round() as usize));
    let ntk = figures::frequencies(STRETCH)?;
    let ntk_reach = figures::reach(&ntk)?;
    let past = ntk_reach[figures::first_unfinished()?..].iter().filter(|&&x| x > 1.0 + 1e-9);
    add("ntk-past", past.count().to_string());
    add("ntk-worst", format!("{:.2}", ntk_reach[figures::first_unfinished()?]));
    add("ntk-plane-32", format!("{:.2}", plain[32] / ntk[32]));

    // YaRN.
    let yarn = yarn(HEAD_DIM, BASE, STRETCH, TRAINED)?;
    let kept: Vec<f64> = plain.iter().map(|&theta| yarn_kept(theta, TRAINED)).collect();
    add("yarn-last-kept", (kept.iter().filter(|&&kept| kept == 1.0).count() - 1).to_string());
    add("yarn-first-slowed", kept.iter().filter(|&&kept| kept > 0.0).count().to_string());
    add("yarn-turns-32", format!("{:.2}", TRAINED as f64 * plain[32] / TAU));
    add("yarn-kept-32", format!("{:.2}", kept[32]));
    add("yarn-kept-32-code", format!("{:.2}", yarn_kept_in_code(32, HEAD_DIM, BASE, TRAINED)));
    add("yarn-slower-32", format!("{:.2}", plain[32] / yarn[32]));
    add("yarn-scale", format!("{:.4}", yarn_scale(STRETCH)));
    add("yarn-scale-squared", format!("{:.4}", yarn_scale(STRETCH).powi(2)));
    Ok(())
}
