//! The numbers in the text, compared with what code gives.
//!
//! An author writes `54,410<!-- = rope/longest-wavelength -->`. What stands directly before the
//! comment must hold the number as the code prints it: the word, the piece of code, or the formula.

use super::complaint::Complaints;
use super::made::kinds::Numbers;
use std::collections::BTreeSet;

const BEGIN: &str = "<!-- = ";
const END: &str = " -->";

/// Compares all numbers of a page. Returns the page without the comments, and notes which numbers
/// were used.
pub fn compare(
    page: &str,
    numbers: &Numbers,
    used: &mut BTreeSet<String>,
    complaints: &mut Complaints,
) -> String {
    let mut pieces = page.split(BEGIN);
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let Some((name, rest)) = piece.split_once(END) else {
            complaints.add(format!("a number's comment does not end: {BEGIN}{}", head(piece)));
            out.push_str(piece);
            continue;
        };
        let said = said(&out);
        match numbers.get(name) {
            None => complaints.add(format!("no number is called {name}")),
            Some(made) if !holds(said, made) => {
                complaints.add(format!("{name}: the text says {said}, the code gives {made}"));
            }
            Some(_) => {}
        }
        used.insert(name.to_string());
        out.push_str(rest);
    }
    out
}

fn head(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The word, the piece of code or the formula at the end of a text.
fn said(text: &str) -> &str {
    for mark in ["$$", "$", "`"] {
        if let Some(before) = text.strip_suffix(mark) {
            let start = before.rfind(mark).unwrap_or(0);
            return &text[start..];
        }
    }
    text.rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// Whether a number stands in a text, and is not a part of a longer one.
fn holds(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + number.len()..]);
        !ends_in_number(before) && !begins_in_number(after)
    })
}

fn ends_in_number(text: &str) -> bool {
    let before = text.trim_end_matches(['.', ',']);
    (text.len() - before.len() <= 1) && before.ends_with(|c: char| c.is_ascii_digit())
}

fn begins_in_number(text: &str) -> bool {
    let after = text.strip_prefix(['.', ',']).unwrap_or(text);
    after.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(page: &str) -> Vec<String> {
        let mut numbers = Numbers::default();
        numbers.add("a/root", "0.7071");
        numbers.add("a/long", "54,410");
        let mut complaints = Complaints::default();
        compare(page, &numbers, &mut BTreeSet::new(), &mut complaints);
        complaints.into_lines()
    }

    #[test]
    fn right_numbers_pass() {
        for page in [
            "It is 0.7071<!-- = a/root -->, and (54,410<!-- = a/long -->).",
            "$x = 0.7071$<!-- = a/root -->",
            "$$x = 54,410, y = 0.7071$$<!-- = a/long --><!-- = a/root -->",
            "`0.7071 and more`<!-- = a/root -->",
            "| 0.7071<!-- = a/root --> | 54,410<!-- = a/long --> |",
        ] {
            assert!(complaints(page).is_empty(), "{page}: {:?}", complaints(page));
        }
    }

    #[test]
    fn wrong_numbers_do_not() {
        for page in [
            "It is 0.7072<!-- = a/root -->",
            "It is 10.7071<!-- = a/root -->",
            "It is 0.70711<!-- = a/root -->",
            "0.7071 or so<!-- = a/root -->",
            "0.7071<!-- = a/square -->",
            "154,410<!-- = a/long -->",
            "54,410,000<!-- = a/long -->",
            "0.7071<!-- = a/root",
        ] {
            assert_eq!(complaints(page).len(), 1, "{page}");
        }
    }

    #[test]
    fn the_comments_go() {
        let mut numbers = Numbers::default();
        numbers.add("a/root", "0.7071");
        let (mut used, mut complaints) = (BTreeSet::new(), Complaints::default());
        let page = "$0.7071$<!-- = a/root --> and <!-- a note -->";
        let out = compare(page, &numbers, &mut used, &mut complaints);
        assert_eq!(out, "$0.7071$ and <!-- a note -->");
        assert!(used.contains("a/root"));
    }
}
