//! Made for the chapter on biases in the scores.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use crate::figures::{BLUE, GREEN, ORANGE, VERMILLION, chart, save, whole};
use contract::biases::oracle::{BiasLoops, softmax};
use contract::interface::{BucketCase, Kernel, T5Case, XlCase};
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series};
use notebook_support::heat::heat_maps;
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "biases-maps", draw: maps },
        Figure { name: "biases-curves", draw: curves },
    ],
    listings: &[
        Listing { name: "biases-slopes", text: slopes_text },
        Listing { name: "biases-by-hand", text: by_hand_text },
        Listing { name: "biases-shift", text: shift_text },
    ],
    numbers,
};

/// Tokens of a map.
const TOKENS: usize = 16;

/// One slope, for the figures.
const SLOPE: f64 = 0.25;

/// A made-up table of T5 for one head: it falls, and has a bump at distances of about 10.
fn table() -> Vec<f32> {
    let bump = |bucket: usize| if (8..13).contains(&bucket) { 1.5 } else { 0.0 };
    (0..32).map(|bucket| 0.5 - 0.125 * bucket as f32 + bump(bucket)).collect()
}

fn t5(j: usize) -> f64 {
    let case = T5Case {
        shape: [1, j + 1],
        num_heads: 1,
        bidirectional: false,
        num_buckets: 32,
        max_distance: 128,
        table: table(),
    };
    f64::from(Oracle.t5(&case)[0])
}

fn alibi(j: usize) -> f64 {
    Oracle.alibi_bias(SLOPE, j, 0)
}

fn kerple(kernel: Kernel, r1: f64, r2: f64) -> impl Fn(usize) -> f64 {
    move |j| Oracle.kerple_bias(r1, Oracle.fallen(kernel, r2, j as f64))
}

/// The cells at keys after the query are left white.
fn causal(bias: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
    let row = |m: usize| (0..TOKENS).map(|n| m.checked_sub(n).map_or(0.0, &bias)).collect();
    (0..TOKENS).map(row).collect()
}

/// What v and a query of waves say of each distance, with a made-up `W_r`.
fn transformer_xl() -> Vec<Vec<f64>> {
    let wave = |n: usize, step: f32| (0..n).map(|i| (step * (i as f32 + 1.0)).sin()).collect();
    let case = XlCase {
        shape: [1, TOKENS, 1, 4],
        keys: TOKENS,
        hidden_size: 8,
        base: 100.0,
        q: wave(TOKENS * 4, 0.7),
        k: vec![0.0; TOKENS * 4],
        u: vec![0.0; 4],
        v: vec![0.25; 4],
        weight: wave(32, 1.3),
    };
    let scores = Oracle.xl_scores(&case);
    let row = |row: &[f64]| row.iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect();
    scores.chunks(TOKENS).map(row).collect()
}

/// The weights of a text whose queries and keys are 0.
fn weights(bias: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
    let score = |at: usize| {
        let (m, n) = (at / TOKENS, at % TOKENS);
        m.checked_sub(n).map_or(f64::NEG_INFINITY, &bias)
    };
    let scores: Vec<f64> = (0..TOKENS * TOKENS).map(score).collect();
    softmax(&scores, TOKENS).chunks(TOKENS).map(<[f64]>::to_vec).collect()
}

fn maps(out: &Path) -> Result<()> {
    let alibi_map = causal(alibi);
    let t5_map = causal(t5);
    let logarithm = causal(kerple(Kernel::Logarithmic, 1.0, 1.0));
    let power = causal(kerple(Kernel::Power, 0.25, 0.5));
    let (places, seen) = (transformer_xl(), weights(alibi));
    let question = "What is added to the scores of 16 tokens?";
    save(out, question, (960, 1380), |area| {
        let (first, rest) = area.split_vertically(460);
        let (second, third) = rest.split_vertically(460);
        heat_maps(
            &first,
            "bias",
            [("ALiBi, slope 1/4", &alibi_map), ("T5, a made-up table", &t5_map)],
            &[],
        )?;
        let maps = [("KERPLE, −ln(1 + j)", &logarithm[..]), ("KERPLE, −0.25 √j", &power[..])];
        heat_maps(&second, "bias", maps, &[])?;
        let maps = [
            ("Transformer-XL, made-up queries", &places[..]),
            ("Weights with ALiBi, q = 0", &seen[..]),
        ];
        heat_maps(&third, "value", maps, &[])
    })
}

