//! Made for the chapter on GroupRMSNorm.

mod calls;
mod figures;

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use calls::{forward, normal, passes, rms};
use contract::oracle::random::MersenneTwister;
use contract::oracle::to_f16;
use figures::{EPS, OUTLIER_TOKEN, inside, outlier, outside, shifted, tolerance, worst_rounding};
use notebook_support::plot::thousands;
use quadrivium::GroupRmsNormConfig;
use std::fmt::Write;
use tour::steps::{U, dot};

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "norm-eps", draw: figures::eps },
        Figure { name: "norm-groups", draw: figures::groups },
        Figure { name: "norm-loudness", draw: figures::loudness },
        Figure { name: "norm-layernorm", draw: figures::layernorm },
        Figure { name: "norm-gradient", draw: figures::gradient },
        Figure { name: "norm-rounding", draw: figures::rounding },
    ],
    listings: &[
        Listing { name: "norm-by-hand", text: by_hand_text },
        Listing { name: "norm-eps", text: eps_text },
        Listing { name: "norm-initial", text: initial_text },
        Listing { name: "norm-f16", text: f16_text },
    ],
    numbers,
};

/// At most four digits after the point, and no zeros at the end.
fn short(x: impl Into<f64>) -> String {
    let printed = format!("{:.4}", x.into());
    let printed = printed.trim_end_matches('0').trim_end_matches('.');
    if printed == "-0" { "0".into() } else { printed.into() }
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    by_hand(numbers)?;
    eps(numbers)?;
    groups(numbers)?;
    layernorm(numbers)?;
    precision(numbers)?;
    cost(numbers);
    Ok(())
}

// --- by hand --------------------------------------------------------------------------------

/// One token of two groups. The root mean squares are 5 and 1.
const X: [f32; 4] = [1.0, 7.0, 0.2, -1.4];
const GAMMA: [f32; 4] = [2.0, 0.5, 1.0, 3.0];
const DY: [f32; 4] = [1.0, 0.0, 0.0, 1.0];

fn by_hand(numbers: &mut Numbers) -> Result<()> {
    let passes = passes(&X, &GAMMA, &DY, 2, 0.0)?;
    let xhat = forward(&X, &[1.0; 4], 2, 0.0)?;
    for (j, name) in ["first", "second", "third", "fourth"].into_iter().enumerate() {
        numbers.add(&format!("norm/hand-xhat-{name}"), short(xhat[j]));
        numbers.add(&format!("norm/hand-y-{name}"), short(passes.y[j]));
        numbers.add(&format!("norm/hand-dx-{name}"), short(passes.dx[j]));
    }
    numbers.add("norm/hand-rms-first", short(rms(&X[..2])));
    numbers.add("norm/hand-rms-second", short(rms(&X[2..])));
    numbers.add("norm/hand-ms-first", short(rms(&X[..2]).powi(2)));
    let p: Vec<f32> = (0..4).map(|j| GAMMA[j] * DY[j]).collect();
    numbers.add("norm/hand-along-first", short(dot(&p[..2], &xhat[..2]) / 2.0));
    numbers.add("norm/hand-along-second", short(dot(&p[2..], &xhat[2..]) / 2.0));
    numbers.add("norm/hand-x-dx", short(dot(&X[..2], &passes.dx[..2])));
    numbers.add("norm/hand-plain-rms", format!("{:.3}", rms(&X)));
    let plain = forward(&X, &[1.0; 4], 4, 0.0)?;
    numbers.add("norm/hand-plain-second", format!("{:.3}", rms(&plain[2..])));
    Ok(())
}

fn by_hand_text() -> Result<String> {
    let passes = passes(&X, &GAMMA, &DY, 2, 0.0)?;
    let xhat = forward(&X, &[1.0; 4], 2, 0.0)?;
    let mut text = String::from("    x  gamma   xhat      y     dy      dx  dgamma\n");
    for j in 0..4 {
        let row = [X[j], GAMMA[j], xhat[j], passes.y[j], DY[j], passes.dx[j], passes.dgamma[j]];
        let row = row.map(|x| if x == 0.0 { 0.0 } else { x }); // no -0
        let [x, gamma, xhat, y, dy, dx, dgamma] = row;
        let _ =
            writeln!(text, "{x:5.1} {gamma:6.1} {xhat:6.2} {y:6.2} {dy:6.1} {dx:7.3} {dgamma:7.2}");
    }
    Ok(text)
}

