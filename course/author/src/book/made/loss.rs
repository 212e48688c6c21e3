//! Made for the chapter on the loss.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use crate::figures::write;
use contract::interface::{LossCase, Part};
use contract::loss::oracle::{LossLoops, Passes, row};
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series, chart};
use notebook_support::plot::{BLUE, VERMILLION};
use plotters::prelude::SeriesLabelPosition;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[Figure { name: "loss-and-gradient", draw: loss_and_gradient }],
    listings: &[Listing { name: "loss-by-hand", text: by_hand_text }],
    numbers,
};

/// One place with two tokens, of which the first is the target.
fn of_two(lead: f64) -> Passes {
    let logits = vec![lead as f32, 0.0];
    Oracle.passes(&LossCase { shape: [1, 1, 2], logits, targets: vec![Some(0)] }, 1.0)
}

fn loss_and_gradient(out: &Path) -> Result<()> {
    // Steps of 1/8, which are exact.
    let steps = || (-48..=48).map(|eighth| f64::from(eighth) / 8.0);
    let series = [
        Series::new("loss", BLUE, Mark::Circles, steps().map(|lead| (lead, of_two(lead).loss))),
        Series::new(
            "gradient of the target's logit",
            VERMILLION,
            Mark::Triangles,
            steps().map(|lead| (lead, of_two(lead).dlogits[0])),
        ),
    ];
    let x = Axis {
        name: "how far the target's logit lies above the other one",
        range: -6.0..6.0,
        labels: 13,
        label: |a| format!("{a:.0}"),
    };
    let y = Axis { name: "value", range: -1.5..6.5, labels: 8, label: |y| format!("{y:.0}") };
    let question = "What does a wrong answer cost, and how hard does it pull?";
    write(out, &chart(question, (x, y), &series, SeriesLabelPosition::UpperRight)?)
}

/// Two places over four tokens, and one that is not asked about.
const LOGITS: [f32; 12] = [2.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 5.0, -3.0, 1.0, 0.0];
const TARGETS: [Option<usize>; 3] = [Some(1), Some(3), None];

fn by_hand() -> Passes {
    let (logits, targets) = (LOGITS.to_vec(), TARGETS.to_vec());
    Oracle.passes(&LossCase { shape: [1, 3, 4], logits, targets }, 1.0)
}

fn by_hand_text() -> Result<String> {
    let Passes { losses, dlogits, .. } = by_hand();
    let mut text = String::from(
        "place   target                    softmax     loss                       gradient\n",
    );
    let list = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(String::new(), |text, value| text + &format!("{value:7.3}"))
    };
    let mut losses = losses.iter();
    for (place, target) in TARGETS.iter().enumerate() {
        let row = row(&Oracle, &LOGITS[4 * place..][..4]);
        let softmax = list(&mut (0..4).map(|id| Oracle.probability(&row, id)));
        let of_place = dlogits[4 * place..][..4].iter();
        let gradient = list(&mut of_place.map(|d| if *d == 0.0 { 0.0 } else { *d }));
        let name = target.map_or("-".to_string(), |target| target.to_string());
        let loss = target.and_then(|_| losses.next());
        let loss = loss.map_or("-".to_string(), |loss| format!("{loss:.3}"));
        let _ = writeln!(text, "{place:5} {name:>8} {softmax} {loss:>8}   {gradient}");
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let mean = by_hand().loss;
    numbers.add("loss/hand-mean", format!("{mean:.3}"));
    numbers.add("loss/hand-perplexity", format!("{:.2}", Oracle.of_loss(mean)));
    numbers.add("loss/ln-1000", format!("{:.2}", 1000f64.ln()));
    numbers.add("loss/ln-50257", format!("{:.2}", 50_257f64.ln()));
    numbers.add("loss/ln-128256", format!("{:.2}", 128_256f64.ln()));
    // From where on exp is infinite in f32, in whole numbers.
    let overflows = (1u8..=255).find(|logit| f32::from(*logit).exp().is_infinite()).unwrap_or(0);
    numbers.add("loss/exp-overflows", overflows);
    let parts = [(1.5, 40), (1.75, 52), (10.25, 4)].map(|(loss, places)| Part { loss, places });
    let losses = parts.map(|part| f64::from(part.loss));
    numbers.add("loss/parts-whole", format!("{:.2}", Oracle.perplexity(&parts)));
    numbers.add("loss/parts-alike", format!("{:.1}", (losses.iter().sum::<f64>() / 3.0).exp()));
    let of_each = losses.iter().map(|loss| loss.exp()).sum::<f64>() / 3.0;
    numbers.add("loss/parts-mean", notebook_support::plot::thousands(of_each.round() as usize));
    Ok(())
}
