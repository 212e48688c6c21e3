//! What VocabEmbedding promises.

use crate::component::{NET, law, laws};
use crate::embedding::interface::*;
use crate::embedding::menu;
use crate::embedding::oracle::LookupLoops;
use crate::graded_cases::judge::judge_graded_cases;
pub(crate) use crate::graded_cases::tokens::SPECIAL;
use crate::graded_cases::tokens::{Bad, middle_is_right};
use crate::laws::{U, repeats, values, widen};
use crate::oracle::{Oracle, random};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

type Embedding = dyn VocabEmbedding;

laws! {
    initial_short, initial_long, initial_tail, initial_mean_and_std, initial_seed, initial_repeats, initial_any_table,
    rows_of_the_table, first_and_last_id, special_values, ids_kept, token_alone, relabelling, forward_any_input,
    id_refused, huge_id_refused, refusal_names_id, gradient_counts, gradient_adds, gradient_unused_rows,
    gradient_stays_in_its_row, gradient_linear, gradient_not_of_table, gradient_of_a_frequent_token,
    gradient_any_input,
}

// --- inputs ---------------------------------------------------------------------------------

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    case: LookupCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy    = {}", crate::describe::List(dy))
    }
}

/// Any sizes of the menu, up to three batch rows of up to four tokens.
fn inputs() -> impl Strategy<Value = Input> {
    let sizes = (prop::sample::select(&menu::EMBEDDING[..]), 1..=3usize, 1..=4usize);
    sizes.prop_flat_map(|((v, e), b, s)| {
        let ids = prop::collection::vec(0..v, b * s);
        (values(v * e), ids, values(b * s * e)).prop_map(move |(table, ids, dy)| Input {
            case: LookupCase { shape: [b, s], vocab_size: v, embedding_dim: e, table, ids },
            dy,
        })
    })
}

/// A table whose values show their place: `±(id + 1).(j + 1)`, so that row 3 is 4.1, -4.2, 4.3.
pub(crate) fn telling_table(vocab_size: usize, embedding_dim: usize) -> Vec<f32> {
    let value = |i: usize| {
        let (id, j) = (i / embedding_dim, i % embedding_dim);
        let size = (id + 1) as f32 + (j + 1) as f32 / 10.0;
        if j % 2 == 0 { size } else { -size }
    };
    (0..vocab_size * embedding_dim).map(value).collect()
}

/// Two batch rows of three tokens. Id 5 comes three times; 1, 3 and 4 never.
fn witness() -> LookupCase {
    let (v, e) = menu::EMBEDDING[0];
    let ids = vec![5, 0, 5, 2, 6, 5];
    LookupCase { shape: [2, 3], vocab_size: v, embedding_dim: e, table: telling_table(v, e), ids }
}

/// Some of these ids in one batch row.
fn row_of(v: usize, e: usize, ids: Vec<usize>) -> LookupCase {
    let table = telling_table(v, e);
    LookupCase { shape: [1, ids.len()], vocab_size: v, embedding_dim: e, table, ids }
}

/// A `dy` for the witness: multiples of 1/8, all different, so that sums are exact.
fn witness_dy() -> Vec<f32> {
    (0..12).map(|i| 0.875 - 0.25 * i as f32).collect()
}

fn shape(case: &LookupCase) -> [usize; 3] {
    [case.shape[0], case.shape[1], case.embedding_dim]
}

fn table_shape(case: &LookupCase) -> [usize; 2] {
    [case.vocab_size, case.embedding_dim]
}

fn forward(embedding: &Embedding, case: &LookupCase) -> Step<Found> {
    let found =
        answer("forward", || embedding.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: shape(case).to_vec(), got: found.y.len() };
    if found.y.len() == shape(case).iter().product() {
        Ok(found)
    } else {
        Err(Violation::new("forward", length).on(case))
    }
}

fn backward(embedding: &Embedding, case: &LookupCase, dy: &[f32]) -> Step<Vec<f32>> {
    let grad = answer("backward", || embedding.backward(case, dy))?;
    let length = Fault::Length { shape: table_shape(case).to_vec(), got: grad.len() };
    if grad.len() == case.table.len() { Ok(grad) } else { Err(Violation::new("backward", length)) }
}

