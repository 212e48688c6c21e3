//! Tables of numbers, and what a module does in a long decode.

use super::curves::table_error;
use super::*;
use notebook_support::plot::thousands;
use notebook_support::rope::numbers::Angles;
use quadrivium::rope::ratio_for_length;
use std::f64::consts::TAU;
use std::fmt::Write;

/// Some planes of a large head, with NTK and interpolation beside them.
///
/// # Errors
/// What the library reports.
pub fn planes() -> Result<String> {
    let (plain, ntk) = (frequencies(1.0)?, frequencies(4.0)?);
    let mut out = String::from(
        "head_dim 128, base 10,000\n\
         plane    theta_i      wavelength   NTK k=4: wavelength   slowed   interpolated\n",
    );
    for i in [0, 1, 8, 16, 24, 32, 40, 48, 56, 62, 63] {
        let (turn, slowed) = (TAU / plain[i], TAU / ntk[i]);
        let _ = writeln!(
            out,
            "{i:>5}    {:<10.7}{turn:>13.1}{slowed:>22.1}{:>9.4}{:>15.1}",
            plain[i],
            plain[i] / ntk[i],
            4.0 * turn
        );
    }
    Ok(out)
}

/// How far tables are off, by how their angles are built.
///
/// # Errors
/// What the library reports.
pub fn precision() -> Result<String> {
    let mut out = String::from(
        "largest error of a cosine or sine, head_dim 128, 16 positions from n on\n\
         \x20       n    n * 2^-23   f32 angles   f64 angles\n",
    );
    for n in [100, 1000, 4096, 32_768, 131_072, 1_000_000] {
        let _ = writeln!(
            out,
            "{:>9}{:>13}{:>13}{:>13}",
            thousands(n),
            format!("{:.1e}", n as f64 * 2f64.powi(-23)),
            format!("{:.1e}", table_error(Angles::F32, n)?),
            format!("{:.1e}", table_error(Angles::Library, n)?)
        );
    }
    Ok(out)
}

/// A static module, row by row and in one call.
///
/// # Errors
/// What the library reports.
pub fn decode() -> Result<String> {
    const D: usize = 8;
    const MS: usize = 4;
    const ROWS: usize = 13;
    let rope = module::<D>(BASE, MS, 1, false)?;
    let x: Vec<f32> = (0..ROWS * D).map(|i| ((i * 29 + 7) % 32) as f32 / 8.0 - 1.9375).collect();
    let whole = rope.try_forward(rows::<D>(&x))?.as_vec();
    let whole_ratio = ratio_for_length(ROWS, MS)?;
    let mut out = format!(
        "max_seq_len {MS}, ratio 1, dynamic false, head_dim {D}, base 10,000\n\
         one call with {ROWS} rows: ratio {whole_ratio} for all of them\n\n\
         row   ratio when it comes alone   largest difference to the one call\n"
    );
    for t in 0..ROWS {
        let row = t * D..(t + 1) * D;
        let alone = turned(&rope, &x[row.clone()], t)?;
        let ratio = if t < MS { rope.ratio() } else { ratio_for_length(t + 1, MS)? };
        let largest = alone.iter().zip(&whole[row]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let _ = writeln!(out, "{t:>3}{ratio:>28}{largest:>37.4}");
    }
    Ok(out)
}

/// What static and dynamic modules hold after calls of growing and shrinking lengths.
///
/// # Errors
/// What the library reports.
pub fn long_calls() -> Result<String> {
    const MS: usize = 6;
    let mut fixed = module::<8>(BASE, MS, 1, false)?;
    let mut dynamic = module::<8>(BASE, MS, 1, true)?;
    let mut out = format!(
        "max_seq_len {MS}, ratio 1 at first\n\
         \x20                            static                dynamic\n\
         offset    s   ends at   uses k   keeps k, es   uses k   keeps k, es\n"
    );
    for (offset, s) in [(0, 6), (0, 7), (11, 1), (12, 1), (0, 3), (24, 1)] {
        let x = vec![1.0; 8 * s];
        let end = offset + s;
        let uses = |rope: &NtkAwareRope<8, Cpu>| -> Result<usize> {
            Ok(if end <= rope.cached_len() { rope.ratio() } else { ratio_for_length(end, MS)? })
        };
        let (first, second) = (uses(&fixed)?, uses(&dynamic)?);
        fixed.try_forward_mut((rows::<8>(&x), offset))?;
        dynamic.try_forward_mut((rows::<8>(&x), offset))?;
        let keeps =
            |rope: &NtkAwareRope<8, Cpu>| format!("{}, {}", rope.ratio(), rope.cached_len());
        let _ = writeln!(
            out,
            "{offset:>6}{s:>5}{end:>10}{first:>9}{:>14}{second:>9}{:>14}",
            keeps(&fixed),
            keeps(&dynamic)
        );
    }
    Ok(out)
}
