//! The numbers in the text, compared with what code gives.
//!
//! An author writes `54,410<!-- = rope/longest-wavelength -->`. The text directly before the comment
//! must hold the number as the code prints it: the word, the piece of code, or the formula.

use super::complaint::Complaints;
use super::made::kinds::Numbers;
use std::collections::BTreeSet;
use std::ops::Range;

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

/// The page with each number as the code gives it now, where it is alone in its word. A formula or a
/// piece of code is left as it is: which of its numbers is meant, only its author knows.
pub fn put_in(page: &str, numbers: &Numbers) -> String {
    let mut pieces = page.split(BEGIN);
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let name = piece.split_once(END).map_or("", |(name, _)| name);
        let word = said(&out);
        if let Some(made) = numbers.get(name)
            && !holds(word, made)
            && let Some(number) = only_number(word)
        {
            let at = out.len() - word.len();
            out.replace_range(at + number.start..at + number.end, made);
        }
        out.push_str(BEGIN);
        out.push_str(piece);
    }
    out
}

/// Where the number of a word is, if there is one and only one.
fn only_number(word: &str) -> Option<Range<usize>> {
    let sign = |c: char| matches!(c, '-' | '−');
    if word.starts_with(['$', '`']) {
        return None;
    }
    let digit = |c: char| c.is_ascii_digit();
    let (first, last) = (word.find(digit)?, word.rfind(digit)? + 1);
    let plain = word[first..last].chars().all(|c| digit(c) || matches!(c, '.' | ',' | ':'));
    let signed = word[..first].char_indices().next_back().filter(|(_, before)| sign(*before));
    plain.then_some(signed.map_or(first, |(at, _)| at)..last)
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

/// Whether a number is in a text, and is not a part of a longer one.
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
    fn an_old_number_gives_way() {
        let mut numbers = Numbers::default();
        numbers.add("a/root", "0.7071");
        numbers.add("a/low", "−0.84");
        for (before, after) in [
            ("It is 0.71<!-- = a/root -->.", "It is 0.7071<!-- = a/root -->."),
            ("(1,234.5<!-- = a/root -->)", "(0.7071<!-- = a/root -->)"),
            ("at −1.26<!-- = a/low -->", "at −0.84<!-- = a/low -->"),
            (
                "| 9<!-- = a/low --> | 8<!-- = a/root -->",
                "| −0.84<!-- = a/low --> | 0.7071<!-- = a/root -->",
            ),
            // Already right; which one is meant is not known; a number without an owner.
            ("**0.7071**<!-- = a/root -->", "**0.7071**<!-- = a/root -->"),
            ("$x = 2$<!-- = a/root -->", "$x = 2$<!-- = a/root -->"),
            ("3x4<!-- = a/root -->", "3x4<!-- = a/root -->"),
            ("7<!-- = a/square -->", "7<!-- = a/square -->"),
            ("7<!-- = a/root", "7<!-- = a/root"),
        ] {
            assert_eq!(put_in(before, &numbers), after);
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
