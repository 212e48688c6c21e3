//! Ranks that answer questions over a pipe. Tests start this under mpirun; the argument is the patience in seconds.

#![forbid(unsafe_code)]

use std::time::Duration;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    ranks::launch::as_rank(Duration::from_secs(seconds), ranks::world::serve);
}
