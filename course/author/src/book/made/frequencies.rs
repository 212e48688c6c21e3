//! Made for the chapter on stretched RoPE.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::write;
use contract::frequencies::oracle::StretchedRopeLoops;
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series, chart};
use notebook_support::plot::{BLUE, GREEN, INK, ORANGE, PURPLE, VERMILLION, thousands};
use plotters::prelude::SeriesLabelPosition;
use quadrivium::pos_emb::{Llama3, RotaryFrequencies, Yarn};
use quadrivium::rope::ntk_base;
use std::f64::consts::TAU;
use std::fmt::Write;
use std::path::Path;

/// The head size of the figure, which is Llama 2's, as are the base and the trained length.
const HEAD_DIM: usize = 128;
const BASE: f64 = 10_000.0;
const TRAINED: usize = 4096;
/// How many times longer the texts of the figure are.
const STRETCH: f64 = 8.0;

/// All of it.
pub static MADE: Made = Made {
    figures: &[Figure { name: "frequencies-wavelengths", draw: wavelengths }],
    listings: &[Listing { name: "frequencies-by-hand", text: by_hand }],
    numbers,
};

/// A head, a base, a factor and a trained length under each rule: plain, interpolated, NTK, YaRN, Llama 3.
fn rules(d: usize, base: f64, factor: f64, max_seq_len: usize) -> Result<[Vec<f64>; 5]> {
    let yarn = Yarn { factor, max_seq_len, ..Yarn::default() };
    let llama3 = Llama3 { factor, max_seq_len, ..Llama3::default() };
    let all = || {
        Ok::<_, quadrivium::Error>([
            RotaryFrequencies::plain(d, base)?,
            RotaryFrequencies::interpolated(d, base, factor)?,
            RotaryFrequencies::ntk(d, base, factor)?,
            RotaryFrequencies::yarn(d, base, yarn)?,
            RotaryFrequencies::llama3(d, base, llama3)?,
        ])
    };
    Ok(all().map_err(Error::from)?.map(|rule: RotaryFrequencies| rule.frequencies().to_vec()))
}

fn wavelengths(out: &Path) -> Result<()> {
    let [plain, slow, ntk, yarn, llama3] = rules(HEAD_DIM, BASE, STRETCH, TRAINED)?;
    let line = |name, color, mark, theta: Vec<f64>| {
        let points = theta.into_iter().enumerate();
        Series::new(name, color, mark, points.map(|(i, theta)| (i as f64, (TAU / theta).log10())))
    };
    let trained = (TRAINED as f64).log10();
    let series = [
        line("interpolation", VERMILLION, Mark::Dashed, slow),
        line("NTK", BLUE, Mark::Circles, ntk),
        line("YaRN", GREEN, Mark::Triangles, yarn),
        line("Llama 3", ORANGE, Mark::Crosses, llama3),
        line("plain RoPE", INK, Mark::Line, plain),
        Series::new("the trained length", PURPLE, Mark::Dotted, [(0.0, trained), (63.0, trained)]),
    ];
    let x = Axis { name: "plane i", range: 0.0..64.0, labels: 9, label: |i| format!("{i:.0}") };
    let power = |y: &f64| thousands(10f64.powf(*y).round() as usize);
    let name = "positions for one turn";
    let y = Axis { name, range: 0.0..6.0, labels: 7, label: power };
    let question = "Which planes does each rule slow, and how much, with k = 8?";
    write(out, &chart(question, (x, y), &series, SeriesLabelPosition::LowerRight)?)
}

/// A head of 8 elements, with 1000 trained positions and k = 4.
fn by_hand() -> Result<String> {
    let [plain, slow, ntk, yarn, llama3] = rules(8, BASE, 4.0, 1000)?;
    let mut text =
        String::from("plane   turns     plain  interpolated       NTK      YaRN   Llama 3\n");
    for i in 0..4 {
        let turns = Oracle.llama3_turns(plain[i], 1000.0);
        let [plain, slow, ntk, yarn, llama3] = [plain[i], slow[i], ntk[i], yarn[i], llama3[i]];
        let _ = writeln!(
            text,
            "{i:5} {turns:7.2} {plain:9.5} {slow:13.5} {ntk:9.5} {yarn:9.5} {llama3:9.5}"
        );
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let [plain, ..] = rules(HEAD_DIM, BASE, STRETCH, TRAINED)?;
    let unfinished = plain.iter().filter(|theta| TRAINED as f64 * *theta < TAU).count();
    numbers.add("frequencies/unfinished", unfinished);
    numbers.add("frequencies/planes", plain.len());
    let base = ntk_base(BASE, HEAD_DIM, STRETCH).map_err(Error::from)?;
    numbers.add("frequencies/ntk-base", thousands(base.round() as usize));
    let plane = |turns| Oracle.yarn_plane(turns, HEAD_DIM as f64, BASE, TRAINED as f64);
    numbers.add("frequencies/yarn-first", format!("{:.2}", plane(32.0)));
    numbers.add("frequencies/yarn-last", format!("{:.2}", plane(1.0)));
    numbers.add("frequencies/yarn-scale", format!("{:.4}", Oracle.yarn_scale(STRETCH)));
    numbers.add("frequencies/yarn-squared", format!("{:.4}", Oracle.yarn_scale(STRETCH).powi(2)));
    let long = Oracle.long_scale(32.0, TRAINED as f64, true);
    numbers.add("frequencies/long-scale", format!("{long:.4}"));
    let ratio = Oracle.dynamic_ratio(2.0, TRAINED as f64, 6144.0);
    numbers.add("frequencies/dynamic-ratio", format!("{ratio:.0}"));
    Ok(())
}
