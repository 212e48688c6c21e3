//! Measures ranks on this machine and writes what came out: `cargo run --release -p ranks --bin measure -- FILE`. Without a
//! file, `book/src/measured/ranks.json`.

#![forbid(unsafe_code)]

use learner::exercise::Workspace;
use ranks::measure::{PATIENCE, Record, measure, rank};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let word = std::env::args().nth(1);
    if ranks::run::is_rank() {
        ranks::launch::as_rank(PATIENCE, |comm| rank(comm, word.as_deref().unwrap_or_default()));
        return ExitCode::SUCCESS;
    }
    let kept = || -> Result<PathBuf, String> {
        let workspace = Workspace::find().map_err(|error| error.to_string())?;
        Ok(workspace.path("book/src/measured/ranks.json"))
    };
    match word.map_or_else(kept, |file| Ok(file.into())).and_then(|file| written(&file)) {
        Ok(record) => {
            println!("{}", record.shown.join("\n"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn written(file: &Path) -> Result<Record, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let record =
        measure(&program, |words| eprintln!("{words}")).map_err(|error| error.to_string())?;
    let text = serde_json::to_string_pretty(&record).map_err(|e| e.to_string())?;
    std::fs::write(file, text + "\n").map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(record)
}