// --- eps ------------------------------------------------------------------------------------

fn eps(numbers: &mut Numbers) -> Result<()> {
    let root = EPS.sqrt();
    let y = forward(&[root as f32; 4], &[1.0; 4], 4, EPS)?;
    numbers.add("norm/root-of-eps", format!("{root:.5}"));
    numbers.add("norm/eps-witness", format!("{:.4}", y[0]));
    numbers.add("norm/eps-witness-outside", format!("{:.4}", outside(root)));
    let ten_times = root / (root * root + 10.0 * EPS).sqrt();
    numbers.add("norm/eps-witness-ten-times", format!("{ten_times:.4}"));
    numbers.add("norm/eps-slope-inside", format!("{:.1}", 1.0 / root));
    numbers.add("norm/eps-slope-outside", thousands((1.0 / EPS).round() as usize));
    numbers.add("norm/eps-at-one", format!("{:.6}", inside(1.0)));
    numbers.add("norm/eps-at-one-outside", format!("{:.6}", outside(1.0)));
    let apart = (inside(1.0) - outside(1.0)) * 1e6;
    numbers.add("norm/eps-apart-millionths", format!("{apart:.0}"));
    Ok(())
}

fn eps_text() -> Result<String> {
    let mut text = String::from("   size of x   inside    outside   no eps\n");
    for (name, size) in [
        ("1", 1.0),
        ("0.1", 0.1),
        ("0.01", 0.01),
        ("sqrt(eps)", EPS.sqrt()),
        ("0.001", 1e-3),
        ("0.00001", 1e-5),
        ("0", 0.0),
    ] {
        let y = forward(&[size as f32; 4], &[1.0; 4], 4, EPS)?[0];
        let root_mean_square = f64::sqrt(size * size);
        let none = size / root_mean_square; // 0 is divided by 0 in the last line
        let _ = writeln!(text, "{name:>12} {y:8.6} {:10.6} {none:>8}", outside(size));
    }
    Ok(text)
}

// --- groups ---------------------------------------------------------------------------------

fn groups(numbers: &mut Numbers) -> Result<()> {
    for gz in [OUTLIER_TOKEN, 16, 4] {
        let (huge, others) = outlier(gz)?;
        numbers.add(&format!("norm/outlier-huge-{gz}"), format!("{huge:.2}"));
        numbers.add(&format!("norm/outlier-others-{gz}"), format!("{others:.3}"));
        numbers.add(&format!("norm/outlier-count-{gz}"), gz - 1);
    }
    Ok(())
}

// --- initial values -------------------------------------------------------------------------

fn initial_text() -> Result<String> {
    let config = GroupRmsNormConfig::default();
    let gamma: Vec<f32> = config.init().values(4);
    let mut random = MersenneTwister::new(config.init_seed);
    let mut text = String::from("      word   low 24 bits       unit      gamma\n");
    for gamma in gamma {
        let word = random.word();
        let low = word & 0x00FF_FFFF;
        let unit = f64::from(low) / f64::from(1 << 24);
        let _ = writeln!(text, "{word:10} {low:13} {unit:10.7} {gamma:10.7}");
    }
    Ok(text)
}

// --- LayerNorm ------------------------------------------------------------------------------

fn layernorm(numbers: &mut Numbers) -> Result<()> {
    let (h, layers) = (4096, 32);
    let norms = 2 * layers + 1;
    numbers.add("norm/llama-gammas", thousands(norms * h));
    numbers.add("norm/llama-layernorm", thousands(norms * 2 * h));
    let (layer, rms) = shifted(10.0)?;
    // Minus signs as they are printed.
    let two = |x: f64| format!("{x:.2}").replace('-', "−");
    numbers.add("norm/shifted-layer-low", two(layer[0]));
    numbers.add("norm/shifted-layer-high", two(layer[3]));
    numbers.add("norm/shifted-rms-low", two(rms[0]));
    numbers.add("norm/shifted-rms-high", two(rms[3]));
    Ok(())
}

// --- precision ------------------------------------------------------------------------------

/// All finite values of `f16` that are not negative, in order.
fn halves() -> impl Iterator<Item = f64> {
    let value = |bits: u16| {
        let (exponent, digits) = (i32::from(bits >> 10), f64::from(bits & 0x3FF));
        match exponent {
            0 => digits * 2.0f64.powi(-24),
            _ => (1024.0 + digits) * 2.0f64.powi(exponent - 25),
        }
    };
    (0..31u16 << 10).map(value)
}