const COPIED: &str = "rows are copied, so every bit is the same";

/// One graded case.
pub(super) type Asked = crate::graded_cases::Asked<LookupCase>;

/// What `y` must be, and that the ids are only read.
pub(super) fn matches_rows(embedding: &Embedding, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    answer("forward", || embedding.forward_in(*manner, case))
        .and_then(|Found { y, ids_after }| {
            same_values("forward", &shape(case), &y, &Oracle.rows(case), COPIED)?;
            holds("forward", ids_after == case.ids, || {
                format!("the ids are {} after the call", crate::describe::List(&ids_after))
            })
        })
        .map_err(|violation| violation.on(asked))
}

/// [`matches_rows`], asked plainly.
fn matches_table(embedding: &Embedding, case: &LookupCase) -> Step {
    matches_rows(embedding, &Asked { manner: Manner::Plain, case: case.clone(), dy: Vec::new() })
}

/// What the gradient must be.
pub(super) fn matches_gradient_in(embedding: &Embedding, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let e = case.embedding_dim;
    let expected = Oracle.gradient(case, dy);
    let size: Vec<f32> = dy.iter().map(|dy| dy.abs()).collect();
    let size = Oracle.gradient(case, &size);
    let mut count = vec![0.0; case.vocab_size];
    case.ids.iter().for_each(|&id| count[id] += 1.0);
    let why = "count·2⁻²⁴ of Σ|dy|: a sum in f32 rounds once for each term";
    let ask = || answer("backward", || embedding.backward_in(*manner, case, dy));
    let shape = table_shape(case);
    ask()
        .and_then(|got| {
            let tolerance = |i: usize| count[i / e] * U * size[i];
            within("backward", &shape, &got, &expected, tolerance, why)?;
            repeats("backward", case.ids.len(), &shape, &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}

/// [`matches_gradient_in`] of [`APART`], where the first and the last tokens do not matter.
pub(super) fn matches_middle(embedding: &Embedding, asked: &Asked) -> Step {
    let Asked { case, dy, .. } = asked;
    matches_gradient_in(embedding, asked).or_else(|violation| {
        let middle = answer("backward", || embedding.backward(case, dy))
            .is_ok_and(|got| middle_is_right(&case.ids, &got, &Oracle.gradient(case, dy)));
        if middle && !violation.is_rearranged() { Ok(()) } else { Err(violation) }
    })
}

/// What the gradient must be where every sum is exact.
fn matches_gradient(embedding: &Embedding, case: &LookupCase, dy: &[f32], why: &str) -> Step {
    let on =
        |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.to_vec() });
    let expected: Vec<f32> = Oracle.gradient(case, dy).iter().map(|&sum| sum as f32).collect();
    let got = backward(embedding, case, dy).map_err(on)?;
    same_values("backward", &table_shape(case), &got, &expected, why).map_err(on)
}

// --- initial values -------------------------------------------------------------------------

/// Compares with PyTorch's numbers.
pub(crate) fn same_normal(call: &str, shape: [usize; 2], got: &[f32], init: NormalInit) -> Step {
    let expected = widen(&random::normal(shape[0] * shape[1], init));
    let tolerance = 1e-6 * f64::from(init.std) + 2.0 * U * f64::from(init.mean.abs());
    let why = "10⁻⁶ of std, as PyTorch takes logarithm and sine in f32, and 1 ulp of the mean";
    within(call, &shape, got, &expected, |_| tolerance, why)
}

fn initial(embedding: &Embedding, (v, e): (usize, usize), init: NormalInit) -> Step {
    matches_normal(embedding, [v, e], init)
}

pub(super) fn matches_normal(embedding: &Embedding, [v, e]: [usize; 2], init: NormalInit) -> Step {
    answer("initial_table", || embedding.initial_table(v, e, init))
        .and_then(|table| same_normal("initial_table", [v, e], &table, init))
        .map_err(|violation| violation.on(told((v, e), init)))
}

fn told((v, e): (usize, usize), init: NormalInit) -> String {
    let NormalInit { mean, std, seed } = init;
    format!("vocab_size {v}, embedding_dim {e}, mean {mean}, std {std}, seed {seed}")
}

const STANDARD: NormalInit = NormalInit { mean: 0.0, std: 1.0, seed: 42 };

/// A table of fewer than 16 values starts with PyTorch's normal numbers: in double precision, two values from every two
/// draws.
#[law("embedding/initial-normal-short", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "z = √(−2 ln(1 − u₂))·(cos 2πu₁, sin 2πu₁),  u ∈ 53 bits")]
fn initial_short(embedding: &Embedding, _: &Run) -> Verdict {
    // 15 is odd: the last value's partner is dropped.
    for sizes in [(3, 4), (7, 2), (3, 5), (1, 1)] {
        initial(embedding, sizes, STANDARD)?;
    }
    Ok(None)
}

/// A table of 16 values or more is filled with uniform numbers first, which then become normal ones in blocks of 16,
/// value j paired with value j + 8.
#[law("embedding/initial-normal-long", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "(z_j, z_{j+8}) = √(−2 ln(1 − u_j))·(cos 2πu_{j+8}, sin 2πu_{j+8})")]
fn initial_long(embedding: &Embedding, _: &Run) -> Verdict {
    for sizes in [(4, 4), (8, 4), (16, 4)] {
        initial(embedding, sizes, STANDARD)?;
    }
    Ok(None)
}

/// If the number of values is not a multiple of 16, the LAST 16 are drawn again.
#[law("embedding/initial-normal-tail", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "n mod 16 ≠ 0  ⇒  z_{n−16} … z_{n−1} come from 16 fresh draws")]
fn initial_tail(embedding: &Embedding, _: &Run) -> Verdict {
    for sizes in [(4, 6), (5, 6), (12, 5), (17, 1)] {
        initial(embedding, sizes, STANDARD)?;
    }
    Ok(None)
}

/// The normal numbers are multiplied by the standard deviation, then the mean is added.
#[law("embedding/initial-mean-and-std", see = "embedding#initial-values", about = Seed, points = 2,
    formula = "T = z·std + mean")]
