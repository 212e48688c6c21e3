//! How often each token occurs in the course's own book: the numbers of the page "Who owns which row".

use model::corpus::Corpus;
use model::sizes::Size;
use model::text::Text;
use serde_json::{Value, json};

const FILE: &str = "../../book/src/measured/tokens.json";

/// The tokens that `cargo course model train` learns from, by their ids.
fn counted() -> Value {
    let size = Size::Small;
    let vocab_size = size.config().vocab_size;
    let corpus = Corpus::new(&Text::book(), size.batch(), vocab_size).unwrap();
    let mut counts = vec![0u64; vocab_size];
    corpus.trained.iter().for_each(|id| counts[*id] += 1);
    json!({ "tokens": corpus.trained.len(), "counts": counts })
}

#[test]
fn the_book_counts_its_tokens_right() {
    let recorded = std::fs::read_to_string(FILE).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    assert!(
        recorded == counted(),
        "book/src/measured/tokens.json is not what is counted now; if the text or its tokenizer was changed, run \
         `cargo test --release -p model --test token_counts -- --ignored`, and read whether the page is still true"
    );
}

/// Writes the file again.
#[test]
#[ignore = "it writes the file that the other test reads"]
fn record() {
    std::fs::write(FILE, format!("{}\n", counted())).unwrap();
}
