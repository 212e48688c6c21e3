//! Two figures are equal if the same things are drawn at the same places, as far as an eye can see.
//!
//! Figures are drawn in whole pixels and with 256 steps of a colour. A value that is computed in
//! another order, or by another machine's sine, may fall on the other side of an edge between two
//! pixels. A coordinate may therefore differ by one pixel and a colour by one step. Texts, the kinds of things
//! and their number may not differ at all.

use roxmltree::{Attribute, Document};

/// What is different, in words; nothing if the figures are equal.
pub fn difference(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let (Some(before), Some(after)) = (parts(before), parts(after)) else {
        return Some("one of the two is not well-formed, and they are not the same".into());
    };
    for (nth, (one, other)) in before.iter().zip(&after).enumerate() {
        if !alike(one, other) {
            return Some(format!("part {}: `{one}` became `{other}`", nth + 1));
        }
    }
    (before.len() != after.len())
        .then(|| format!("it had {} parts and has {}", before.len(), after.len()))
}

/// Everything that is drawn, in its order: an element with its attributes, or a text.
fn parts(svg: &str) -> Option<Vec<String>> {
    let document = Document::parse(svg).ok()?;
    let mut parts = Vec::new();
    for node in document.descendants() {
        if node.is_element() {
            let attribute =
                |attribute: Attribute| format!(" {}=\"{}\"", attribute.name(), attribute.value());
            let mut attributes: Vec<String> = node.attributes().map(attribute).collect();
            attributes.sort();
            parts.push(format!("<{}{}>", node.tag_name().name(), attributes.concat()));
        } else if node.is_text() && !node.text().unwrap_or_default().trim().is_empty() {
            // What is written in the figure, and not the space between its elements.
            parts.push(format!("“{}”", node.text().unwrap_or_default().trim()));
        }
    }
    Some(parts)
}

/// A piece of an element: a number, a colour, or what is between them.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Number(f64),
    Color([u8; 3]),
    Word(&'a str),
}

fn alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    if one.starts_with('“') || other.starts_with('“') {
        return false;
    }
    let (one, other) = (pieces(one), pieces(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|pair| match pair {
            (Piece::Number(a), Piece::Number(b)) => (a - b).abs() <= 1.0,
            (Piece::Color(a), Piece::Color(b)) => a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= 1),
            (a, b) => a == b,
        })
}

fn pieces(mut text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while let Some(first) = text.chars().next() {
        let (piece, length) = if let Some(color) = color(text) {
            (Piece::Color(color), 7)
        } else if let Some((number, length)) = number(text) {
            (Piece::Number(number), length)
        } else {
            let more = |c: char| c == '#' || c == '-' || c.is_ascii_digit();
            let start = first.len_utf8();
            let length = text[start..].find(more).map_or(text.len(), |at| start + at);
            (Piece::Word(&text[..length]), length)
        };
        pieces.push(piece);
        text = &text[length..];
    }
    pieces
}

/// `#RRGGBB` at the beginning of a text.
fn color(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#')?.get(..6)?;
    let channel = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some([channel(0)?, channel(2)?, channel(4)?])
}

/// A number at the beginning of a text, and its length.
fn number(text: &str) -> Option<(f64, usize)> {
    let sign = usize::from(text.starts_with('-'));
    let digit = |c: char| !(c.is_ascii_digit() || c == '.');
    let length = sign + text[sign..].find(digit).unwrap_or(text.len() - sign);
    Some((text[..length].parse().ok()?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_figure(x: i32, color: &str, words: &str) -> String {
        format!(
            "<svg width=\"90\"><circle cx=\"{x}\" cy=\"-3\" fill=\"{color}\"/><text>{words}</text></svg>"
        )
    }

    #[test]
    fn a_pixel_and_a_step_of_colour_are_not_seen() {
        let figure = a_figure(10, "#0072B2", "m");
        assert_eq!(difference(&figure, &a_figure(11, "#0073B1", "m")), None);
    }

    #[test]
    fn what_is_seen_is_told() {
        let figure = a_figure(10, "#0072B2", "m");
        for other in [
            a_figure(12, "#0072B2", "m"),
            a_figure(10, "#0072B4", "m"),
            a_figure(10, "#0072B2", "n"),
            // Numbers that are written in a figure are text.
            a_figure(10, "#0072B2", "1"),
            figure.replace("circle", "rect"),
            figure.replace("</svg>", "<circle/></svg>"),
            figure.replace("-3", "3"),
        ] {
            assert!(difference(&figure, &other).is_some(), "{other}");
            assert!(difference(&other, &figure).is_some(), "{other}");
        }
        let words = difference(&figure, &a_figure(40, "#0072B2", "m")).unwrap();
        assert!(words.contains("cx=\"10\"") && words.contains("cx=\"40\""), "{words}");
    }

    #[test]
    fn numbers_as_text_are_exact() {
        let (one, other) = (a_figure(1, "#000000", "0.5"), a_figure(1, "#000000", "0.6"));
        assert!(difference(&one, &other).is_some());
    }
}
