//! What code that is graded for points may name.
//!
//! A task computes. Its file needs nothing that is unsafe, nothing that reads files while it is compiled, and nothing of `std`
//! that reaches beyond the process: files, clocks, other processes, the network. The rule is about tokens, as
//! rustc's own lexer cuts them, because a path that is not written in a file can't be reached from it: the file defines no
//! macros that would put one together, and has no other name for `std`.

use crate::compile_error::CompileError;
use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, strip_shebang, tokenize};

/// Never, wherever they stand. In this edition an attribute that reaches the linker stands in `unsafe`, too.
const FORBIDDEN: &[&str] = &["unsafe", "extern"];
/// Macros.
const MACROS: &[(&str, &str)] = &[
    ("macro_rules", "a macro could put together what may not be written"),
    ("asm", UNSAFE),
    ("global_asm", UNSAFE),
    ("naked_asm", UNSAFE),
    ("include", READS),
    ("include_str", READS),
    ("include_bytes", READS),
    ("env", READS),
    ("option_env", READS),
];
const UNSAFE: &str = "no task needs code that the compiler can't check";
const READS: &str = "it reads the machine that compiles it, and no task needs that";

/// The crates whose names are on the list below.
const ROOTS: &[&str] = &["std", "core", "alloc"];

/// What a task may use of them.
const OF_STD: &str = "\
    any array ascii borrow boxed cell cfg char clone cmp collections convert default error f32 f64 fmt hash hint i8 i16 i32 i64 \
    i128 isize iter marker mem num ops option panic pin prelude primitive ptr rc result slice str string sync thread u8 u16 u32 u64 u128 \
    usize vec assert assert_eq assert_ne dbg debug_assert debug_assert_eq debug_assert_ne eprint eprintln concat format \
    matches print println stringify thread_local todo unimplemented unreachable write writeln";

const ATTRIBUTES: &str = "\
    allow cfg clippy cold default deny deprecated derive doc expect forbid ignore inline must_use non_exhaustive proptest_config repr \
    rustfmt should_panic test track_caller warn";

/// A token that is no space and no comment.
pub struct Token<'t> {
    /// What it is.
    pub kind: TokenKind,
    /// As it stands in the file.
    pub text: &'t str,
    /// Where, in bytes.
    at: usize,
}

impl Token<'_> {
    /// A name, `r#` or not.
    fn name(&self) -> Option<&str> {
        match self.kind {
            TokenKind::Ident => Some(self.text),
            TokenKind::RawIdent => self.text.strip_prefix("r#"),
            _ => None,
        }
    }
}

/// What the file of a component names and must not, as an error of the compiler's would say it.
pub fn refused(slug: &'static str, text: &str) -> Option<CompileError> {
    let found = found(text);
    let (at, what, why) = found.first()?;
    let line_start = text[..*at].rfind('\n').map_or(0, |end| end + 1);
    let (row, column) =
        (text[..*at].matches('\n').count() + 1, text[line_start..*at].chars().count() + 1);
    let place = format!("exercises/src/{slug}.rs:{row}:{column}");
    let line = text[line_start..].lines().next().unwrap_or_default();
    let first = format!(
        "error: {what} can't be used in code that is graded for points\n --> {place}\n  |\n{row} | {line}\n  |\n  = note: {why}\n"
    );
    let further = found.len() - 1;
    Some(CompileError {
        component: Some(slug),
        place: Some(place),
        first,
        further,
        signature: false,
    })
}

/// Where it stands, what it is, and why it is refused.
fn found(text: &str) -> Vec<(usize, String, String)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut is_import = false;
    for (place, token) in tokens.iter().enumerate() {
        let after = &tokens[place + 1..];
        is_import = token.text == "use" || (is_import && token.kind != TokenKind::Semi);
        let refusal = match token.name() {
            // Elsewhere, a variable of this name.
            Some(name) if ROOTS.contains(&name) && (is_import || is_path(after)) => {
                beyond(name, after)
            }
            Some(name) if FORBIDDEN.contains(&name) => {
                Some((format!("`{name}`"), UNSAFE.to_string()))
            }
            Some(name) if is_import || after.first().is_some_and(|t| t.kind == TokenKind::Bang) => {
                let of_macro = MACROS.iter().find(|(forbidden, _)| *forbidden == name);
                of_macro.map(|(_, why)| (format!("`{name}`"), (*why).to_string()))
            }
            None if token.kind == TokenKind::Pound => attribute(after),
            _ => None,
        };
        found.extend(refusal.map(|(what, why)| (token.at, what, why)));
    }
    found
}

/// The tokens of a file, as rustc cuts them.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    // As rustc does before it cuts tokens.
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let begin = mark + strip_shebang(&text[mark..]).unwrap_or(0);
    let mut at = begin;
    let mut tokens = Vec::new();
    for token in tokenize(&text[begin..], FrontmatterAllowed::No) {
        let end = at + token.len as usize;
        let is_nothing = matches!(
            token.kind,
            TokenKind::Whitespace
                | TokenKind::LineComment { .. }
                | TokenKind::BlockComment { .. }
                | TokenKind::Eof
        );
        if !is_nothing {
            tokens.push(Token { kind: token.kind, text: &text[at..end], at });
        }
        at = end;
    }
    tokens
}

