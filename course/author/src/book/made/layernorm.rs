//! Made for the chapter on LayerNorm.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::write;
use contract::interface::LayerNormCase;
use contract::layernorm::oracle::{LayerNormLoops, Passes};
use contract::oracle::Oracle;
use notebook_support::layernorm::{one_pass, two_passes, variances};
use quadrivium::functional::layer_norm;
use quadrivium::tensor::*;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[Figure { name: "layernorm-variance", draw: variance }],
    listings: &[
        Listing { name: "layernorm-by-hand", text: by_hand_text },
        Listing { name: "layernorm-far", text: far_text },
    ],
    numbers,
};

fn variance(out: &Path) -> Result<()> {
    write(out, &variances()?)
}

/// One token. Its mean is 3, and its standard deviation is 5.
const X: [f32; 4] = [4.0, 2.0, 10.0, -4.0];
const GAMMA: [f32; 4] = [2.0, 0.5, 1.0, 3.0];
const BETA: [f32; 4] = [0.0, 1.0, 0.0, -1.0];
const DY: [f32; 4] = [1.0, 0.0, 0.0, 1.0];

fn by_hand() -> Passes {
    let (gamma, beta) = (GAMMA.to_vec(), BETA.to_vec());
    let case = LayerNormCase { shape: [1, 1, 4], eps: 0.0, gamma, beta, x: X.to_vec() };
    Oracle.passes(&case, &DY)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let passes = by_hand();
    let p: Vec<f64> = (0..4).map(|j| f64::from(GAMMA[j]) * f64::from(DY[j])).collect();
    let along = (0..4).map(|j| p[j] * passes.xhat[j]).sum::<f64>() / 4.0;
    numbers.add("layernorm/hand-mean", X.iter().sum::<f32>() / 4.0);
    numbers.add("layernorm/hand-std", passes.std[0]);
    numbers.add("layernorm/hand-level", p.iter().sum::<f64>() / 4.0);
    numbers.add("layernorm/hand-along", format!("{along:.2}").replace('-', "−"));
    let far = FAR.map(|x| x + 4096.0);
    numbers.add("layernorm/far-true", two_passes(&FAR));
    numbers.add("layernorm/far-one-pass", one_pass(&far));
    numbers.add("layernorm/far-two-passes", two_passes(&far));
    Ok(())
}

fn by_hand_text() -> Result<String> {
    let Passes { y, xhat, dx, dgamma, dbeta, .. } = by_hand();
    let mut text = String::from("    x   xhat  gamma  beta      y     dy      dx  dgamma  dbeta\n");
    for j in 0..4 {
        let row = [f64::from(DY[j]), dx[j], dgamma[j], dbeta[j]];
        let [dy, dx, dgamma, dbeta] = row.map(|x| if x == 0.0 { 0.0 } else { x }); // no -0
        let (x, xhat, gamma, beta, y) = (X[j], xhat[j], GAMMA[j], BETA[j], y[j]);
        let _ = writeln!(
            text,
            "{x:5.1} {xhat:6.2} {gamma:6.1} {beta:5.1} {y:6.2} {dy:6.1} {dx:7.3} {dgamma:7.2} {dbeta:6.1}"
        );
    }
    Ok(text)
}

/// A token of variance 5, whose elements are exact wherever they are moved to.
const FAR: [f32; 4] = [-3.0, -1.0, 1.0, 3.0];

fn far_text() -> Result<String> {
    let mut text = String::from("    mean   one pass   two passes   y of the library\n");
    let dev = Cpu::default();
    for mean in [0u16, 64, 1024, 4096, 32768] {
        let token = FAR.map(|x| x + f32::from(mean));
        let (ones, zeros) = (dev.tensor([1.0; 4]), dev.tensor([0.0; 4]));
        let y = layer_norm(dev.tensor([[token]]), &ones, &zeros, 1e-5).map_err(Error::from)?;
        let y: Vec<String> = y.as_vec().iter().map(|y| format!("{y:6.3}")).collect();
        let (one, two) = (one_pass(&token), two_passes(&token));
        let _ = writeln!(text, "{mean:8} {one:10.1} {two:12.1}   {}", y.join(" "));
    }
    Ok(text)
}
