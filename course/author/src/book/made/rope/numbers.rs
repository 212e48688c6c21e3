//! The numbers in the chapter's sentences.

use super::curves::{FITS, pairs, table_error};
use super::*;
use crate::book::made::kinds::Numbers;
use contract::rope::museum::BUGS;
use notebook_support::plot::thousands;
use notebook_support::rope::averaged_bound;
use notebook_support::rope::numbers::Angles;
use quadrivium::functional::*;
use quadrivium::rope::{RotaryTables, ntk_base, ratio_for_length};
use std::f64::consts::TAU;

pub fn numbers(numbers: &mut Numbers) -> Result<()> {
    by_hand(numbers)?;
    frequencies_and_ntk(numbers)?;
    the_bound(numbers)?;
    layouts(numbers)?;
    precision(numbers)?;
    long_calls(numbers)?;
    cost(numbers);
    numbers.add("rope/bugs", BUGS.len());
    Ok(())
}

/// The head of four of the worked example.
fn by_hand(numbers: &mut Numbers) -> Result<()> {
    let (q, k) = ([1.0f32, 2.0, 0.0, -1.0], [2.0f32, 1.0, 1.0, 0.0]);
    let rope = module::<4>(100.0, 64, 1, false)?;
    let (y, z) = (turned(&rope, &q, 3)?, turned(&rope, &k, 1)?);
    for (name, values) in [("q", &y), ("k", &z)] {
        for (j, value) in values.iter().enumerate() {
            numbers.add(&format!("rope/hand-{name}{j}"), format!("{value:.4}"));
        }
    }
    for (name, angle) in
        [("1", 1.0f64), ("0.1", 0.1), ("3", 3.0), ("0.3", 0.3), ("2", 2.0), ("0.2", 0.2)]
    {
        numbers.add(&format!("rope/cos-{name}"), format!("{:.4}", angle.cos()));
        numbers.add(&format!("rope/sin-{name}"), format!("{:.4}", angle.sin()));
    }
    numbers.add("rope/hand-dot", format!("{:.4}", dot(&y, &z)));
    let moved = dot(&turned(&rope, &q, 43)?, &turned(&rope, &k, 41)?);
    numbers.add("rope/hand-moved", format!("{moved:.4}"));
    numbers.add("rope/hand-unturned", dot(&q, &k));
    for i in 0..2 {
        let plane = |a: &[f32]| [a[i], a[i + 2]];
        let part = dot(&plane(&y), &plane(&z));
        numbers.add(&format!("rope/hand-plane-{i}"), format!("{part:.4}"));
    }
    numbers.add("rope/hand-ntk-base", format!("{}", ntk_base(100.0, 4, 4.0)?));
    numbers.add("rope/hand-ntk-theta", format!("{:.3}", rotary_frequencies(4, 100.0, 4.0)?[1]));
    Ok(())
}

fn frequencies_and_ntk(numbers: &mut Numbers) -> Result<()> {
    let (plain, ntk) = (frequencies(1.0)?, frequencies(4.0)?);
    let turn = |theta: f64| TAU / theta;
    let last = PLANES - 1;
    numbers.add("rope/longest-wavelength", thousands(turn(plain[last]).round() as usize));
    numbers.add("rope/shortest-wavelength", format!("{:.4}", turn(plain[0])));
    let large = rotary_frequencies(HEAD, 500_000.0, 1.0)?;
    let millions = turn(large[last]) / 1e6;
    numbers.add("rope/longest-wavelength-500k", format!("{millions:.2}"));
    let never = plain.iter().filter(|&&theta| turn(theta) > TRAINED as f64).count();
    numbers.add("rope/planes-without-a-turn", never);
    // Of these, the angle at the end of the longer range is past the one at the end of training.
    let past = |theta: &&f64| turn(**theta) > TRAINED as f64;
    let beyond = plain.iter().zip(&ntk).filter(|(theta, slowed)| {
        past(theta) && *slowed * 4.0 * TRAINED as f64 > *theta * TRAINED as f64 * (1.0 + 1e-9)
    });
    numbers.add("rope/planes-beyond", beyond.count());
    numbers.add("rope/exponent", format!("{:.4}", 128.0 / 126.0));
    numbers.add("rope/ntk-base-4", thousands(ntk_base(BASE, HEAD, 4.0)?.round() as usize));
    numbers.add("rope/ntk-c-4", format!("{:.4}", plain[1] / ntk[1]));
    numbers.add("rope/ntk-middle-4", format!("{:.2}", plain[32] / ntk[32]));
    let careless = 4f64.powf(126.0 / 128.0);
    let factor = 4;
    numbers.add("rope/vllm-dynamic-4", factor * factor - (factor - 1));
    numbers.add("rope/vllm-plane-0", format!("{:.4}", 4f64.powf(2.0 / 128.0)));
    numbers.add("rope/base-times-ratio-4", format!("{careless:.2}"));
    Ok(())
}