/// Whether `::` comes next.
fn is_path(after: &[Token<'_>]) -> bool {
    matches!(after, [a, b, ..] if [a.kind, b.kind] == [TokenKind::Colon, TokenKind::Colon])
}

/// What a path of one of these crates leads to, if a task may not use it. The crate itself gets no other name.
fn beyond(root: &str, after: &[Token<'_>]) -> Option<(String, String)> {
    let names: Vec<&str> = match after.get(2).filter(|_| is_path(after)) {
        Some(first) if first.kind == TokenKind::OpenBrace => of_group(&after[3..]),
        Some(first) => vec![first.name().unwrap_or(first.text)],
        None => vec![""],
    };
    let other = names.into_iter().find(|name| !is_listed(OF_STD, name))?;
    let what =
        if other.is_empty() { format!("`{root}` itself") } else { format!("`{root}::{other}`") };
    Some((
        what,
        format!("a task computes, and reaches nothing beyond that. Of {root} it may use: {OF_STD}"),
    ))
}

/// The names with which the parts of `{a, b::c, d::{e, f}}` begin, once it is open.
fn of_group<'t>(tokens: &[Token<'t>]) -> Vec<&'t str> {
    let (mut depth, mut begins, mut names) = (1, true, Vec::new());
    for token in tokens {
        // A group in the group is none of the list, and is refused.
        if begins && depth == 1 && token.kind != TokenKind::CloseBrace {
            names.push(token.text.trim_start_matches("r#"));
        }
        match token.kind {
            TokenKind::OpenBrace => depth += 1,
            TokenKind::CloseBrace => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        begins = depth == 1 && token.kind == TokenKind::Comma;
    }
    names
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|one| one == name)
}

/// An attribute that is not on the list. A `#` that begins none is nothing.
fn attribute(after: &[Token<'_>]) -> Option<(String, String)> {
    let after = match after {
        [bang, rest @ ..] if bang.kind == TokenKind::Bang => rest,
        all => all,
    };
    let [open, first, ..] = after else { return None };
    if open.kind != TokenKind::OpenBracket
        || first.name().is_some_and(|name| is_listed(ATTRIBUTES, name))
    {
        return None;
    }
    Some((format!("the attribute `#[{}..]`", first.text), format!("a task may have: {ATTRIBUTES}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> String {
        found(text).into_iter().next().map_or(String::new(), |(_, what, _)| what)
    }

    #[test]
    fn what_a_task_may_not_name_is_found_however_it_is_written() {
        for (text, what) in [
            ("let x = std::fs::read(p);", "`std::fs`"),
            ("use std::{mem, time::Instant};", "`std::time`"),
            ("use std :: /* a */ { collections::{self, HashMap}, r#fs };", "`std::fs`"),
            ("use std::{f32::{consts, MAX}, self};", "`std::self`"),
            ("use ::r#std::process::exit;", "`std::process`"),
            ("use std::{{fs, time}};", "`std::{`"),
            ("use std::{mem, {fs}};", "`std::{`"),
            ("use std::{mem, r#time};", "`std::time`"),
            ("\u{feff}#!x /*\nuse std::fs;\n//*/", "`std::fs`"),
            ("use include as i;", "`include`"),
            ("use std::*;", "`std::*`"),
            ("use std::{*};", "`std::*`"),
            ("use std::{mem, ::core};", "`std:::`"),
            ("use std as s;", "`std` itself"),
            ("use {core as c};", "`core` itself"),
            ("use {self::a, std, b};", "`std` itself"),
            ("macro_rules! m { ($a:ident) => { $a::fs } } m!(std)", "`macro_rules`"),
            ("let (std, a) = b; std::fs::read(c)", "`std::fs`"),
            ("#[unsafe(naked)] extern \"C\" fn f() {}", "the attribute `#[unsafe..]`"),
            ("#![feature(x)]", "the attribute `#[feature..]`"),
            ("# [path = \"/etc/passwd\"] mod x;", "the attribute `#[path..]`"),
            ("#[cfg_attr(all(), path = \"x\")] mod x;", "the attribute `#[cfg_attr..]`"),
            ("m! { #[$a] mod x; }", "the attribute `#[$..]`"),
            ("const A: &str = include_str!(\"x\");", "`include_str`"),
            ("use core::arch::naked_asm as x;", "`core::arch`"),
            ("m! { unsafe }", "`unsafe`"),
            // What looks like the beginning of a comment or of a text is a line that rustc does not read.
            ("#!/* \n use std::fs;", "`std::fs`"),
            ("'\"'; std::fs", "`std::fs`"),
            ("r#\"\"#; std::fs", "`std::fs`"),
            ("/* /* */ */ std::fs", "`std::fs`"),
        ] {
            assert_eq!(first(text), what, "{text}");
        }
    }

    #[test]
    fn what_is_a_comment_or_a_text_or_ones_own_is_left_alone() {
        for text in [
            "// std::fs, unsafe\n/* include_str */ \"std::fs\" r#\"unsafe\"# 'a' b'a'",
            "use std::{collections::{BTreeMap, HashMap as Map}, f32::consts::PI, ops::Range};",
            "let include = j <= i; env.len(); include && x != asm",
            "let (mean, std) = x; y / std as f64 * std; f(std); if std < alloc { core.a() }",
            "std::println!(\"{}\", std::f64::consts::LN_2); ::std::mem::swap(a, b)",
            "#[derive(Clone)] #[inline] #[allow(dead_code)] struct A; let fs = self.time(thread);",
            "/// # unsafe\n#![allow(unused)]",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_place_is_told_as_the_compiler_would() {
        let error =
            refused("norm", "fn a() {\n    ä; std::fs::read(\"x\"); unsafe {}\n}\n").unwrap();
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:2:8"));
        assert_eq!((error.further, error.component), (1, Some("norm")));
        assert!(
            error.first.contains("2 |     ä; std::fs::read(\"x\"); unsafe {}"),
            "{}",
            error.first
        );
    }
}
