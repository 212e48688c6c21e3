//! `cargo course bench token`: what a decoded token and a prompt cost, beside how fast this machine reads and multiplies.

use crate::{Implementation, ROUNDS, Times, timed, writable};
use benches::random::{self, PROMPT};
use course::arguments::BenchArguments;
use learner::terminal::Terminal;
use notebook_support::plot::thousands;
use notebook_support::roofline::{Machine, Point, Work, figure};
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::inference::{CacheKind, LlamaModel, WeightKind};
use quadrivium::model::Arithmetic;
use serde_json::{Value, json};
use std::error::Error;
use std::hint::black_box;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const KINDS: [(&str, WeightKind); 4] = [
    ("f32", WeightKind::F32),
    ("bf16", WeightKind::Bf16),
    ("int8", WeightKind::Int8),
    ("int4", WeightKind::Int4 { group_size: 32 }),
];

const READ: &str = "a read";
/// Bytes of a read: many times what a cache holds.
const BYTES: usize = 1 << 29;
const PRODUCTS: &str = "products";
/// Rows and columns of the matrices that they multiply.
const SIDE: usize = 768;
/// A prompt of the largest model takes seconds.
const ROUNDS_OF_PROMPTS: usize = 3;

/// With `--check`, the least share of the read at which weights must arrive, and the size of the model. The shares were 0.86, 0.79,
/// 0.79 and 0.52 on one quiet machine, and 0.67, 0.45, 0.39 and 0.29 on a slower one; there, beside a second build, they were 0.29,
/// 0.15, 0.12 and 0.10. In loops that the compiler did not put into registers, int8 had 0.06 and int4 0.04.
const LEAST: [f64; 4] = [0.17, 0.11, 0.09, 0.07];
const CHECKED: &str = "25M";
const TRIES: usize = 3;

/// One model, measured.
struct Measured {
    name: &'static str,
    parameters: u64,
    read: Times,
    products: Option<Times>,
    rows: Vec<Row>,
}

/// One kind of weights.
struct Row {
    kind: &'static str,
    /// How far weights are from those of the file.
    error: f64,
    /// Weights and cache that a token reads.
    bytes: u64,
    /// Of a token, and of a prompt.
    operations: [u64; 2],
    token: Times,
    prompt: Option<Times>,
}

impl Row {
    fn bytes_a_second(&self) -> f64 {
        self.bytes as f64 / self.token.median
    }
}

impl Measured {
    fn machine(&self) -> Machine {
        let products = 2.0 * (SIDE.pow(3) * benches::threads()) as f64;
        Machine {
            read: BYTES as f64 / self.read.median,
            products: self.products.as_ref().map_or(f64::NAN, |times| products / times.median),
        }
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.rows.iter().flat_map(|row| {
            let bytes = row.bytes as f64;
            let point = move |work, operations: u64, times: &Times| {
                let operations = operations as f64;
                Point { work, bytes, operations, seconds: times.median }
            };
            let [of_token, of_prompt] = row.operations;
            let prompt = row.prompt.as_ref().map(|times| point(Work::Prompt, of_prompt, times));
            [point(Work::Token, of_token, &row.token)].into_iter().chain(prompt)
        })
    }
}

/// Measures the models that are wanted, each with every kind of weights.
///
/// # Errors
/// A folder that can't be written; a model that does not fit.
pub fn run(arguments: &BenchArguments) -> Result<bool> {
    if arguments.check {
        return check();
    }
    let folder = arguments.out.as_path();
    writable(folder)?;
    let source = source();
    let mut terminal = Terminal::stdout();
    let mut all = Vec::new();
    for (name, config) in random::models() {
        if !arguments.size.is_empty() && !arguments.size.iter().any(|size| size == name) {
            continue;
        }
        match measured((name, &config), &source, ROUNDS_OF_PROMPTS, folder) {
            Ok(measured) => {
                show(&mut terminal, &measured)?;
                all.push(measured);
            }
            // The largest may need more memory than there is.
            Err(why) => terminal.line(&format!("  {name} is left out: {why}"))?,
        }
    }
    let Some(last) = all.last() else { return Ok(false) };
    let points: Vec<Point> = all.iter().flat_map(Measured::points).collect();
    let file = folder.join("token.svg");
    learner::save::write(&file, figure(last.machine(), &points)?.svg())?;
    terminal.line(&format!("  As a figure: {}", file.display()))?;
    learner::save::write(&folder.join("token.json"), format!("{:#}\n", json(&all)))?;
    Ok(true)
}

