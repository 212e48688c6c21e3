//! Stretched RoPE of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use contract::with_frequencies_size;
use quadrivium::functional::rotate_by_frequencies;
use quadrivium::pos_emb::{
    DynamicNtk, Llama3, LongRope, RotaryFrequencies, ScaledRope, ScaledRopeConfig, Yarn,
};
use quadrivium::rope::{Layout, MAX_TABLE_POSITIONS, RotaryTables};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(StretchedRope, &[]);

type Heads<H, T = NoneTape> = Tensor<(usize, usize, usize, H), f32, Dev, T>;

/// The library's frequencies and scale of a rotation.
fn of(case: &StretchedRopeCase) -> Reply<RotaryFrequencies> {
    RotaryFrequencies::new(case.frequencies.clone(), case.scale).map_err(refused)
}

/// By tables of just these rows, of any head size.
fn turned<T: Tape<f32, Dev>>(
    x: Heads<usize, T>,
    case: &StretchedRopeCase,
) -> Reply<Heads<usize, T>> {
    let ([_, s, _, hd], frequencies) = (case.shape, of(case)?);
    let positions = case.offset..case.offset + s;
    let tables =
        RotaryTables::of_frequencies(&dev(), hd, &frequencies, positions, Layout::HalfSplit);
    tables.and_then(|tables| tables.rotate(x)).map_err(refused)
}

/// By the module, which is asked another question before, and may be copied then.
fn by_module<const HD: usize>(
    x: Heads<usize>,
    manner: Manner,
    case: &StretchedRopeCase,
) -> Reply<Vec<f32>> {
    let frequencies = of(case)?;
    let rotary_dim = Some(frequencies.rotary_dim());
    let max_position = case.offset + case.shape[1];
    let config =
        ScaledRopeConfig { rotary_dim, ..ScaledRopeConfig::new(frequencies, max_position) };
    let mut rope = ScaledRope::<HD, Dev>::new(&dev(), config).map_err(refused)?;
    let x: Heads<Const<HD>> = x.realize::<(usize, usize, usize, Const<HD>)>();
    let run = |rope: &ScaledRope<HD, Dev>| rope.try_forward((x.clone(), case.offset));
    if let Manner::Again | Manner::Cloned = manner {
        rope.try_forward((x.clone() * 2.0, 0)).map_err(refused)?;
    }
    if manner == Manner::Cloned {
        rope = rope.clone();
    }
    Ok(run(&rope).map_err(refused)?.as_vec())
}

impl StretchedRope for Library {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let FrequenciesCase { ref rule, rotary_dim: d, base, offset, seq_len, .. } = *case;
        let length = offset + seq_len;
        let made = match *rule {
            Stretch::Plain => RotaryFrequencies::plain(d, base),
            Stretch::Interpolated { factor } => RotaryFrequencies::interpolated(d, base, factor),
            Stretch::Ntk { factor } => RotaryFrequencies::ntk(d, base, factor),
            Stretch::DynamicNtk { factor, max_seq_len } => {
                let rule = DynamicNtk { factor, max_seq_len };
                RotaryFrequencies::dynamic_ntk(d, base, rule, length)
            }
            Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
                let own =
                    Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate, ..Yarn::default() };
                RotaryFrequencies::yarn(d, base, own)
            }
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
                let rule = Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor };
                RotaryFrequencies::llama3(d, base, rule)
            }
            Stretch::LongRope { factor, max_seq_len, ref short_factor, ref long_factor } => {
                let rule = LongRope {
                    factor,
                    max_seq_len,
                    short_factor: short_factor.clone(),
                    long_factor: long_factor.clone(),
                    attention_factor: None,
                };
                RotaryFrequencies::longrope(d, base, &rule, length)
            }
        };
        let made = made.map_err(refused)?;
        Ok(Frequencies { frequencies: made.frequencies().to_vec(), scale: made.scale() })
    }

    fn forward_in(&self, manner: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        let x = heads(case.shape, &case.x, manner);
        if manner == Manner::Traced {
            return Ok(turned(x.leaky_trace(), case)?.as_vec());
        }
        if case.offset >= MAX_TABLE_POSITIONS {
            return Ok(turned(x, case)?.as_vec()); // past every table
        }
        with_frequencies_size!(case.shape[3], |HD| by_module::<HD>(x, manner, case), _ => {
            Ok(turned(x, case)?.as_vec())
        })
    }

    fn backward_in(
        &self,
        manner: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let x = heads(case.shape, &case.x, leaf_manner(manner));
        let planes = case.frequencies.len();
        if 2 * planes != case.shape[3] {
            // Frequencies are trained where all of a head turns.
            let mut grads = run_back(manner, dy, || turned(traced(&x, manner), case))?;
            return Ok(StretchedRopeGrads { dx: gradient(&mut grads, &x), dtheta: Vec::new() });
        }
        let theta: Vec<f32> = case.frequencies.iter().map(|theta| *theta as f32).collect();
        let theta = tensor(&theta, (planes,));
        let layout = Layout::HalfSplit;
        let call = || {
            let turned = rotate_by_frequencies(traced(&x, manner), &theta, case.offset, layout);
            // Trained frequencies have no scale: what is turned is scaled.
            turned.and_then(|y| Ok(y.try_mul(case.scale as f32)?)).map_err(refused)
        };
        let mut grads = run_back(manner, dy, call)?;
        let dtheta = gradient(&mut grads, &theta);
        Ok(StretchedRopeGrads { dx: gradient(&mut grads, &x), dtheta })
    }
}