fn initial_mean_and_std(embedding: &Embedding, _: &Run) -> Verdict {
    for (mean, std) in [(0.5, 0.02), (-3.0, 2.5), (0.25, 0.0)] {
        for sizes in [(3, 4), (8, 4)] {
            initial(embedding, sizes, NormalInit { mean, std, seed: 42 })?;
        }
    }
    Ok(None)
}

/// The seed decides the numbers, and only its low 32 bits count.
#[law("embedding/initial-seed", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "T(seed) = T(seed mod 2³²);  other low bits give another T")]
fn initial_seed(embedding: &Embedding, _: &Run) -> Verdict {
    let high = 1u64 << 32; // the generator takes the low 32 bits
    for seed in [0, 7, high - 1, high + 42, 3 * high + 7, u64::MAX - 5] {
        for sizes in [(3, 4), (8, 4)] {
            initial(embedding, sizes, NormalInit { seed, ..STANDARD })?;
        }
    }
    Ok(None)
}

/// For any size, mean, deviation and seed, the table is PyTorch's.
#[law("embedding/initial-any-table", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "T = mean + std·z(v·e; seed)", stays = NET)]
fn initial_any_table(embedding: &Embedding, run: &Run) -> Verdict {
    judge_graded_cases(embedding, run, "initial_table")
}

/// A table that is drawn again, after others, is the same.
#[law("embedding/initial-repeats", see = "embedding#initial-values", about = Seed, points = 1,
    formula = "T(seed), then T(seed'), then T(seed): the first equals the last",
    stays = "A generator that goes on breaks other checks as well, but as a wrong number; here it has its name.")]
