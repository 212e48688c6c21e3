//! `cargo bench --bench fresh`: every result has memory that is new to the program, so that the system has to
//! fetch its pages. That costs more than most of the work. One size of each.
#![allow(missing_docs)]

mod measure;

fn main() {
    measure::all("fresh memory", false);
}
