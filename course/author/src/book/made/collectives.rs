//! Made for the chapter on what ranks say to each other.

use super::kinds::{Listing, Made, Numbers};
use crate::error::Result;
use contract::collectives::oracle::{added, passes, tree};
use contract::interface::EntropyCase;
use std::fmt::Write;

/// All of it.
pub static MADE: Made = Made {
    figures: &[],
    listings: &[Listing { name: "collectives-by-hand", text: by_hand_text }],
    numbers,
};

/// One token over four ids, split across two ranks.
fn by_hand() -> EntropyCase {
    let logits = vec![2.0, 1.0, 0.0, -1.0];
    EntropyCase { world_size: 2, vocab_size: 4, logits, targets: vec![3], lost: None }
}

fn by_hand_text() -> Result<String> {
    let case = by_hand();
    let passes = passes(&case);
    let largest = case.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exp = |logit: &f32| f64::from(logit - largest).exp();
    let mut text =
        String::from("          ids    logits   own largest   own sum   target        gradient\n");
    for rank in 0..case.world_size {
        let (own, first) = (case.logits_of(rank), rank * case.own());
        let own_largest = own.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = own.iter().map(exp).sum();
        let target = if rank == 1 { own[1] } else { 0.0 };
        let dlogits = &passes.dlogits[first..][..2];
        let _ = writeln!(
            text,
            "rank {rank}   {first}, {}   {:2.0}, {:2.0}   {own_largest:11.0}   {sum:7.3}   {target:6.0}   {:6.3} {:6.3}",
            first + 1,
            own[0],
            own[1],
            dlogits[0],
            dlogits[1]
        );
    }
    let sum: f64 = case.logits.iter().map(exp).sum();
    let _ = writeln!(text, "all             {:17.0}   {sum:7.3}   {:6.0}", largest, case.logits[3]);
    let _ = writeln!(
        text,
        "\nloss = ln {sum:.3} + {largest:.0} - ({:.0}) = {:.3}",
        case.logits[3], passes.loss
    );
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    numbers.add("collectives/hand-loss", format!("{:.3}", passes(&by_hand()).loss));
    let vocab_size = 128_256;
    numbers.add("collectives/logits-bytes", notebook_support::plot::thousands(4 * vocab_size));
    numbers.add("collectives/logits-by-three", notebook_support::plot::thousands(vocab_size / 3));
    let large = 2f32.powi(25);
    let blocks = [large, 1.0, -large, 1.0];
    let from_left = blocks[1..].chunks(1).fold(vec![large], |sum, block| added(&sum, block));
    numbers.add("collectives/from-left", from_left[0]);
    numbers.add("collectives/of-tree", tree(&blocks, 1)[0]);
    Ok(())
}