fn initial_repeats(embedding: &Embedding, _: &Run) -> Verdict {
    let draw = |(v, e), seed| {
        let init = NormalInit { seed, ..STANDARD };
        answer("initial_table", || embedding.initial_table(v, e, init))
            .map_err(|violation| violation.on(told((v, e), init)))
    };
    for (v, e) in [(3, 5), (5, 6)] {
        let first = draw((v, e), 11)?;
        draw((v, e), 12)?;
        draw((3, 1), 11)?; // an odd number: a cached partner would show
        let again = draw((v, e), 11)?;
        let why = "the same sizes and seed as before, so the same numbers";
        same_values("initial_table", &[v, e], &again, &first, why).map_err(|violation| {
            violation.on(told((v, e), NormalInit { seed: 11, ..STANDARD }) + ", drawn again")
        })?;
    }
    Ok(None)
}

// --- lookup ---------------------------------------------------------------------------------

/// Each token gets the row of its id, at its own place in batch and sequence.
#[law("embedding/rows-of-the-table", see = "embedding#lookup", about = Lookup, points = 2,
    formula = "E[i, j] = T[I[i, j]], bit for bit",
    stays = "The definition on two inputs that can be checked by hand.")]
fn rows_of_the_table(embedding: &Embedding, _: &Run) -> Verdict {
    matches_table(embedding, &witness())?;
    let (v, e) = menu::EMBEDDING[1];
    let ids = vec![7, 3, 1, 10, 10, 4, 2, 6]; // [4, 2]: more batch rows than tokens
    matches_table(embedding, &LookupCase { shape: [4, 2], ..row_of(v, e, ids) })?;
    Ok(None)
}

/// The ids 0 and v − 1 are ids like any other.
#[law("embedding/first-and-last-id", see = "embedding#lookup", about = Lookup, points = 1,
    formula = "E(0) = T[0],  E(v − 1) = T[v − 1]",
    stays = "The two ends are where off-by-one shows; random ids rarely hit them.")]
fn first_and_last_id(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        for ids in [vec![0], vec![v - 1], vec![v - 1, 0], vec![1, 0, v - 2, v - 1]] {
            matches_table(embedding, &row_of(v, e, ids))?;
        }
    }
    Ok(None)
}

/// Rows are copied, whatever they hold: NaN, infinities, tiny and huge numbers arrive as they are, and stay in their rows.
#[law("embedding/special-values", see = "embedding#lookup", about = Special, points = 1,
    formula = "E = T[I] for T with NaN, ±∞, 10⁻⁴⁵, 10³⁸")]
fn special_values(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        // Every other row is special, each in its own way.
        let mut case = row_of(v, e, (0..v).collect());
        for (i, value) in case.table.iter_mut().enumerate() {
            let (row, j) = (i / e, i % e);
            if row % 2 == 1 {
                *value = SPECIAL[(row / 2 + j) % SPECIAL.len()];
            }
        }
        matches_table(embedding, &case)?;
    }
    Ok(None)
}

/// The ids are only read, and never changed.
#[law("embedding/ids-kept", see = "embedding#lookup", about = State, points = 1,
    formula = "I after = I before",
    stays = "It says what is wrong: the ids, and not the rows.")]
fn ids_kept(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        let ids = (0..v).rev().chain([3, 3]).collect();
        let case = row_of(v, e, ids);
        let after = forward(embedding, &case)?.ids_after;
        holds("forward", after == case.ids, || {
            format!("the ids are {} after the call", crate::describe::List(&after))
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A token's row depends on its id alone: looked up without the other tokens, it is the same.
#[law("embedding/token-alone", see = "embedding#lookup", about = Lookup, points = 1,
    formula = "E(I)[i, j] = E([[I[i, j]]])",
    stays = "A law without an oracle: it holds for every lookup, whatever its numbers.")]
fn token_alone(embedding: &Embedding, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let y = forward(embedding, case)?.y;
        let mut alone = Vec::with_capacity(y.len());
        for &id in &case.ids {
            let one = LookupCase { shape: [1, 1], ids: vec![id], ..case.clone() };
            alone.extend(forward(embedding, &one)?.y);
        }
        let why = "what the same token gives alone";
        same_values("forward", &shape(case), &y, &alone, why)
    })?;
    Ok(None)
}

/// If the rows of the table change places and the ids follow, nothing changes.
#[law("embedding/relabelling", see = "embedding#lookup", about = Lookup, points = 1,
    formula = "E(π(I); πT) = E(I; T)",
    stays = "A law without an oracle: no id is special, to padding or to anything else.")]
