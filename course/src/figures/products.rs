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

/// Blue below 0, white at 0, vermillion above.
fn color(x: f64) -> RGBColor {
    let RGBColor(r, g, b) = if x < 0.0 { BLUE } else { VERMILLION };
    let mix = |c: u8| (255.0 + (f64::from(c) - 255.0) * x.abs().min(1.0)).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

/// A square of products, white at 0, with the columns of `marked` in frames.
pub(crate) fn heat_map(
    area: &Area,
    title: &str,
    values: &[Vec<f64>],
    limit: f64,
    marked: &[usize],
) -> Painted {
    let size = values.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, axis_font())
        .margin_right(10)
        .x_label_area_size(46)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..size, size..0.0)?;
    axes(
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("key's position n")
            .y_desc("query's position m")
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    for (m, row) in values.iter().enumerate() {
        chart.draw_series(row.iter().enumerate().map(|(n, x)| {
            let corner = (n as f64, m as f64);
            Rectangle::new([corner, (corner.0 + 1.0, corner.1 + 1.0)], color(x / limit).filled())
        }))?;
    }
    chart.draw_series(marked.iter().map(|&n| {
        let corner = (n as f64, 0.0);
        Rectangle::new([corner, (corner.0 + 1.0, size)], INK)
    }))?;
    Ok(())
}

fn color_scale(area: &Area, limit: f64) -> Painted {
    let (_, height) = area.dim_in_pixel();
    let (top, bottom) = (40, height as i32 - 60);
    let steps = 40;
    let y = |step: i32| top + (bottom - top) * step / steps;
    for step in 0..steps {
        let x = 1.0 - 2.0 * (f64::from(step) + 0.5) / f64::from(steps);
        area.draw(&Rectangle::new([(4, y(step)), (18, y(step + 1))], color(x).filled()))?;
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
    fn colors_at_the_ends() {
        assert_eq!(color(0.0), WHITE);
        assert_eq!((color(-1.0), color(1.0)), (BLUE, VERMILLION));
    }
}
