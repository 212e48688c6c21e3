//! More claims about position encodings that are wrong, one test for each: what RoPE's gradients are, which base Code Llama
//! has, and what linear attention can carry.

use crate::support::*;
use quadrivium::functional::{Layout, apply_rotary_pos_emb};
use quadrivium::model::{LlamaConfig, LlamaTransformer};
use quadrivium::pos_emb::{
    LearnableRope, LearnableRopeConfig, RotaryTables, ntk_base, rotary_frequencies,
};
use quadrivium::position::NoPosition;
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};

/// The gradient of one head of 8 that was turned to this position, when `dy` comes back.
fn gradient_at(position: usize, dy: &[f32]) -> Vec<f64> {
    let theta = rotary_frequencies(8, 10_000.0, 1.0).unwrap();
    let at = position..position + 1;
    let tables = RotaryTables::new(&dev(), Const::<8>, &theta, at, Layout::HalfSplit).unwrap();
    let head = |values: &[f32]| tensor(values, (1usize, 1usize, 1usize, Const::<8>));
    let x = head(&[0.8, -0.3, 0.5, 0.7, -0.6, 0.9, 0.4, -0.5]);
    let y = apply_rotary_pos_emb(x.leaky_trace(), &tables.cos, &tables.sin).unwrap();
    let loss = (y * head(dy)).sum::<Rank0, _>();
    widen(&loss.backward().get(&x).as_vec())
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

// ANCHOR: monitor
#[test]
fn rope_has_no_gradient_to_monitor() {
    // The rotation has nothing that is trained, and a model has as many weights with it
    // as without any encoding.
    let rope = NtkAwareRope::<8, Dev>::new(&dev(), NtkAwareRopeConfig::default()).unwrap();
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&rope), 0);
    type Small = LlamaTransformer<16, 16, 2, 1, 8, 24, 2, f32, Dev>;
    let model = Small::new(&dev(), LlamaConfig::default()).unwrap();
    let weights = model.num_trainable_params();
    let without = model.with_position(|_| Ok(NoPosition), NoPosition).unwrap();
    assert_eq!(weights, without.num_trainable_params());

    // Only RoPE with trained frequencies has gradients: one number for each plane.
    let config = LearnableRopeConfig::default();
    let trained = LearnableRope::<8, f32, Dev>::new(&dev(), config).unwrap();
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&trained), 4);
}
// ANCHOR_END: monitor

// ANCHOR: vanish
#[test]
fn a_cosine_of_zero_loses_no_gradient() {
    // 11 radians are three and a half turns' halves: cos 11 = 0.004, and sin 11 = -1.
    assert!(11f64.cos().abs() < 0.005);
    let dy = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]; // of plane 0 alone
    let dx = gradient_at(11, &dy);
    // What the cosine does not let through, the sine does: it arrives at the partner.
    assert!(dx[0].abs() < 0.005 && dx[4].abs() > 0.9999);
    // And so at each position: a rotation back is a rotation.
    let dy = [0.3, -1.1, 0.7, 0.2, 0.9, -0.4, 0.1, 1.3];
    for position in 0..200 {
        let ratio = length(&gradient_at(position, &dy)) / length(&widen(&dy));
        assert!((ratio - 1.0).abs() < 4.0 * U32, "{position}: {ratio}");
    }
}
// ANCHOR_END: vanish

// ANCHOR: code_llama
#[test]
fn code_llamas_base_is_not_that_of_ntk() {
    // Llama 2 was trained at 4096 positions, Code Llama at 16,384: 4 times as many. NTK
    // would have made the base 40,890.
    let ntk = ntk_base(10_000.0, 128, 4.0).unwrap();
    assert_eq!(ntk.round(), 40_890.0);
    // The base of Code Llama is 1,000,000. As a rule of NTK that would be a text 93 times
    // as long.
    let factor = (1_000_000f64 / 10_000.0).powf(126.0 / 128.0);
    assert_eq!(factor.round(), 93.0);
    let asked = ntk_base(10_000.0, 128, factor).unwrap();
    assert!((asked / 1_000_000.0 - 1.0).abs() < 1e-12);
}
// ANCHOR_END: code_llama

