//! Formulas of the contract, with their indices below the line and their exponents above it.

use super::markup::text;

/// A formula as HTML: `R_{m+n}`, `R_half` and `k^(d/2)` without their marks.
///
/// An index follows one or two letters, as in `dT_r`. Longer words, such as `rotate_half`, are names.
pub fn law(formula: &str) -> String {
    let (mut out, mut rest) = (String::new(), formula);
    while let Some(at) = rest.find(['_', '^']) {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        let raised = rest[at..].starts_with('^');
        let letters = before.chars().rev().take_while(|c| c.is_alphabetic()).count();
        out.push_str(&text(before));
        match part(behind).filter(|_| raised || letters <= 2) {
            Some((inner, after)) => {
                let tag = if raised { "sup" } else { "sub" };
                out.push_str(&format!("<{tag}>{}</{tag}>", law(inner)));
                rest = after;
            }
            None => {
                out.push_str(&text(&rest[at..=at]));
                rest = behind;
            }
        }
    }
    out + &text(rest)
}

/// What is below or above the line, without its brackets, and what follows.
fn part(behind: &str) -> Option<(&str, &str)> {
    let (open, close) = match behind.chars().next()? {
        '{' => ('{', '}'),
        '(' => ('(', ')'),
        _ => {
            // An exponent after an index is the whole symbol's, and no part of the index.
            let inside = |c: char| c.is_alphanumeric() && !"⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c);
            let end = behind.find(|c: char| !inside(c)).unwrap_or(behind.len());
            return (end > 0).then(|| behind.split_at(end));
        }
    };
    let mut depth = 0;
    for (at, c) in behind.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            return Some((&behind[1..at], &behind[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::names::Names;

    #[test]
    fn indices_and_exponents() {
        let star = |html: &str| html.replace('<', "&lt;").replace('>', "&gt;");
        for (formula, html) in [
            ("R_n·R_m = R_{m+n}", "R<sub>n</sub>·R<sub>m</sub> = R<sub>m+n</sub>"),
            ("y_{i+d/2}²", "y<sub>i+d/2</sub>²"),
            ("y_i² + dy_j", "y<sub>i</sub>² + dy<sub>j</sub>"),
            ("dT_r[k] = Σ_r E_r", "dT<sub>r</sub>[k] = Σ<sub>r</sub> E<sub>r</sub>"),
            ("x̂_j, R_half", "x̂<sub>j</sub>, R<sub>half</sub>"),
            ("k^(d/(d−2))", "k<sup>d/(d−2)</sup>"),
            ("(base·k^(d/(d−2)))^(−2i/d)", "(base·k<sup>d/(d−2)</sup>)<sup>−2i/d</sup>"),
            // Names of functions contain an underscore, and a set has braces.
            ("rotate_half(x), #{r: a ≠ 0}", "rotate_half(x), #{r: a ≠ 0}"),
            ("a < b", &star("a < b")),
            ("x_", "x_"),
            ("x_{j", "x_{j"),
            ("k^(d", "k^(d"),
        ] {
            assert_eq!(plain(&law(formula)), html, "{formula}");
        }
    }

    #[test]
    fn no_formula_of_the_contract_stays_raw() {
        for promise in Names::new().rooms.iter().flat_map(|room| &room.promises) {
            let html = plain(&law(promise.formula)).replace("rotate_half", "");
            assert!(!html.contains(['_', '^']), "{}: {html}", promise.id);
        }
    }

    /// Without the numbers that hide punctuation from Markdown.
    fn plain(html: &str) -> String {
        let mut out = html.to_string();
        for c in (0u8..128).map(char::from).filter(char::is_ascii_punctuation) {
            out = out.replace(&format!("&#{};", u32::from(c)), &c.to_string());
        }
        out
    }
}
