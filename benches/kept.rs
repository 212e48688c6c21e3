//! `cargo bench --bench kept`: memory is kept. The allocator gives a buffer that was used before, and dfdx's
//! cache is on, as in training.
#![allow(missing_docs)]

mod measure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    measure::all("kept memory", true);
}
