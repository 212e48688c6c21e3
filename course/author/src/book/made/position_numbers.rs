//! Made for the chapter "A position as a number".

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::{BLUE, GREEN, INK, VERMILLION, chart, whole};
use contract::absolute::oracle::PositionLoops;
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series, tenths};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::position::{LearnedPositions, LearnedPositionsConfig};
use quadrivium::tensor::*;
use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "numbers-digit", draw: digit },
        Figure { name: "numbers-choices", draw: choices },
    ],
    listings: &[Listing { name: "numbers-by-hand", text: by_hand }],
    numbers,
};

const BASE: f64 = 10_000.0;
/// Of the positions in the examples.
const LENGTH: usize = 4096;
/// Planes of a head of 128.
const PLANES: usize = 64;
/// Positions and columns of the tables whose components are counted.
const TABLE: [usize; 2] = [128, 64];

/// One binary digit, and the wave of the same period.
fn digit(out: &Path) -> Result<()> {
    let bit = |i: u32| {
        (0..65usize).flat_map(move |m| {
            let y = (m >> i & 1) as f64;
            [(m as f64, y), (m as f64 + 1.0, y)]
        })
    };
    let wave = |i: i32| {
        let period = 2f64.powi(i + 1);
        (0..=640).map(move |t| {
            let m = f64::from(t) / 10.0;
            (m, (1.0 - (TAU * (m + 0.5) / period).sin()) / 2.0)
        })
    };
    chart(
        out,
        "What is a wave to a binary digit?",
        (
            Axis { name: "position", range: 0.0..64.0, labels: 9, label: whole },
            Axis {
                name: "the digit worth 16, and a wave of period 32",
                range: -0.1..1.3,
                labels: 6,
                label: tenths,
            },
        ),
        &[
            Series::new("binary digit", VERMILLION, Mark::Line, bit(4)),
            Series::new("wave", BLUE, Mark::Line, wave(4)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

/// Frequencies of the planes: RoPE's, at equal distances, and the squares of these.
fn frequencies(choice: usize) -> Vec<f64> {
    let of = |i: usize| {
        let share = i as f64 / PLANES as f64;
        match choice {
            0 => BASE.powf(-share),
            1 => 1.0 - share,
            _ => (1.0 - share).powi(2),
        }
    };
    (0..PLANES).map(of).collect()
}

/// The sums of cosines and of sines over the first `planes`.
fn sums(distance: f64, theta: &[f64]) -> [f64; 2] {
    let sum = |f: fn(f64) -> f64| theta.iter().map(|theta| f(distance * theta)).sum();
    [sum(f64::cos), sum(f64::sin)]
}

/// What the sum of cosines is near for distances between 1 and `BASE`: the integral over all frequencies between them.
fn integral(distance: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    PLANES as f64 * ((BASE / distance).ln() - EULER) / BASE.ln()
}

fn choices(out: &Path) -> Result<()> {
    let of = |choice: usize| {
        let theta = frequencies(choice);
        (0..=450).map(move |d| (f64::from(d), sums(f64::from(d), &theta)[0] / PLANES as f64))
    };
    let near = (2..=450).map(|d| (f64::from(d), integral(f64::from(d)) / PLANES as f64));
    chart(
        out,
        "Do other frequencies fall with the distance too?",
        (
            Axis { name: "distance", range: 0.0..450.0, labels: 10, label: whole },
            Axis { name: "mean cosine of 64 planes", range: -0.5..1.7, labels: 12, label: tenths },
        ),
        &[
            Series::new("base^(-i/64)", BLUE, Mark::Line, of(0)),
            Series::new("1 - i/64", VERMILLION, Mark::Line, of(1)),
            Series::new("(1 - i/64)^2", GREEN, Mark::Dashed, of(2)),
            Series::new("the integral", INK, Mark::Dotted, near),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

/// Eight positions in four ways.
fn by_hand() -> Result<String> {
    let mut text = String::from("position   share   binary   sin m  cos m  sin m/10  cos m/10\n");
    for m in 0..8usize {
        let row = Oracle.row(m, 4, 100.0);
        let _ = writeln!(
            text,
            "{m:8} {:7.3} {:>8} {:7.2} {:6.2} {:9.2} {:9.2}",
            m as f64 / 7.0,
            format!("{m:03b}"),
            row[0],
            row[1],
            row[2],
            row[3],
        );
    }
    Ok(text)
}

/// The nearest bf16: the upper half of an `f32`, ties to even.
fn bf16(x: f32) -> u32 {
    let bits = x.to_bits();
    (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000
}

/// The entropy, in bits, of the position of one token out of texts of these lengths, each token as likely as another.
fn entropy(lengths: &[usize]) -> f64 {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let total = lengths.iter().sum::<usize>() as f64;
    let share = |position: usize| {
        lengths.iter().filter(|&&length| length > position).count() as f64 / total
    };
    (0..longest).map(share).map(|share| -share * share.log2()).sum()
}

/// The variances along the principal components of rows of a table, the largest first: the eigenvalues of the covariance,
/// by Jacobi's rotations.
fn components(rows: &[Vec<f64>]) -> Vec<f64> {
    let columns = rows[0].len();
    let mean = |f: &dyn Fn(&Vec<f64>) -> f64| rows.iter().map(f).sum::<f64>() / rows.len() as f64;
    let means: Vec<f64> = (0..columns).map(|j| mean(&|row| row[j])).collect();
    let covariance = |i: usize, j: usize| mean(&|row| (row[i] - means[i]) * (row[j] - means[j]));
    let mut a: Vec<Vec<f64>> =
        (0..columns).map(|i| (0..columns).map(|j| covariance(i, j)).collect()).collect();
    for _ in 0..20 {
        for p in 0..columns {
            for q in p + 1..columns {
                if a[p][q].abs() < 1e-13 {
                    continue;
                }
                let t = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = t.signum() / (t.abs() + t.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (above, below) = a.split_at_mut(q);
                for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
    }
    let mut variances: Vec<f64> = (0..columns).map(|i| a[i][i]).collect();
    variances.sort_by(|a, b| b.total_cmp(a));
    variances
}

/// How many components hold 99 of 100 parts of the variance.
fn needed(rows: &[Vec<f64>]) -> usize {
    let variances = components(rows);
    let total: f64 = variances.iter().sum();
    let mut sum = 0.0;
    let reached = |variance: &f64| {
        sum += variance;
        sum >= 0.99 * total
    };
    variances.iter().position(reached).map_or(variances.len(), |nth| nth + 1)
}

fn learned_rows() -> Result<Vec<Vec<f64>>> {
    let config = LearnedPositionsConfig { init_std: 1.0, init_seed: 42 };
    let table =
        LearnedPositions::<{ TABLE[0] }, { TABLE[1] }, f32, Cpu>::new(&Cpu::default(), config)
            .map_err(Error::from)?;
    let values = table.table.weight.as_vec();
    Ok(values.chunks(TABLE[1]).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect())
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let add = &mut |name: &str, value: String| numbers.add(&format!("numbers/{name}"), value);

    // A token of 128 elements with a root mean square of 1, and the position added to one element.
    let last = (LENGTH - 1) as f64;
    add("root", format!("{:.0}", ((128.0 + last * last) / 128.0).sqrt()));
    add("share-10", format!("{:.3}", 1.0 / 9.0));
    add("share-4096", format!("{:.5}", 1.0 / last));
    let shares: BTreeSet<u32> = (0..LENGTH).map(|m| bf16((m as f64 / last) as f32)).collect();
    add("shares-bf16", thousands(shares.len()));
    let flipped = |a: usize, b: usize| (a ^ b).count_ones().to_string();
    add("flipped-next", flipped(2047, 2048));
    add("flipped-far", flipped(0, 2048));
    let digits = usize::BITS - (LENGTH - 1).leading_zeros();
    add("digits", digits.to_string());
    for h in [128, 512] {
        let octave = h as f64 / 2.0 * 2f64.ln() / BASE.ln();
        add(&format!("octave-{h}"), format!("{octave:.1}"));
    }

    let lengths: Vec<usize> = (1..=16).map(|nth| 3 * nth).collect();
    add("entropy-48", format!("{:.2}", 48f64.log2()));
    add("entropy-texts", format!("{:.2}", entropy(&lengths)));
    add("bits-128", thousands(128 * 32));
    let [positions, h] = TABLE;
    let sinusoids: Vec<Vec<f64>> = (0..positions).map(|m| Oracle.row(m, h, BASE)).collect();
    let binary: Vec<Vec<f64>> =
        (0..positions).map(|m| (0..7).map(|i| (m >> i & 1) as f64).collect()).collect();
    let share = |m: usize| vec![m as f64 / (positions - 1) as f64];
    let shares: Vec<Vec<f64>> = (0..positions).map(share).collect();
    add("components-share", needed(&shares).to_string());
    add("components-binary", needed(&binary).to_string());
    add("components-sinusoids", needed(&sinusoids).to_string());
    add("components-learned", needed(&learned_rows()?).to_string());

    let theta = frequencies(0);
    for distance in [10, 100, 1000] {
        let [cosines, _] = sums(f64::from(distance), &theta);
        add(&format!("sum-{distance}"), format!("{cosines:.1}"));
        add(&format!("integral-{distance}"), format!("{:.1}", integral(f64::from(distance))));
    }
    // The root of the mean square of |S_j| over 200 distances.
    for planes in [4, 16, 48, 64] {
        let square = |d: u32| {
            let [re, im] = sums(f64::from(d), &theta[..planes]);
            re * re + im * im
        };
        let mean = (1000..1200).map(square).sum::<f64>() / 200.0;
        add(&format!("walk-{planes}"), format!("{:.1}", mean.sqrt()));
        add(&format!("root-{planes}"), format!("{:.1}", (planes as f64).sqrt()));
    }
    let turn = (TAU * PLANES as f64).round();
    add("back", format!("{turn:.0}"));
    add("back-mean", format!("{:.2}", sums(turn, &frequencies(1))[0] / PLANES as f64));
    let mean = |choice: usize, from: u32, to: u32| {
        let theta = frequencies(choice);
        let mean = |d: u32| sums(f64::from(d), &theta)[0] / PLANES as f64;
        (from..to).map(mean).sum::<f64>() / f64::from(to - from)
    };
    for (choice, name) in ["geometric", "equal", "squares"].into_iter().enumerate() {
        add(&format!("{name}-8"), format!("{:.2}", mean(choice, 8, 16)));
        add(
            &format!("{name}-128"),
            format!("{:.2}", mean(choice, 128, 256)).replace("-0.01", "\u{2212}0.01"),
        );
    }

    add("length-128", format!("{:.0}", (128.0f64 / 2.0).sqrt()));
    add("token-128", format!("{:.2}", 0.04 * 128f64.sqrt()));
    let mib = |bytes: usize| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
    add("vocabulary-rows-mib", mib(151_643 * 128 * 2 * 4));
    add("text-rows-mib", mib(2048 * 128 * 2 * 4));
    add("long-rows-mib", mib(131_072 * 128 * 2 * 4));
    Ok(())
}
