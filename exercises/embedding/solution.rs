//! The tasks of VocabEmbedding.
//!
//! A table with one row per token id: `y[i, j] = table[ids[i, j]]`.

use crate::prelude::*;

/// Task `embedding/refuse`. Refuses ids that are not rows of a table of `vocab_size` rows.
///
/// `ids` are those of a batch `[b, s]`, one row after the other. The error names the first bad id,
/// its place `[row, column]`, and the vocabulary size. (Check first, because dfdx would panic on a
/// CPU, and stop the whole GPU.)
pub fn check_ids(ids: &[usize], [b, s]: [usize; 2], vocab_size: usize) -> Result<()> {
    // task embedding/refuse: begin
    match ids.iter().position(|&id| id >= vocab_size) {
        None => Ok(()),
        Some(at) => Err(format!(
            "token id {} at [{}, {}] is outside the vocabulary: ids must be below {vocab_size}",
            ids[at],
            at / s,
            at % s
        )),
    }
    // task embedding/refuse: end
}

/// An embedding table of `V` rows of `E` elements.
#[derive(Clone)]
pub struct VocabEmbedding<const V: usize, const E: usize, D: Device<f32>> {
    /// `[v, e]`.
    pub weight: Tensor<Rank2<V, E>, f32, D>,
}

impl<const V: usize, const E: usize, D: Device<f32>> VocabEmbedding<V, E, D> {
    /// A table with these rows.
    pub fn new(weight: Tensor<Rank2<V, E>, f32, D>) -> Self {
        Self { weight }
    }

    /// Task `embedding/forward`. The rows of the ids, `[b, s]` to `[b, s, e]`.
    ///
    /// The ids carry the tape: `ids.split_tape()` gives both, and the table must get the tape, or no gradient reaches
    /// the table. dfdx's `gather` takes the rows, and its gradient adds up repeated ids by itself. (That of its `slice`
    /// does not: `shapes#slices`.) Refuse bad ids with [`check_ids`].
    ///
    /// The values are copied bit for bit, NaN and infinities too, with no sum and no product, because 0 times NaN is
    /// NaN. The sign of a zero does not matter.
    fn lookup<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tensor<(B, S, Const<E>), f32, D, T>> {
        // task embedding/forward: begin
        let (b, s) = *ids.shape();
        let (ids, tape) = ids.split_tape(); //                              [b, s]
        check_ids(&ids.as_vec(), [b.size(), s.size()], V)?;
        Ok(self.weight.clone().put_tape(tape).gather(ids)) //               [b, s, e]
        // task embedding/forward: end
    }

    // Task `embedding/types`, about types. `forward` gives what `lookup` gives, but forgets the width, because its last
    // dimension is a `usize`. A norm of 8 does not take such vectors, so a caller has to reshape them first, and only
    // the run shows whether 8 was right. Change the result type (and the body), so that the compiler knows the width
    // and refuses vectors of 5 by itself.

    /// The rows of the ids, `[b, s]` to `[b, s, e]`.
    // task embedding/types: begin
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tensor<(B, S, Const<E>), f32, D, T>> {
        self.lookup(ids)
    }
    // task embedding/types: starter
    //| // to do: task embedding/types, the function below
    //| pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
    //|     &self,
    //|     ids: Tensor<(B, S), usize, D, T>,
    //| ) -> Result<Tensor<(B, S, usize), f32, D, T>> {
    //|     let rows = self.lookup(ids)?; //                                    [b, s, e]
    //|     let (b, s, _) = *rows.shape();
    //|     Ok(rows.reshape_like(&(b, s, E)))
    //| }
    // task embedding/types: end
}

/// Task `embedding/backward`. The gradient of a table of `vocab_size` rows by hand, `[v, e]`, in plain numbers.
///
/// `ids` are `[b s]`, `dy` is `[b s, e]`, row-major. Row `i` gets the sum of the rows of `dy` whose id
/// is `i`, and 0 if there is none:
///
/// ```text
/// dtable[i] = Σ over the places t with ids[t] = i of dy[t]
/// ```
///
/// A NaN in `dy[t]` reaches the row `ids[t]` and no other.
pub fn backward(ids: &[usize], dy: &[f32], vocab_size: usize, embedding_dim: usize) -> Vec<f32> {
    // task embedding/backward: begin
    let mut dtable = vec![0.0; vocab_size * embedding_dim];
    for (id, dy) in ids.iter().zip(dy.chunks(embedding_dim)) {
        let row = &mut dtable[id * embedding_dim..][..embedding_dim];
        row.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
    }
    dtable
    // task embedding/backward: end
}