fn relabelling(embedding: &Embedding, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let v = case.vocab_size;
        let mut moved = case.clone();
        moved.table.rotate_right(case.embedding_dim); // row k becomes row k + 1
        moved.ids.iter_mut().for_each(|id| *id = (*id + 1) % v);
        let (y, expected) = (forward(embedding, &moved)?.y, forward(embedding, case)?.y);
        let why = "rows changed places, and the ids with them; no number may change";
        same_values("forward", &shape(case), &y, &expected, why).map_err(|b| b.on(&moved))
    })?;
    Ok(None)
}

/// On any input, the result is the rows of the table.
#[law("embedding/forward-any-input", see = "embedding#lookup", about = Lookup, points = 3,
    formula = "E[i, j] = T[I[i, j]], bit for bit", stays = NET)]
fn forward_any_input(embedding: &Embedding, run: &Run) -> Verdict {
    judge_graded_cases(embedding, run, "forward")
}

// --- refusals -------------------------------------------------------------------------------

/// The witness's shape with `id` at place `t` and good ids elsewhere.
fn with_bad_id(v: usize, e: usize, t: usize, id: usize) -> LookupCase {
    let mut ids = vec![2, 0, v - 1, 1, 3, 2];
    ids[t] = id;
    LookupCase { shape: [2, 3], ..row_of(v, e, ids) }
}

fn refused(embedding: &Embedding, manner: Manner, case: &LookupCase, id: usize) -> Step<String> {
    let rule = format!("id {id} is not below the vocabulary size {}", case.vocab_size);
    refusal("forward", &rule, || embedding.forward_in(manner, case))
        .map_err(|violation| violation.on(format!("{}\n{case}", manner.words()).trim_start()))
}

/// Every id from v on is refused, wherever it appears in the batch.
#[law("embedding/id-refused", see = "embedding#ids", about = Refusal, points = 2,
    formula = "∃ i, j: I[i, j] ≥ v  ⇒  no result",
    stays = "The plain rule. Which words a refusal needs is another law.")]
fn id_refused(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        for t in 0..6 {
            for id in [v, v + 1, 2 * v] {
                refused(embedding, Manner::Plain, &with_bad_id(v, e, t, id), id)?;
            }
        }
    }
    Ok(None)
}

/// Ids that become small if they are cut, or negative if they are read with a sign, or wrap
/// around when they are multiplied.
pub(crate) const HUGE: [usize; 6] =
    [(1 << 8) + 3, (1 << 16) + 3, (1 << 32) + 3, 1 << 63, usize::MAX, usize::MAX - 2];

/// An id is never cut to fewer bits or read as negative: huge ids are refused too.
#[law("embedding/huge-id-refused", see = "embedding#ids", about = Refusal, points = 1,
    formula = "I[i, j] ∈ {2⁸ + 3, 2¹⁶ + 3, 2³² + 3, 2⁶³, 2⁶⁴ − 1}  ⇒  no result",
    stays = "It says why: cut to 32 bits, 2³² + 3 is 3.")]
fn huge_id_refused(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        for id in HUGE {
            refused(embedding, Manner::Plain, &with_bad_id(v, e, 4, id), id)?;
        }
    }
    Ok(None)
}

/// The refusal names the first bad id, its place in the batch, and the vocabulary size.
#[law("embedding/refusal-names-id", see = "embedding#ids", about = Refusal, points = 1,
    formula = "I[2, 3] = 977 ≥ v = 12  ⇒  \"… 977 … [2, 3] … 12 …\"")]
fn refusal_names_id(embedding: &Embedding, run: &Run) -> Verdict {
    judge_graded_cases(embedding, run, "refusal")
}

/// Ids at these places are bad. The words name the first, its place, and the vocabulary size.
pub(super) fn refused_in_words(
    embedding: &Embedding,
    (v, e): (usize, usize),
    manner: Manner,
    Bad { shape, ids: bad }: &Bad,
) -> Step {
    let shape = *shape;
    let mut ids: Vec<usize> = (0..shape[0] * shape[1]).map(|t| t % v).collect();
    bad.iter().for_each(|&(t, id)| ids[t] = id);
    let mut case = LookupCase { shape, ..row_of(v, e, ids) };
    if shape[1] % 2 == 1 {
        case.table[0] = f32::NAN; // what the table holds changes nothing
    }
    let (t, id) = bad[0];
    let words = refused(embedding, manner, &case, id)?;
    names_all(&words, id, [t / shape[1], t % shape[1]], v).map_err(|violation| violation.on(&case))
}