/// Whether weights arrive fast enough, at one size. What disturbs a machine passes, so it is tried again.
///
/// # Errors
/// A temporary folder that can't be written.
pub fn check() -> Result<bool> {
    let (source, folder) = (source(), tempfile::tempdir()?);
    let models = random::models();
    let (name, config) = models.iter().find(|(name, _)| *name == CHECKED).ok_or("no such size")?;
    let mut terminal = Terminal::stdout();
    for left in (0..TRIES).rev() {
        let measured = measured((*name, config), &source, 0, folder.path())?;
        let read = measured.machine().read;
        let shares = measured.rows.iter().map(|row| row.bytes_a_second() / read);
        let shares: Vec<(f64, f64)> = shares.zip(LEAST).collect();
        let holds = shares.iter().all(|(share, least)| share >= least);
        if holds || left == 0 {
            terminal.heading(&format!("{CHECKED}: a decoded token, beside a read"))?;
            for ((kind, _), (share, least)) in KINDS.iter().zip(shares) {
                let word = if share >= least { "ok" } else { "SLOW" };
                let [share, least] = [share, least].map(|share| 100.0 * share);
                terminal
                    .line(&format!("  {word:<6}{share:>4.0} % (at least {least:.0} %)  {kind}"))?;
            }
            return Ok(holds);
        }
    }
    Ok(false)
}

/// Written once, so that its pages are there: those of zeros would all be one page.
fn source() -> Vec<u64> {
    (0..BYTES as u64 / 8).collect()
}