/// Task `embedding/initial`. `n` values, normal with `mean` and `std`: the numbers that PyTorch draws from `seed`.
///
/// PyTorch has two ways, between which `n` decides, and both start `Mt::new(..)` with the LOW 32 bits of the seed.
/// `std` is the standard deviation, not the variance.
///
/// **`n >= 16`.** First fill ALL `n` places with uniforms on `[0, 1)`: one word each, its low 24 bits times `2⁻²⁴`.
/// Then turn each full block of 16 into normal values, place `j` together with place `j + 8`:
///
/// ```text
/// u1 = 1 - d[j]        u2 = d[j + 8]
/// radius = sqrt(-2 ln u1)        angle = f32(2π) · u2        (the angle in f32)
/// d[j]     = radius · cos(angle) · std + mean
/// d[j + 8] = radius · sin(angle) · std + mean
/// ```
///
/// If 16 does not divide `n`, draw 16 FRESH uniforms into the LAST 16 places and turn those.
///
/// **`n < 16`.** Compute in `f64`. A uniform takes two words, the first of which is the high one, and of these 64 bits
/// the low 53, times `2⁻⁵³`. Every two values take two uniforms:
///
/// ```text
/// radius = sqrt(-2 ln(1 - u2))        angle = 2π · u1
/// radius · cos(angle) · std + mean,   then   radius · sin(angle) · std + mean
/// ```
pub fn normal(n: usize, mean: f32, std: f32, seed: u64) -> Vec<f32> {
    // task embedding/initial: begin
    let mut random = Mt::new(seed as u32);
    if n < 16 {
        let mut unit = || {
            let bits = (u64::from(random.next_u32()) << 32) | u64::from(random.next_u32());
            (bits & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
        };
        let mut values = Vec::new();
        while values.len() < n {
            let (u1, u2) = (unit(), unit());
            let radius = (-2.0 * (1.0 - u2).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * u1).sin_cos();
            let scaled = |value: f64| (value * f64::from(std) + f64::from(mean)) as f32;
            values.extend([scaled(radius * cos), scaled(radius * sin)]);
        }
        values.truncate(n);
        return values;
    }
    let mut unit = || (random.next_u32() & 0x00FF_FFFF) as f32 / (1 << 24) as f32;
    let turn = |block: &mut [f32]| {
        for j in 0..8 {
            let radius = (-2.0 * f64::from(1.0 - block[j]).ln()).sqrt();
            let (sin, cos) = f64::from(std::f32::consts::TAU * block[j + 8]).sin_cos();
            block[j] = (radius * cos) as f32 * std + mean;
            block[j + 8] = (radius * sin) as f32 * std + mean;
        }
    };
    let mut values: Vec<f32> = (0..n).map(|_| unit()).collect();
    values.chunks_exact_mut(16).for_each(turn);
    if n % 16 != 0 {
        let tail = &mut values[n - 16..];
        tail.fill_with(unit);
        turn(tail);
    }
    values
    // task embedding/initial: end
}

/// Task `embedding/property`. An invariant of your own.
///
/// `embedding` claims to be a VocabEmbedding, in plain values. Return `Ok`, or an `Err` that says what is wrong with
/// it.
///
/// `embedding.forward(&case)` gives an `interface::Found { y, ids_after }`, and `embedding.backward(&case, &dy)` the
/// gradient of the table, for an `interface::LookupCase { shape: [b, s], vocab_size, embedding_dim, table, ids }`.
/// `embedding.initial_table(v, e, interface::NormalInit { mean, std, seed })` gives the first table. Each of them may
/// refuse: `?` makes that your `Err`, with its words in `refusal.0`.
///
/// You are graded by the known bugs that you catch, at least 25, and you may not reject a correct one.
pub fn property(embedding: &dyn interface::VocabEmbedding) -> Result<()> {
    // task embedding/property: begin
    let case = interface::LookupCase {
        shape: [2, 3],
        vocab_size: 7,
        embedding_dim: 2,
        table: (0..14).map(|i| i as f32 + 0.5).collect(),
        ids: vec![6, 0, 3, 3, 3, 1],
    };
    let found = embedding.forward(&case)?;
    if found.ids_after != case.ids {
        return Err("the ids changed".to_string());
    }
    for (id, y) in case.ids.iter().zip(found.y.chunks(2)) {
        if y != &case.table[id * 2..][..2] {
            return Err(format!("id {id} gave {y:?}"));
        }
    }
    // With dy = 1, the gradient of a row counts how often it was looked up.
    let counts = embedding.backward(&case, &[1.0; 12])?;
    for (id, row) in counts.chunks(2).enumerate() {
        let count = case.ids.iter().filter(|&&other| other == id).count() as f32;
        if row != [count, count] {
            return Err(format!("row {id} was looked up {count} times, its gradient is {row:?}"));
        }
    }
    let outside = interface::LookupCase { ids: vec![0, 1, 2, 3, 4, 7], ..case };
    match embedding.forward(&outside) {
        Ok(_) => Err("id 7 of 7 was accepted".to_string()),
        Err(_) => Ok(()),
    }
    // task embedding/property: end
}
