//! Fingerprints of a file: winnowing, after Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document
//! fingerprinting" (SIGMOD 2003).
//!
//! ```text
//! text -> tokens -> a hash of each K tokens in a row -> without the starter's -> the least of each W in a row
//! ```
//!
//! Two files that have `W + K - 1` of their own tokens in common, in a row, share a fingerprint. A common piece that is
//! shorter than `K` is never seen.
//!
//! Comments and spaces are no tokens, and all names that an author is free to choose count as one token, so that renaming them
//! hides nothing. Names of methods, paths and macros stay as they are: dfdx chose them, and they distinguish programs that have
//! the same shape.

use learner::exercise::names::{self, Token};
use ra_ap_rustc_lexer::{LiteralKind, TokenKind};
use std::collections::BTreeSet;

/// Tokens of a hash.
pub const K: usize = 8;
/// Hashes of a window, of which the least is kept.
pub const W: usize = 5;

/// The tokens of a file, as they are compared.
pub fn tokens(text: &str) -> Vec<&str> {
    let all = names::tokens(text);
    (0..all.len()).map(|place| compared(&all, place)).collect()
}

/// A token as it is compared: what an author can change without changing the program is always the same.
fn compared<'t>(all: &[Token<'t>], place: usize) -> &'t str {
    let Token { kind, text, .. } = all[place];
    let is = |at: Option<usize>, kind: TokenKind| {
        at.and_then(|at| all.get(at)).is_some_and(|other| other.kind == kind)
    };
    let is_after_path = |at: usize| {
        is(at.checked_sub(1), TokenKind::Colon) && is(at.checked_sub(2), TokenKind::Colon)
    };
    match kind {
        TokenKind::Ident | TokenKind::RawIdent => {
            let is_path = is(place.checked_sub(1), TokenKind::Dot)
                || is_after_path(place)
                || is(Some(place + 1), TokenKind::Bang)
                || is_after_path(place + 3);
            if is_path || WORDS.contains(&text) { text } else { "name" }
        }
        TokenKind::Lifetime { .. } | TokenKind::RawLifetime => "'name",
        TokenKind::Literal {
            kind: LiteralKind::Int { .. } | LiteralKind::Float { .. }, ..
        } => "1",
        TokenKind::Literal { .. } => "\"text\"",
        _ => text,
    }
}

/// Words that no author chooses.
const WORDS: &[&str] = &[
    "as", "bool", "break", "const", "continue", "else", "enum", "f32", "f64", "false", "fn", "for",
    "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return",
    "self", "Self", "static", "struct", "trait", "true", "type", "u32", "u64", "use", "usize",
    "where", "while",
];

/// A hash of each [`K`] tokens in a row: FNV-1a, which is the same on every machine.
pub fn grams(tokens: &[&str]) -> Vec<u64> {
    let hash = |gram: &[&str]| {
        let bytes = gram.iter().flat_map(|token| token.bytes().chain([0]));
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    tokens.windows(K).map(hash).collect()
}

/// The fingerprints of a file: the least hash of each [`W`] in a row, of those that are not `given`.
pub fn fingerprints(grams: &[u64], given: &BTreeSet<u64>) -> BTreeSet<u64> {
    let own: Vec<u64> = grams.iter().copied().filter(|gram| !given.contains(gram)).collect();
    own.windows(W.min(own.len()).max(1)).filter_map(|window| window.iter().min().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prints(text: &str) -> BTreeSet<u64> {
        fingerprints(&grams(&tokens(text)), &BTreeSet::new())
    }

    const CODE: &str = "let sum = x.square().mean::<_, Axis<2>>(); // the mean square\nlet root = (sum + eps).sqrt(); x / root";

    #[test]
    fn comments_names_and_layout_change_nothing() {
        let other =
            "/* mine */ let  a=y.square().mean::<_,Axis<2>>();\n\n let b = (a+e).sqrt();\ny/b";
        assert_eq!(tokens(CODE), tokens(other));
        assert!(!prints(CODE).is_empty());
        // Other methods, paths, macros and operators are other code.
        for (from, to) in [("square", "abs"), ("Axis<2>>()", "Axis::<2>>()"), ("+ eps", "- eps")] {
            assert_ne!(tokens(CODE), tokens(&CODE.replace(from, to)), "{from}");
        }
        assert_eq!(
            tokens("a::b::c.d e!(1.5, 'x', \"y\", r#z) x: T"),
            [
                "a", ":", ":", "b", ":", ":", "c", ".", "d", "e", "!", "(", "1", ",", "\"text\"",
                ",", "\"text\"", ",", "name", ")", "name", ":", "name"
            ]
        );
    }

    /// What the paper promises of a common piece of `W + K - 1` tokens, wherever it is.
    #[test]
    fn a_common_piece_of_the_guaranteed_length_is_found() {
        let words =
            |from: usize, n: usize| (from..from + n).map(|n| format!("m.f{n}")).collect::<Vec<_>>();
        // Two tokens of each differ from all others: a dot and a name.
        let piece = words(0, W + K).join(" ");
        for before in 0..20 {
            let one = format!(
                "{} {piece} {}",
                words(100, 30 + before).join(" "),
                words(200, 40).join(" ")
            );
            let other = format!(
                "{} {piece} {}",
                words(300, 30).join(" "),
                words(400, 20 + before).join(" ")
            );
            assert!(!prints(&one).is_disjoint(&prints(&other)), "{before}");
        }
        assert!(prints(&words(0, 50).join(" ")).is_disjoint(&prints(&words(500, 50).join(" "))));
    }

    #[test]
    fn what_is_given_is_taken_away() {
        let given: BTreeSet<u64> = grams(&tokens(CODE)).into_iter().collect();
        assert!(fingerprints(&grams(&tokens(CODE)), &given).is_empty());
        let more =
            format!("{CODE}; let all = rows.iter().map(|row| row.max(1.0)).fold(0.0, f32::max);");
        assert!(!fingerprints(&grams(&tokens(&more)), &given).is_empty());
        // No text is too short, or no Rust at all.
        for text in ["", "x", "#!/bin/sh\n", "\"", "/*", "\u{feff}fn f() {}"] {
            assert!(prints(text).len() <= 1, "{text}");
        }
    }
}