fn measured(
    (name, config): (&'static str, &CheckpointConfig),
    source: &[u64],
    rounds_of_prompts: usize,
    out: &std::path::Path,
) -> Result<Measured> {
    let folder = tempfile::tempdir_in(out)?;
    random::write(folder.path(), config)?;
    let open = |(name, kind)| LlamaModel::open_with(folder.path(), kind).map(|model| (name, model));
    let models = KINDS.into_iter().map(open).collect::<quadrivium::error::Result<Vec<_>>>()?;
    let text = benches::ids(PROMPT + 1, config.vocab_size);

    let mut tokens: Vec<Implementation> = vec![(
        READ,
        Box::new(|| {
            black_box(benches::read(source));
        }),
    )];
    for (kind, model) in &models {
        // One token more than the prompt, so that the page of the next one is there.
        let mut caches = [model.cache(CacheKind::F32)];
        model.decode(&[&text], &mut caches)?;
        let work = move || {
            drop(black_box(model.decode(&[&[7]], &mut caches).expect("logits")));
            caches[0].truncate(PROMPT + 1).expect("fewer tokens");
        };
        tokens.push((*kind, Box::new(work)));
    }
    let mut tokens = timed(ROUNDS, tokens);

    let mut prompts = Vec::new();
    if rounds_of_prompts > 0 {
        let products = benches::products_in_threads(SIDE);
        let mut all: Vec<Implementation> = vec![(PRODUCTS, Box::new(products))];
        for (kind, model) in &models {
            let prompt = &text[..PROMPT];
            let work = move || {
                let mut caches = [model.cache(CacheKind::F32)];
                drop(black_box(model.decode(&[prompt], &mut caches).expect("logits")));
            };
            all.push((*kind, Box::new(work)));
        }
        prompts = timed(rounds_of_prompts, all);
    }

    let sums = Arithmetic::of(config)?;
    let [v, h] = [config.vocab_size as u64, config.hidden_size as u64];
    let positions = PROMPT as u64 + 2;
    // Only the last token of a prompt meets the output.
    let of_prompt: u64 = (1..=PROMPT as u64).map(|t| sums.forward_flops(t)).sum();
    let of_prompt = of_prompt - (PROMPT as u64 - 1) * 2 * v * h;
    let cache = sums.cache_bytes(config.num_key_value_heads as u64, 4) * positions;
    let mut rows = Vec::new();
    for (kind, model) in &models {
        let weights = model.weights();
        rows.push(Row {
            kind,
            error: weights.error.relative(),
            bytes: weights.bytes_of_a_token as u64 + cache,
            operations: [sums.forward_flops(positions), of_prompt],
            token: taken(&mut tokens, kind).ok_or("a token was not decoded")?,
            prompt: taken(&mut prompts, kind),
        });
    }
    Ok(Measured {
        name,
        parameters: sums.parameters().total(),
        read: taken(&mut tokens, READ).ok_or("nothing was read")?,
        products: taken(&mut prompts, PRODUCTS),
        rows,
    })
}

/// The times of one that ran to its end.
fn taken(times: &mut Vec<Times>, of: &str) -> Option<Times> {
    let place = times.iter().position(|times| times.implementation == of)?;
    Some(times.swap_remove(place))
}

fn show(terminal: &mut Terminal, measured: &Measured) -> learner::Result<()> {
    let Measured { name, parameters, rows, .. } = measured;
    let Machine { read, products } = measured.machine();
    let parameters = thousands(*parameters as usize);
    terminal.heading(&format!("{name}: {parameters} parameters, after {PROMPT} tokens"))?;
    terminal.line(&format!(
        "  {} threads read {:.1} GB/s and multiply {:.0} GFLOP/s",
        benches::threads(),
        read / 1e9,
        products / 1e9
    ))?;
    terminal
        .line("  weights  MB a token  ms a token (from, to)     GB/s  of read  prompt, tok/s")?;
    for row in rows {
        let Times { median, least, most, .. } = row.token;
        let [median, least, most] = [median, least, most].map(|seconds| seconds * 1e3);
        let range = format!("{median:.2} ({least:.2} to {most:.2})");
        let rate = row.bytes_a_second();
        let prompt = row.prompt.as_ref().map_or(f64::NAN, |times| PROMPT as f64 / times.median);
        terminal.line(&format!(
            "  {:<7}{:>12.1}  {range:<22}{:>8.1}{:>7.0} %{prompt:>15.0}",
            row.kind,
            row.bytes as f64 / 1e6,
            rate / 1e9,
            100.0 * rate / read,
        ))?;
    }
    Ok(())
}

/// What `book/src/measured/token.json` holds.
fn json(all: &[Measured]) -> Value {
    let times =
        |times: &Times| json!({"median": times.median, "least": times.least, "most": times.most});
    let row = |row: &Row| {
        json!({
            "kind": row.kind,
            "error": row.error,
            "bytes": row.bytes,
            "operations": row.operations,
            "token": times(&row.token),
            "prompt": row.prompt.as_ref().map(times),
        })
    };
    let model = |model: &Measured| {
        let Machine { read, products } = model.machine();
        json!({
            "name": model.name,
            "parameters": model.parameters,
            "read": read,
            "products": products,
            "rows": model.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    json!({
        "threads": benches::threads(),
        "prompt": PROMPT,
        "models": all.iter().map(model).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest model, with all kinds: fewer bits are fewer bytes, and what is counted is what is in the file.
    #[test]
    fn a_token_of_each_kind() {
        let folder = tempfile::tempdir().unwrap();
        let [(name, config), ..] = random::models();
        let source: Vec<u64> = (0..1 << 12).collect();
        let measured = measured((name, &config), &source, 1, folder.path()).unwrap();
        assert_eq!(measured.parameters, 853_120);
        assert!(measured.rows.is_sorted_by(|a, b| a.bytes > b.bytes && a.error <= b.error));
        assert_eq!(json(&[measured])["models"][0]["rows"].as_array().unwrap().len(), 4);
    }
}