/// Whether the words of a refusal have these numbers.
pub(crate) fn names_all(words: &str, id: usize, place: [usize; 2], vocab_size: usize) -> Step {
    let numbers: Vec<&str> = words.split(|c: char| !c.is_ascii_digit()).collect();
    let mut said = numbers.clone();
    for (what, number) in [
        ("the first bad id", id),
        ("its row in the batch", place[0]),
        ("its column", place[1]),
        ("the vocabulary size", vocab_size),
    ] {
        let number = number.to_string();
        let found = said.iter().position(|word| *word == number);
        let missing = || format!("the refusal does not name {what}, {number}: \"{words}\"");
        holds("forward", found.is_some(), missing)?;
        found.map(|place| said.remove(place));
    }
    // The row comes first, unless the words say which is which.
    let [row, column] = place.map(|number| number.to_string());
    let row_at = numbers.iter().position(|word| *word == row).unwrap_or(0);
    let in_order = numbers[row_at + 1..].iter().any(|word| *word == column);
    let labelled = words.find("col").is_some_and(|column| words[column..].contains("row"));
    holds("forward", in_order || labelled, || {
        format!("the place is [{row}, {column}], the row first. The refusal says: \"{words}\"")
    })
}

// --- gradient -------------------------------------------------------------------------------

/// If every dy is 1, the gradient of a row is the number of its tokens.
#[law("embedding/gradient-counts", see = "embedding#gradient", about = Gradient, points = 2,
    formula = "dE = 1  ⇒  dT[k, ·] = #{(i, j): I[i, j] = k}",
    stays = "The gradient can be written down by hand here: it counts.")]
fn gradient_counts(embedding: &Embedding, _: &Run) -> Verdict {
    for (v, e) in menu::EMBEDDING {
        let ids = vec![v - 1, 0, v - 1, 2, v - 1, 0, 1, 5];
        let case = LookupCase { shape: [2, 4], ..row_of(v, e, ids) };
        let why = "the number of the row's tokens";
        matches_gradient(embedding, &case, &vec![1.0; 8 * e], why)?;
    }
    Ok(None)
}

/// A row that is looked up three times gets the sum of its three dy.
#[law("embedding/gradient-adds", see = "embedding#gradient", about = Gradient, points = 2,
    formula = "dT[k] = Σ dE[i, j] over I[i, j] = k",
    stays = "Repeated ids by name: the most common mistake on the way back.")]
fn gradient_adds(embedding: &Embedding, _: &Run) -> Verdict {
    let (case, dy) = (witness(), witness_dy());
    let on = |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.clone() });
    let got = backward(embedding, &case, &dy).map_err(on)?;
    let expected = [0, 1].map(|j| dy[j] + dy[4 + j] + dy[10 + j]);
    let why = "row 5, the sum of the dy of tokens [0, 0], [0, 2] and [1, 2]; exact, no rounding";
    same_values("backward", &[2], &got[10..12], &expected, why).map_err(on)?;
    Ok(None)
}

/// A row that is never looked up gets exactly 0.
#[law("embedding/gradient-unused-rows", see = "embedding#gradient", about = Gradient, points = 1,
    formula = "k ∉ I  ⇒  dT[k] = 0",
    stays = "Exactly 0, without a tolerance: optimizers move what is not 0.")]
fn gradient_unused_rows(embedding: &Embedding, _: &Run) -> Verdict {
    let (case, dy) = (witness(), witness_dy());
    let on = |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.clone() });
    let got = backward(embedding, &case, &dy).map_err(on)?;
    let unused: Vec<f32> = [1, 3, 4].iter().flat_map(|k| got[2 * k..][..2].to_vec()).collect();
    let why = "rows 1, 3 and 4, which no token looks up";
    same_values("backward", &[3, 2], &unused, &[0.0; 6], why).map_err(on)?;
    Ok(None)
}

