//! The implementation `copy`: a copy of the bytes of one output, into memory that is there already, with all threads.
//! It computes nothing, so it has no check. It shows how fast memory is.

use peers::*;
use rayon::prelude::*;
use std::cell::RefCell;

fn main() {
    serve(|_| {
        let (source, target) = (x(), RefCell::new(vec![0.0f32; SEQ * HIDDEN]));
        Some(Box::new(move || {
            let mut target = target.borrow_mut();
            let rows = std::hint::black_box(&mut *target).par_chunks_mut(16 * HIDDEN);
            let rows = rows.zip(source.par_chunks(16 * HIDDEN));
            rows.for_each(|(target, source)| target.copy_from_slice(source));
            Box::new(Vec::new)
        }))
    });
}
