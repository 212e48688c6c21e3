//! Figure 6: products of queries and keys, before and after they turn.

use super::*;
use crate::steps::{HEAD_DIM, HIDDEN, dot};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The title.
pub const QUESTION: &str = "Does the same token still give the same product once it has turned?";

/// The first tokens of the text, so that a cell is still a visible square.
const SHOWN: usize = 40;

/// `ids` are the tokens; each pair is `(q, k)` of shape `[1, s, nh, hd]`: as they are, and turned.
///
/// The products are those of the first head, divided by `sqrt(hd)`, as attention does. Frames
/// show the columns of one token that occurs several times.
///
/// # Errors
/// A file that can't be written.
pub fn draw(
    out: &Path,
    ids: &[usize],
    plain: (&[f32], &[f32]),
    turned: (&[f32], &[f32]),
) -> Result<()> {
    let marked = most_frequent(&ids[..ids.len().min(SHOWN)]);
    let captions = match marked.len() {
        0 => ["before".to_string(), "after".to_string()],
        n => [
            format!("before: {n} times one token, equal columns"),
            "after: the columns differ".to_string(),
        ],
    };
    let plain = products(plain);
    let turned = products(turned);
    let largest = plain.iter().chain(&turned).flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
    let limit = if largest > 0.0 { largest } else { 1.0 };
    save(out, QUESTION, (960, 500), |area| {
        let (left, rest) = area.split_horizontally(430);
        let (right, scale) = rest.split_horizontally(430);
        heat_map(&left, &captions[0], &plain, limit, &marked)?;
        heat_map(&right, &captions[1], &turned, limit, &marked)?;
        color_scale(&scale, limit)
    })
}

/// `q_m . k_n / sqrt(hd)` of head 0.
fn products((q, k): (&[f32], &[f32])) -> Vec<Vec<f64>> {
    let shown = (q.len() / HIDDEN).min(SHOWN);
    let head = |x: &[f32], row: usize| x[row * HIDDEN..][..HEAD_DIM].to_vec();
    let scale = (HEAD_DIM as f64).sqrt();
    (0..shown)
        .map(|m| (0..shown).map(|n| dot(&head(q, m), &head(k, n)) / scale).collect())
        .collect()
}

/// Where the most frequent id stands; nothing if no id occurs twice. Of several, the first.
fn most_frequent(ids: &[usize]) -> Vec<usize> {
    let places = |id: usize| (0..ids.len()).filter(move |&t| ids[t] == id).collect::<Vec<_>>();
    let mut best = Vec::new();
    for &id in ids {
        let places = places(id);
        if places.len() > best.len().max(1) {
            best = places;
        }
    }
    best
}

fn color_scale(area: &Area, limit: f64) -> Painted {
    let (_, height) = area.dim_in_pixel();
    let (top, bottom) = (40, height as i32 - 60);
    let steps = 40;
    let y = |step: i32| top + (bottom - top) * step / steps;
    for step in 0..steps {
        let x = 1.0 - 2.0 * (f64::from(step) + 0.5) / f64::from(steps);
        area.draw(&Rectangle::new([(4, y(step)), (18, y(step + 1))], heat(x).filled()))?;
    }
    let beside = small_font().pos(Pos::new(HPos::Left, VPos::Center));
    for (at, value) in [(top, limit), ((top + bottom) / 2, 0.0), (bottom, -limit)] {
        area.draw(&Text::new(format!("{value:.1}"), (24, at), beside.clone()))?;
    }
    area.draw(&Text::new("q·k/√hd", (0, top - 26), small_font()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_id_is_found() {
        assert_eq!(most_frequent(&[5, 7, 5, 7, 7]), [1, 3, 4]);
        assert!(most_frequent(&[1, 2, 3]).is_empty());
    }
}