/// A dy of NaN or infinity reaches the row of its token and no other.
#[law("embedding/gradient-stays-in-its-row", see = "embedding#gradient", about = Gradient, points = 1,
    formula = "dE[i, j] = NaN  ⇒  dT[k] unchanged for k ≠ I[i, j]")]
fn gradient_stays_in_its_row(embedding: &Embedding, _: &Run) -> Verdict {
    let case = witness();
    let mut dy = witness_dy();
    dy[2..4].fill(f32::NAN); // token [0, 1], id 0
    dy[8..10].fill(f32::INFINITY); // token [1, 1], id 6
    let why = "NaN in row 0, infinity in row 6, the sums of dy elsewhere";
    matches_gradient(embedding, &case, &dy, why)?;
    Ok(None)
}

/// The gradient is linear in dy.
#[law("embedding/gradient-linear", see = "embedding#gradient", about = Gradient, points = 1,
    formula = "dT(a + 64·b) = dT(a) + 64·dT(b), exactly, for whole a and b",
    stays = "A law without an oracle and without a tolerance.")]
fn gradient_linear(embedding: &Embedding, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        // Whole numbers, so that all sums are exact.
        let a: Vec<f32> = dy.iter().map(|dy| (4.0 * dy).round()).collect();
        let b: Vec<f32> = a.iter().rev().copied().collect();
        let both: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + 64.0 * b).collect();
        let (da, db) = (backward(embedding, case, &a)?, backward(embedding, case, &b)?);
        let expected: Vec<f32> = da.iter().zip(&db).map(|(a, b)| a + 64.0 * b).collect();
        let got = backward(embedding, case, &both)?;
        let why = "dT(a) + 64·dT(b); whole numbers, so no rounding";
        same_values("backward", &table_shape(case), &got, &expected, why)
            .map_err(|violation| violation.on(Input { case: case.clone(), dy: both }))
    })?;
    Ok(None)
}

/// The gradient depends on ids and dy, not on what the table holds.
#[law("embedding/gradient-not-of-table", see = "embedding#gradient", about = Gradient, points = 1,
    formula = "dT(I, dE; T) = dT(I, dE; T')")]
fn gradient_not_of_table(embedding: &Embedding, _: &Run) -> Verdict {
    let (case, dy) = (witness(), witness_dy());
    let expected = backward(embedding, &case, &dy).map_err(|violation| violation.on(&case))?;
    for value in [0.0, 1e30, f32::NAN] {
        let other = LookupCase { table: vec![value; case.table.len()], ..case.clone() };
        let on =
            |violation: Box<Violation>| violation.on(Input { case: other.clone(), dy: dy.clone() });
        let got = backward(embedding, &other, &dy).map_err(on)?;
        let why = "the same ids and dy with another table";
        same_values("backward", &table_shape(&case), &got, &expected, why).map_err(on)?;
    }
    Ok(None)
}

/// A token that occurs 3000 times is counted 3000 times: the sum is kept in f32 or better.
#[law("embedding/gradient-of-a-frequent-token", see = "embedding#gradient", about = Precision, points = 1,
    formula = "dE = 1, k looked up 3000 times  ⇒  dT[k] = 3000")]
fn gradient_of_a_frequent_token(embedding: &Embedding, _: &Run) -> Verdict {
    let (v, e) = menu::EMBEDDING[0];
    let case = LookupCase { shape: [30, 100], ..row_of(v, e, vec![3; 3000]) };
    matches_gradient(embedding, &case, &vec![1.0; 3000 * e], "3000 times 1")?;
    Ok(None)
}

/// On any input, the gradient is what plain f64 loops give.
#[law("embedding/gradient-any-input", see = "embedding#gradient", about = Gradient, points = 3,
    formula = "|dT − dT₆₄| ≤ count·2⁻²⁴·Σ|dE|", stays = NET)]
fn gradient_any_input(embedding: &Embedding, run: &Run) -> Verdict {
    judge_graded_cases(embedding, run, "backward")
}
