//! Questions to a VocabEmbedding.

use crate::component::Fingerprint;
use crate::embedding::interface::*;
use crate::laws::widen;

/// Asks them all.
pub fn fingerprints(embedding: &dyn VocabEmbedding) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (v, e, mean, std, seed) in TABLES {
        let init = NormalInit { mean, std, seed };
        fingerprints.push(Fingerprint::ask("initial_table", || {
            embedding.initial_table(v, e, init).map(|table| widen(&table))
        }));
    }
    for case in cases() {
        let found = || embedding.forward(&case);
        fingerprints.push(Fingerprint::ask("forward", || Ok(widen(&found()?.y))));
        fingerprints.push(Fingerprint::ask("forward", || {
            Ok(found()?.ids_after.iter().map(|&id| id as f64).collect())
        }));
        // The gradient of a bad id is not specified: the forward pass refuses it.
        if case.ids.iter().any(|&id| id >= case.vocab_size) {
            continue;
        }
        let mut dy: Vec<f32> =
            (0..case.ids.len() * case.embedding_dim).map(|i| 0.75 - 0.25 * i as f32).collect();
        fingerprints
            .push(Fingerprint::ask("backward", || Ok(widen(&embedding.backward(&case, &dy)?))));
        dy[0] = f32::NAN;
        fingerprints
            .push(Fingerprint::ask("backward", || Ok(widen(&embedding.backward(&case, &dy)?))));
    }
    fingerprints.push(Fingerprint::ask("backward", || {
        Ok(widen(&embedding.backward(&frequent(), &[1.0; 6000])?))
    }));
    // How a refusal is worded: whether it names the id, and whether any number.
    let bad = LookupCase { shape: [1, 3], ids: vec![1, 977, 2], ..plain(7, 2, vec![]) };
    let words = || embedding.forward(&bad).err().map(|refusal| refusal.0).unwrap_or_default();
    let says = |yes: bool| Ok(vec![f64::from(u8::from(yes))]);
    fingerprints.push(Fingerprint::ask("forward", || says(words().contains("977"))));
    let number = |words: String| words.contains(|c: char| c.is_ascii_digit());
    fingerprints.push(Fingerprint::ask("forward", || says(number(words()))));
    fingerprints
}

/// `(v, e, mean, std, seed)`: short, one block, a tail; the last one is the first one again.
const TABLES: [(usize, usize, f32, f32, u64); 9] = [
    (3, 5, 0.0, 1.0, 42),
    (3, 4, 0.0, 1.0, 42),
    (3, 4, 0.5, 0.25, 7),
    (4, 4, -1.0, 2.0, 42),
    (8, 4, 0.0, 1.0, 42),
    (5, 6, 0.0, 1.0, 42),
    (5, 6, 0.0, 1.0, 0),
    (3, 4, 0.0, 1.0, (5 << 32) + 42),
    (3, 4, 0.0, 1.0, 42),
];

/// One batch row of these ids, over a table of plain values.
fn plain(v: usize, e: usize, ids: Vec<usize>) -> LookupCase {
    let table = (0..v * e).map(|i| 1.003 + 0.5 * i as f32 * (-1.0f32).powi(i as i32)).collect();
    LookupCase { shape: [1, ids.len()], vocab_size: v, embedding_dim: e, table, ids }
}

/// One token 3000 times.
fn frequent() -> LookupCase {
    LookupCase { shape: [30, 100], ..plain(7, 2, vec![3; 3000]) }
}

/// Repeats, both ends, more rows than tokens and the reverse; strange values; bad ids.
fn cases() -> Vec<LookupCase> {
    let mut cases = vec![
        LookupCase { shape: [2, 3], ..plain(7, 2, vec![5, 0, 5, 2, 6, 5]) },
        LookupCase { shape: [4, 2], ..plain(12, 5, vec![7, 3, 1, 10, 10, 4, 2, 6]) },
        plain(16, 4, vec![15]),
        plain(16, 4, vec![0]),
    ];
    for value in [f32::NAN, 1e-40] {
        let mut case = plain(7, 2, vec![1, 2, 3]);
        case.table[2..4].fill(value);
        cases.push(case);
    }
    let mut tiny = plain(7, 2, vec![1, 2]);
    tiny.table.fill(1e-40);
    cases.push(tiny);
    let bad = [7, 8, 14, (1 << 16) + 3, (1 << 32) + 3, usize::MAX];
    cases.extend(bad.map(|id| LookupCase { shape: [2, 2], ..plain(7, 2, vec![1, 2, 3, id]) }));
    cases
}