fn curves(out: &Path) -> Result<()> {
    let points = |bias: &dyn Fn(usize) -> f64, step: usize| -> Vec<(f64, f64)> {
        (0..=128).step_by(step).map(|j| (j as f64, bias(j))).filter(|p| p.1 >= -9.0).collect()
    };
    let logarithm = kerple(Kernel::Logarithmic, 1.0, 1.0);
    let power = kerple(Kernel::Power, 0.25, 0.5);
    let series = [
        Series::new("ALiBi, slope 1/4", BLUE, Mark::Line, points(&alibi, 1)),
        Series::new("T5, a made-up table", VERMILLION, Mark::Circles, points(&t5, 2)),
        Series::new("KERPLE, −ln(1 + j)", GREEN, Mark::Dashed, points(&logarithm, 1)),
        Series::new("KERPLE, −0.25 √j", ORANGE, Mark::Triangles, points(&power, 4)),
    ];
    let x = Axis { name: "distance j", range: 0.0..128.0, labels: 9, label: whole };
    let y = Axis {
        name: "added to the score",
        range: -9.0..4.0,
        labels: 7,
        label: |y| format!("{y:.0}"),
    };
    let question = "How does each bias change with the distance?";
    chart(out, question, (x, y), &series, SeriesLabelPosition::UpperRight)
}

/// Minus the logarithms of the slopes.
fn slopes_text() -> Result<String> {
    let mut text = String::from("heads   x of the slopes 2⁻ˣ, head by head\n");
    for num_heads in [1, 2, 4, 6, 8, 12] {
        let exponents =
            Oracle.slopes(num_heads).into_iter().map(|slope| (-slope.log2() * 4.0).round() / 4.0);
        let list = exponents.fold(String::new(), |text, x| text + &format!(" {x:4}"));
        let _ = writeln!(text, "{num_heads:5}  {list}");
    }
    Ok(text)
}

fn bucket(relative: i64, bidirectional: bool) -> usize {
    Oracle.bucket(&BucketCase { relative, bidirectional, num_buckets: 32, max_distance: 128 })
}

fn by_hand_text() -> Result<String> {
    let mut text = String::from(
        "distance   ALiBi 1/4   −ln(1 + j)   −0.25 √j   bucket, one direction   earlier, of both   later, of both\n",
    );
    let (logarithm, power) =
        (kerple(Kernel::Logarithmic, 1.0, 1.0), kerple(Kernel::Power, 0.25, 0.5));
    for j in [0, 1, 2, 7, 8, 15, 16, 18, 19, 64, 112, 113, 127, 128, 1000] {
        let (of_one, [earlier, later]) = (
            bucket(-(j as i64), false),
            [-(j as i64), j as i64].map(|relative| bucket(relative, true)),
        );
        let [a, l, p] = [alibi(j), logarithm(j), power(j)].map(|x| if x == 0.0 { 0.0 } else { x }); // no -0
        let _ =
            writeln!(text, "{j:8} {a:11.2} {l:12.3} {p:10.3} {of_one:23} {earlier:18} {later:16}");
    }
    Ok(text)
}

/// Three queries of a text of four tokens: which distance is where, before the shift and after it.
fn shift_text() -> Result<String> {
    let (s, t) = (3, 4);
    let row = |i: usize| (0..t).rev().map(move |j| format!("{i}:{j}"));
    let rows: Vec<Vec<String>> = (0..s).map(|i| row(i).collect()).collect();
    let padded: Vec<String> = rows
        .iter()
        .flat_map(|row| std::iter::once("0".to_string()).chain(row.iter().cloned()))
        .collect();
    let mut text = String::new();
    let mut table = |title: &str, rows: &mut dyn Iterator<Item = &[String]>| {
        let _ = writeln!(text, "{title}");
        for row in rows {
            let line = row.iter().fold(String::new(), |line, cell| line + &format!("{cell:>5}"));
            let _ = writeln!(text, "{line}");
        }
    };
    table("query:distance, the farthest first", &mut rows.iter().map(Vec::as_slice));
    table("with a 0 before each row", &mut padded.chunks(t + 1));
    table("the same list, in rows of 3", &mut padded.chunks(s));
    table("without the first of them, in rows of 4", &mut padded[s..].chunks(t));
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let mut add = |name: &str, printed: String| numbers.add(&format!("biases/{name}"), printed);
    let last = (0..1000).find(|j| bucket(-j, false) == 31).unwrap_or_default();
    add("last-bucket-from", last.to_string());
    let length = 512i64;
    let pairs = |from: i64| (length - from) * (length - from + 1) / 2;
    add("pairs-of-512", thousands(pairs(0) as usize));
    add("pairs-in-the-last", thousands(pairs(last) as usize));
    add(
        "log-at-1000",
        format!("{:.1}", kerple(Kernel::Logarithmic, 1.0, 1.0)(1000)).replace('-', "−"),
    );
    add("alibi-at-1000", format!("{:.0}", alibi(1000)).replace('-', "−"));
    let x = [1.0, -4.0, 6.0, -4.0, 1.0];
    let form = |bias: &dyn Fn(usize) -> f64| -> f64 {
        (0..25).map(|at: usize| x[at / 5] * x[at % 5] * bias((at / 5).abs_diff(at % 5))).sum()
    };
    let written = |value: f64| format!("{value:.0}").replace('-', "−");
    add("form-of-alibi", written(form(&|j| -(j as f64))));
    add("form-of-cubes", written(form(&|j| -(j as f64).powi(3))));
    add("table-of-512", thousands(8 * 512));
    add("matrix-of-512", thousands(8 * 512 * 512));
    Ok(())
}
