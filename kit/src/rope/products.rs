//! Products of queries and keys, before and after they turn.

use crate::error::{Error, Result};
use crate::plot::{Area, Figure, Painted, heat, heat_map, small_font};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The title of [`products`].
pub const PRODUCTS: &str = "Does the same token still give the same product once it has turned?";

/// Two squares of `q_m · k_n / sqrt(hd)`, as they are and turned. `ids` are the tokens, and frames show the
/// columns of one token that occurs several times.
///
/// # Errors
/// No products, and what plotters reports.
pub fn products(ids: &[usize], plain: &[Vec<f64>], turned: &[Vec<f64>]) -> Result<Figure> {
    if plain.is_empty() {
        return Err(Error::Figure("there are no tokens to show".into()));
    }
    let marked = most_frequent(&ids[..ids.len().min(plain.len())]);
    let captions = match marked.len() {
        0 => ["before".to_string(), "after".to_string()],
        n => [
            format!("before: {n} times one token, equal columns"),
            "after: the columns differ".to_string(),
        ],
    };
    let largest = plain.iter().chain(turned).flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
    let limit = if largest > 0.0 { largest } else { 1.0 };
    Figure::paint(PRODUCTS, (960, 500), |area| {
        let (left, rest) = area.split_horizontally(430);
        let (right, scale) = rest.split_horizontally(430);
        heat_map(&left, &captions[0], plain, limit, &marked)?;
        heat_map(&right, &captions[1], turned, limit, &marked)?;
        color_scale(&scale, limit)
    })
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

    #[test]
    fn no_tokens_are_an_error() {
        assert!(products(&[], &[], &[]).is_err());
        assert!(products(&[5], &[vec![0.0]], &[vec![0.0]]).is_ok());
    }
}