fn the_bound(numbers: &mut Numbers) -> Result<()> {
    let theta = frequencies(1.0)?;
    let bound = averaged_bound(&theta, 1000);
    for r in [0, 10, 100, 1000] {
        numbers.add(&format!("rope/bound-{r}"), format!("{:.1}", bound[r]));
    }
    let rises = bound[..101].windows(2).filter(|pair| pair[1] > pair[0]).count();
    numbers.add("rope/bound-rises", rises);
    let pairs = pairs()?;
    let at = |pair: &[Vec<f64>; 2], r: usize| product(&theta, &pair[0], &pair[1], r as f64);
    numbers.add("rope/made-0", format!("{:.2}", at(&pairs.made, 0)));
    numbers.add("rope/made-100", format!("{:.2}", at(&pairs.made, FITS)));
    numbers.add("rope/slow-256", format!("{:.4}", at(&pairs.slow, 256)));
    Ok(())
}

/// One query and one key in both layouts, and in a mixture.
fn layouts(numbers: &mut Numbers) -> Result<()> {
    const D: usize = 8;
    let wave =
        |step: f32| -> Vec<f32> { (0..D).map(|i| (step * (i as f32 + 1.0)).sin()).collect() };
    let (q, k) = (wave(1.3), wave(0.7));
    let theta = rotary_frequencies(D, BASE, 1.0)?;
    let at = |x: &[f32], position: usize, layout: Layout| -> Result<Vec<f32>> {
        let positions = position..position + 1;
        let tables = RotaryTables::new(&Cpu::default(), Const::<D>, &theta, positions, layout)?;
        Ok(match layout {
            Layout::HalfSplit => apply_rotary_pos_emb(rows::<D>(x), &tables.cos, &tables.sin)?,
            Layout::Interleaved => {
                apply_rotary_pos_emb_interleaved(rows::<D>(x), &tables.cos, &tables.sin)?
            }
        }
        .as_vec())
    };
    use Layout::{HalfSplit, Interleaved};
    for (name, of_q, of_k) in [
        ("half", HalfSplit, HalfSplit),
        ("pairs", Interleaved, Interleaved),
        ("mixed", HalfSplit, Interleaved),
    ] {
        for (place, m, n) in [("near", 5, 2), ("far", 25, 22)] {
            let score = dot(&at(&q, m, of_q)?, &at(&k, n, of_k)?);
            numbers.add(&format!("rope/layout-{name}-{place}"), format!("{score:.4}"));
        }
    }
    Ok(())
}

fn precision(numbers: &mut Numbers) -> Result<()> {
    for (name, n) in [("4096", 4096), ("million", 1_000_000)] {
        let bound = n as f64 * 2f64.powi(-23);
        numbers.add(&format!("rope/drift-bound-{name}"), format!("{bound:.5}"));
        let f32s = table_error(Angles::F32, n)?;
        numbers.add(&format!("rope/drift-f32-{name}"), format!("{f32s:.5}"));
    }
    let here = table_error(Angles::Library, 1_000_000)?;
    numbers.add("rope/drift-f64-million", format!("{:.1}", here * 1e8));
    let bf16 = table_error(Angles::Bf16Positions, 4096)?;
    numbers.add("rope/drift-bf16-4096", format!("{bf16:.1}"));
    Ok(())
}

fn long_calls(numbers: &mut Numbers) -> Result<()> {
    for length in [4096, 4097, 8192, 8193, 9000] {
        let ratio = ratio_for_length(length, 2048)?;
        numbers.add(&format!("rope/ratio-{length}"), ratio);
    }
    let scores::Decode { stale, whole, .. } = scores::decode()?;
    let newest = scores::MS - 1;
    numbers.add("rope/stale-newest", format!("{:.2}", stale[newest]));
    numbers.add("rope/whole-newest", format!("{:.2}", whole[newest]));
    let best = (0..stale.len()).max_by(|&a, &b| stale[a].total_cmp(&stale[b])).unwrap_or(0);
    numbers.add("rope/stale-best", best);
    numbers.add("rope/stale-back", scores::MS - best);
    numbers.add("rope/rows-9000", thousands(2048 * ratio_for_length(9000, 2048)?));
    numbers.add("rope/stale-best-score", format!("{:.2}", stale[best]));
    Ok(())
}

fn cost(numbers: &mut Numbers) {
    let (s, nh) = (2048, 32);
    let values = s * nh * HEAD;
    numbers.add("rope/cost-values", thousands(values));
    numbers.add("rope/cost-mib", values * 4 / (1 << 20));
    numbers.add("rope/cost-table-mib", 2 * TRAINED * HEAD * 4 / (1 << 20));
    numbers.add("rope/cost-rows-mib", 2 * s * HEAD * 4 / (1 << 20));
    numbers.add("rope/cost-turn", thousands(3 * values));
    let scores = 2 * s * s * nh * HEAD;
    numbers.add("rope/cost-scores", thousands(scores));
    numbers.add("rope/cost-quotient", thousands(scores / (2 * 3 * values)));
    numbers.add("rope/cost-dense", thousands(2 * HEAD));
}