// ANCHOR: state
/// Weights of a query and the keys up to it, by a state that runs: `state = M state` at
/// each step, then the new key's features are added, and the query's features read it.
/// Returns the weight of the key at `key` for the query at `query`.
fn carried(m: &[Vec<f64>], phi: &[f64], psi: &[f64], query: usize, key: usize) -> f64 {
    let mut state = vec![0.0; psi.len()];
    for position in 0..=query {
        state = m.iter().map(|row| row.iter().zip(&state).map(|(m, s)| m * s).sum()).collect();
        if position == key {
            state.iter_mut().zip(psi).for_each(|(s, psi)| *s += psi);
        }
    }
    state.iter().zip(phi).map(|(s, phi)| s * phi).sum()
}
// ANCHOR_END: state

// ANCHOR: only
#[test]
fn linear_attention_carries_more_than_rotations() {
    let (sin, cos) = 0.3f64.sin_cos();
    let turn = vec![vec![cos, -sin], vec![sin, cos]];
    let decay = vec![vec![0.9]];
    let jordan = vec![vec![1.0, 1.0], vec![0.0, 1.0]];
    let shift = vec![vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0], vec![0.0; 3]];
    let one_plus_cos = vec![vec![1.0, 0.0, 0.0], vec![0.0, cos, -sin], vec![0.0, sin, cos]];

    // Each matrix, with features of a query and of a key, and the weight by distance.
    type Weight = fn(f64) -> f64;
    let all: [(_, Vec<f64>, Vec<f64>, Weight); 5] = [
        (&turn, vec![1.0, 0.0], vec![1.0, 0.0], |d| (0.3 * d).cos()),
        (&decay, vec![1.0], vec![1.0], |d| 0.9f64.powf(d)),
        (&jordan, vec![1.0, 0.0], vec![0.0, 1.0], |d| d),
        (&shift, vec![1.0, 0.0, 0.0], vec![0.5, 2.0, 7.0], |d| {
            [0.5, 2.0, 7.0].get(d as usize).copied().unwrap_or(0.0)
        }),
        (&one_plus_cos, vec![1.0, 1.0, 0.0], vec![1.0, 1.0, 0.0], |d| 1.0 + (0.3 * d).cos()),
    ];
    for (nth, (m, phi, psi, weight)) in all.iter().enumerate() {
        for query in 0..24 {
            for key in 0..=query {
                let got = carried(m, phi, psi, query, key);
                let want = weight((query - key) as f64);
                assert!((got - want).abs() < 1e-12, "{nth}: {query} and {key}: {got} {want}");
            }
        }
    }
}
// ANCHOR_END: only

/// How many rows of a matrix are independent, up to `1e-12` of its largest element.
fn rank(mut a: Vec<Vec<f64>>) -> usize {
    let largest = a.iter().flatten().fold(0.0f64, |most, x| most.max(x.abs()));
    let mut rank = 0;
    for column in 0..a[0].len() {
        let below = |row: &usize| a[*row][column].abs();
        let Some(pivot) = (rank..a.len()).max_by(|i, j| below(i).total_cmp(&below(j))) else {
            break;
        };
        if a[pivot][column].abs() <= 1e-12 * largest {
            continue;
        }
        a.swap(rank, pivot);
        let of_pivot = a[rank].clone();
        for row in &mut a[rank + 1..] {
            let factor = row[column] / of_pivot[column];
            row.iter_mut().zip(&of_pivot).for_each(|(x, p)| *x -= factor * p);
        }
        rank += 1;
    }
    rank
}

// ANCHOR: hankel
#[test]
fn what_a_finite_state_can_carry_is_a_question_of_rank() {
    // The weights of queries at 8, .., 15 and keys at 8, .., 1 are a matrix of weights
    // c(i + j + 0), which is features times features: its rank is at most their number.
    let of = |c: &dyn Fn(f64) -> f64| {
        rank((0..8).map(|i| (0..8).map(|j| c(f64::from(i + j))).collect()).collect())
    };
    assert_eq!(of(&|d| (0.3 * d).cos()), 2);
    assert_eq!(of(&|d| 0.9f64.powf(d)), 1);
    assert_eq!(of(&|d| 0.9f64.powf(d) * (0.3 * d).cos()), 2);
    assert_eq!(of(&|d| d), 2);
    assert_eq!(of(&|d| d.min(4.0)), 5); // buckets of one distance each, and one for the rest
    assert_eq!(of(&|d| 1.0 / (1.0 + d)), 8); // KERPLE's logarithm: no end, however many features
}
// ANCHOR_END: hankel