fn precision(numbers: &mut Numbers) -> Result<()> {
    let largest = halves().fold(0.0, f64::max);
    numbers.add("norm/f16-largest", thousands(largest as usize));
    numbers.add("norm/f16-square-of-300", thousands(300 * 300));
    let overflows = halves().find(|x| to_f16(x * x).is_infinite()).unwrap_or(f64::NAN);
    numbers.add("norm/f16-first-overflow", short(overflows));
    let last_zero = halves().filter(|x| to_f16(x * x) == 0.0).fold(0.0, f64::max);
    numbers.add("norm/f16-last-zero", format!("{last_zero:.5}"));
    let small = f64::from(to_f16(0.0003));
    let lost = (f64::from(to_f16(small * small)) / (small * small) - 1.0) * 100.0;
    numbers.add("norm/f16-lost-percent", format!("{lost:.0}"));
    numbers.add("norm/f32-last-square", format!("{:.1}", f64::from(f32::MAX).sqrt() / 1e19));
    let smallest = f64::from(f32::MIN_POSITIVE).sqrt() * 1e19;
    numbers.add("norm/f32-first-square", format!("{smallest:.1}"));
    numbers.add("norm/f32-epsilon", format!("{:.1}", f64::from(f32::EPSILON) * 1e7));
    for gz in [128, 4096] {
        let millionths = tolerance(gz) * U * 1e6;
        numbers.add(&format!("norm/tolerance-{gz}"), format!("{millionths:.2}"));
    }
    numbers.add("norm/worst-units-128", format!("{:.1}", worst_rounding(128)?));
    numbers.add("norm/worst-units-4096", format!("{:.1}", worst_rounding(4096)?));
    numbers.add("norm/tolerance-units-128", short(tolerance(128)));
    numbers.add("norm/tolerance-units-4096", thousands(tolerance(4096) as usize));
    numbers.add("norm/twice-rounded-percent", format!("{:.0}", twice_rounded()? * 100.0));
    Ok(())
}

/// How often it changes the result to round to `f16` before the product with gamma, too.
fn twice_rounded() -> Result<f64> {
    let (h, tokens) = (256, 64);
    // Values of f16, as they would come in.
    let x: Vec<f32> = normal(tokens * h, 21).iter().map(|&x| to_f16(f64::from(x))).collect();
    let gamma = normal(h, 22);
    let xhat = forward(&x, &vec![1.0; h], h, EPS)?;
    let differs = |(i, &xhat): (usize, &f32)| {
        let gamma = f64::from(gamma[i % h]);
        let once = to_f16(f64::from(xhat) * gamma);
        let twice = to_f16(f64::from(to_f16(f64::from(xhat))) * gamma);
        once != twice
    };
    let count = xhat.iter().enumerate().filter(|at| differs(*at)).count();
    Ok(count as f64 / xhat.len() as f64)
}

fn f16_text() -> Result<String> {
    let mut text = String::from("       x   x in f16   x² exactly   x² in f16\n");
    for x in [0.0001, 0.0003, 0.01, 1.5, 200.0, 300.0] {
        let half = f64::from(to_f16(x));
        let exact = half * half;
        let square = f64::from(to_f16(exact));
        let digits = |x: f64| match x {
            x if x != 0.0 && x < 1e-2 => format!("{x:.3e}"),
            x if x.is_infinite() => "infinite".to_string(),
            x => short(x),
        };
        let (half, exact, square) = (digits(half), digits(exact), digits(square));
        let _ = writeln!(text, "{x:>8} {half:>10} {exact:>12} {square:>11}");
    }
    Ok(text)
}

// --- cost -----------------------------------------------------------------------------------

fn cost(numbers: &mut Numbers) {
    let (b, s, h, gz) = (1usize, 2048, 4096, 128);
    let elements = b * s * h;
    numbers.add("norm/cost-elements", thousands(elements));
    numbers.add("norm/cost-x-mib", elements * 4 / (1 << 20));
    numbers.add("norm/cost-traffic-mib", 2 * elements * 4 / (1 << 20));
    numbers.add("norm/cost-groups", thousands(b * s * h / gz));
    numbers.add("norm/cost-groups-kib", b * s * h / gz * 4 / 1024);
    numbers.add("norm/cost-gamma-kib", h * 4 / 1024);
    numbers.add("norm/cost-operations", thousands(4 * elements));
}
