//! Made for the chapter on the feed-forward network.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::write;
use contract::feedforward::oracle::{Passes, SwiGluLoops};
use contract::interface::SwiGluCase;
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series, chart};
use notebook_support::plot::{BLUE, INK, VERMILLION, thousands};
use plotters::prelude::SeriesLabelPosition;
use quadrivium::feedforward::ffn_hidden_size;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[Figure { name: "feedforward-silu", draw: silu }],
    listings: &[
        Listing { name: "feedforward-by-hand", text: by_hand_text },
        Listing { name: "feedforward-sizes", text: sizes_text },
    ],
    numbers,
};

/// Where the curves are drawn: steps of 1/8 from −6 to 6.
fn steps() -> impl Iterator<Item = f64> {
    (-48..=48).map(|eighth| f64::from(eighth) / 8.0)
}

fn silu(out: &Path) -> Result<()> {
    let series = [
        Series::new("relu", INK, Mark::Dotted, steps().map(|a| (a, a.max(0.0)))),
        Series::new("silu", BLUE, Mark::Circles, steps().map(|a| (a, Oracle.silu(a)))),
        Series::new(
            "the slope of silu",
            VERMILLION,
            Mark::Triangles,
            steps().map(|a| (a, Oracle.slope(a))),
        ),
    ];
    let x = Axis { name: "a", range: -6.0..6.0, labels: 13, label: |a| format!("{a:.0}") };
    let y = Axis { name: "value", range: -1.0..6.0, labels: 8, label: |y| format!("{y:.0}") };
    let question = "How does silu differ from relu?";
    write(out, &chart(question, (x, y), &series, SeriesLabelPosition::UpperLeft)?)
}

/// One token of two elements, three units between.
fn by_hand() -> Passes {
    let case = SwiGluCase {
        shape: [1, 1, 2],
        ffn_hidden_size: 3,
        gate: vec![1.0, 1.0, 0.0, 0.0, -2.0, 0.0],
        up: vec![2.0, -1.0, 1.0, 1.0, 0.0, 2.0],
        down: vec![1.0, 1.0, 1.0, 0.0, 2.0, -1.0],
        x: vec![1.0, 2.0],
    };
    Oracle.passes(&case, &[1.0, 0.0])
}

fn by_hand_text() -> Result<String> {
    let Passes { a, b: c, z, dz, da, db: dc, .. } = by_hand();
    let mut text =
        String::from("unit      a   open   silu      c       z     dz  slope      da      dc\n");
    for k in 0..3 {
        let (open, silu, slope) = (Oracle.sigmoid(a[k]), Oracle.silu(a[k]), Oracle.slope(a[k]));
        let row = [a[k], open, silu, c[k], z[k], dz[k], slope, da[k], dc[k]];
        let [a, open, silu, c, z, dz, slope, da, dc] = row.map(|x| if x == 0.0 { 0.0 } else { x }); // no -0
        let _ = writeln!(
            text,
            "{k:4} {a:6.1} {open:6.3} {silu:6.3} {c:6.1} {z:7.3} {dz:6.1} {slope:6.3} {da:7.3} {dc:7.3}"
        );
    }
    Ok(text)
}

/// Published models: name, h, multiple_of, multiplier.
const MODELS: [(&str, usize, usize, Option<f64>); 5] = [
    ("Llama 7B, Llama 2 7B", 4096, 256, None),
    ("Llama 65B", 8192, 256, None),
    ("Llama 2 70B", 8192, 4096, Some(1.3)),
    ("Llama 3 8B", 4096, 1024, Some(1.3)),
    ("Llama 3.2 1B", 2048, 256, Some(1.5)),
];

fn sizes_text() -> Result<String> {
    let mut text = String::from(
        "model                      h   8h/3, cut   times   cut   multiple       f   f/h\n",
    );
    for (name, h, multiple_of, multiplier) in MODELS {
        let f = ffn_hidden_size(h, multiple_of, multiplier).map_err(Error::from)?;
        let two_thirds = 8 * h / 3;
        let cut = Oracle.multiplied(two_thirds, multiplier);
        let times = multiplier.map_or("-".to_string(), |times| times.to_string());
        let share = f as f64 / h as f64;
        let _ = writeln!(
            text,
            "{name:<22} {h:5} {two_thirds:11} {times:>7} {cut:5} {multiple_of:10} {f:7} {share:5.2}"
        );
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let h = 4096;
    let f = ffn_hidden_size(h, 256, None).map_err(Error::from)?;
    numbers.add("feedforward/two-thirds", thousands(8 * h / 3));
    numbers.add("feedforward/size", thousands(f));
    numbers.add("feedforward/three-matrices", thousands(3 * h * f));
    numbers.add("feedforward/two-matrices", thousands(2 * h * 4 * h));
    // A product and a sum for each weight.
    numbers.add("feedforward/flops", thousands(2 * 3 * h * f));
    let lowest = (-4000..0).map(|a| f64::from(a) / 1000.0);
    let lowest = lowest.min_by(|a, b| Oracle.silu(*a).total_cmp(&Oracle.silu(*b))).unwrap_or(0.0);
    numbers.add("feedforward/lowest-at", format!("{lowest:.2}").replace('-', "−"));
    numbers.add("feedforward/lowest", format!("{:.2}", Oracle.silu(lowest)).replace('-', "−"));
    let steepest = (0..8000).map(|a| Oracle.slope(f64::from(a) / 1000.0)).fold(0.0, f64::max);
    numbers.add("feedforward/steepest", format!("{steepest:.2}"));
    Ok(())
}
