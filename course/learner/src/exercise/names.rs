//! What code that is graded for points may name.
//!
//! A task computes. Its file needs nothing that is unsafe, nothing that reads files while it is compiled, and nothing of `std`
//! that reaches beyond the process: files, clocks, other processes, the network. The rule is about tokens, as
//! rustc's own lexer cuts them, because a path that is not written in a file can't be reached from it: the file defines no
//! macros that would put one together, and has no other name for `std`.
//!
//! A type needs no name: `proptest` and `quickcheck` make a duration for code that asks for what `sleep` takes. What
//! waits for one is therefore refused wherever its name is written, and so is what reads or writes files in these
//! crates.

use crate::compile_error::CompileError;
use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, strip_shebang, tokenize};

/// Never, wherever they are. In this edition an attribute that reaches the linker is in `unsafe`, too.
const FORBIDDEN: &[&str] = &["unsafe", "extern"];
/// Neither as a path nor as a method, a field or a name that the code defines: how they are reached makes no
/// difference.
const REACHING: &[(&str, &str)] = &[
    ("sleep", WAITS),
    ("sleep_ms", WAITS),
    ("sleep_until", WAITS),
    ("park_timeout", WAITS),
    ("park_timeout_ms", WAITS),
    ("wait_timeout", WAITS),
    ("wait_timeout_ms", WAITS),
    ("wait_timeout_while", WAITS),
    ("recv_timeout", WAITS),
    ("recv_deadline", WAITS),
    ("max_shrink_time", WAITS),
    ("failure_persistence", PERSISTS),
    ("FailurePersistence", PERSISTS),
    ("FileFailurePersistence", PERSISTS),
    ("source_file", PERSISTS),
];
const WAITS: &str = "it is a clock, and no task needs one. Give what is yours another name";
const PERSISTS: &str = "it reads and writes files, and no task needs that";

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
    usize vec assert assert_eq assert_ne column dbg debug_assert debug_assert_eq debug_assert_ne eprint eprintln concat file format \
    format_args line matches module_path print println stringify thread_local todo unimplemented unreachable write writeln";

/// `cfg_attr` adds others, which are looked at themselves.
const ATTRIBUTES: &str = "\
    allow cfg cfg_attr clippy cold default deny deprecated derive doc expect forbid ignore inline must_use non_exhaustive proptest_config repr \
    rustfmt should_panic test track_caller warn";

/// A token that is no space and no comment.
pub struct Token<'t> {
    /// What it is.
    pub kind: TokenKind,
    /// As it is in the file.
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

/// Where it is, what it is, and why it is refused.
fn found(text: &str) -> Vec<(usize, String, String)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut import = Import::default();
    for (place, token) in tokens.iter().enumerate() {
        let (before, after) = (&tokens[..place], &tokens[place + 1..]);
        let begins = import.begins(token, after);
        let is_import = import.is_open;
        let of = |list: &[(&str, &str)], name| {
            let listed = list.iter().find(|(forbidden, _)| *forbidden == name);
            listed.map(|(_, why)| (format!("`{name}`"), (*why).to_string()))
        };
        let refusal = match token.name() {
            // Elsewhere, something of the file's own.
            Some(name)
                if ROOTS.contains(&name)
                    && if is_import { begins } else { is_root(before) && is_path(after) } =>
            {
                beyond(name, after)
            }
            Some(name) if FORBIDDEN.contains(&name) => {
                Some((format!("`{name}`"), UNSAFE.to_string()))
            }
            Some(name) if is_import || is_macro(after) => {
                of(MACROS, name).or_else(|| of(REACHING, name))
            }
            Some("failure_persistence") if is_none(after) => None,
            Some(name) => of(REACHING, name),
            None if token.kind == TokenKind::Pound => attribute(after),
            None => None,
        };
        found.extend(refusal.map(|(what, why)| (token.at, what, why)));
    }
    found
}

/// Where in `use a::{b, c::d};` the place is.
#[derive(Default)]
struct Import {
    is_open: bool,
    /// Whether a name that comes now is the first of its path.
    is_first: bool,
    /// The same where each group begins that is open.
    groups: Vec<bool>,
}

impl Import {
    /// Goes on by a token: whether it is the first name of a path that is imported.
    fn begins(&mut self, token: &Token<'_>, after: &[Token<'_>]) -> bool {
        // `impl A + use<'a>` imports nothing.
        let captures = after.first().is_some_and(|next| next.kind == TokenKind::Lt);
        if token.text == "use" && !captures {
            *self = Self { is_open: true, is_first: true, groups: Vec::new() };
            return false;
        }
        match token.kind {
            TokenKind::Ident | TokenKind::RawIdent => {
                return std::mem::take(&mut self.is_first);
            }
            TokenKind::OpenBrace => self.groups.push(self.is_first),
            TokenKind::CloseBrace if self.groups.pop().is_some() => {}
            TokenKind::Comma => self.is_first = self.groups.last().copied().unwrap_or(true),
            TokenKind::Colon | TokenKind::Star => {}
            // Its end; or it was none, as in `stringify!(use a)`.
            _ => *self = Self::default(),
        }
        false
    }
}

/// Whether what comes after this is no part of the file's own: `self::core` is one.
fn is_root(before: &[Token<'_>]) -> bool {
    let [.., own, a, b] = before else { return true };
    let is_after = [a.kind, b.kind] == [TokenKind::Colon, TokenKind::Colon];
    !(is_after && ["self", "super", "crate"].contains(&own.text))
}

/// Whether a field of this value is turned off: `failure_persistence: None` keeps no file.
fn is_none(after: &[Token<'_>]) -> bool {
    let [colon, none, end, ..] = after else { return false };
    colon.kind == TokenKind::Colon
        && none.text == "None"
        && [TokenKind::Comma, TokenKind::CloseBrace].contains(&end.kind)
}

/// Whether what comes before this is the name of a macro. `a != b` is none.
fn is_macro(after: &[Token<'_>]) -> bool {
    let [bang, next, ..] = after else { return false };
    bang.kind == TokenKind::Bang && next.kind != TokenKind::Eq
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

/// Whether `::` comes next, and no types for a function: `std::<4>(x)` calls one. An empty list of them may be in a
/// path, too.
fn is_path(after: &[Token<'_>]) -> bool {
    matches!(after, [a, b, rest @ ..] if [a.kind, b.kind] == [TokenKind::Colon, TokenKind::Colon]
        && !matches!(rest, [open, first, ..] if open.kind == TokenKind::Lt && first.kind != TokenKind::Gt))
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
    match after {
        [open, rest @ ..] if open.kind == TokenKind::OpenBracket => unlisted(rest),
        _ => None,
    }
}

/// The first attribute of `a`, or `cfg_attr(condition, a, b)`, that is not on the list.
fn unlisted(attribute: &[Token<'_>]) -> Option<(String, String)> {
    let (first, rest) = attribute.split_first()?;
    let name = first.name().filter(|name| is_listed(ATTRIBUTES, name));
    if name.is_none() {
        let what = format!("the attribute `#[{}..]`", first.text);
        return Some((what, format!("a task may have: {ATTRIBUTES}")));
    }
    if name != Some("cfg_attr") {
        return None;
    }
    let mut depth = 0;
    for (place, token) in rest.iter().enumerate() {
        match token.kind {
            TokenKind::OpenParen | TokenKind::OpenBracket | TokenKind::OpenBrace => depth += 1,
            TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace => depth -= 1,
            TokenKind::Comma if depth == 1 => {
                // After the last comma, there may be none.
                let added = &rest[place + 1..];
                let is_end = added.first().is_some_and(|one| one.kind == TokenKind::CloseParen);
                if let Some(refused) = (!is_end).then(|| unlisted(added)).flatten() {
                    return Some(refused);
                }
            }
            _ => {}
        }
        if depth <= 0 {
            break;
        }
    }
    None
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
            ("#[cfg_attr(all(), path = \"x\")] mod x;", "the attribute `#[path..]`"),
            (
                "#[cfg_attr(any(a, b), inline, r#path = \"x\",)] mod x;",
                "the attribute `#[r#path..]`",
            ),
            (
                "#![cfg_attr(a, derive(B, C), cfg_attr(b, cfg_attr(c, path = \"x\")))]",
                "the attribute `#[path..]`",
            ),
            ("#[cfg_attr(a, cfg_attr(b, inline), feature(c))] d", "the attribute `#[feature..]`"),
            ("#[cfg_attr(a, ::path)] d", "the attribute `#[:..]`"),
            ("m! { #[$a] mod x; }", "the attribute `#[$..]`"),
            ("const A: &str = include_str!(\"x\");", "`include_str`"),
            ("use core::arch::naked_asm as x;", "`core::arch`"),
            ("m! { unsafe }", "`unsafe`"),
            // A path that begins with `::` is none of the file's own, no matter what comes before it.
            ("return ::std::fs::read(a)", "`std::fs`"),
            ("fn f() -> ::std::fs::File {}", "`std::fs`"),
            ("use ::{core, a};", "`core` itself"),
            ("use {a::{b, c}, std::fs};", "`std::fs`"),
            ("use self::{a}; use std::fs;", "`std::fs`"),
            ("fn f() -> impl A + use<'_> { std::fs::read(a) }", "`std::fs`"),
            ("std::<4>(x); std::fs::read(a)", "`std::fs`"),
            ("a::std::fs::read(b)", "`std::fs`"),
            ("std::<>::fs::read(b)", "`std::<`"),
            ("stringify!(use a); fn f() { stringify!(use a) } use std::fs;", "`std::fs`"),
            ("stringify!(use a).len() + std::fs::read(b)", "`std::fs`"),
            ("stringify! { use a } std::fs::read(b)", "`std::fs`"),
            // In any way, and without the name of a type.
            ("use std::thread as t; f(t::sleep)", "`sleep`"),
            ("use std::thread::*; f(r#sleep)", "`sleep`"),
            ("use std::{thread}; thread::park_timeout(d)", "`park_timeout`"),
            ("use std::thread::sleep as s;", "`sleep`"),
            ("condition.wait_timeout(guard, d)", "`wait_timeout`"),
            ("Receiver::recv_timeout(&r, d)", "`recv_timeout`"),
            ("Config { max_shrink_time: 1, ..c }", "`max_shrink_time`"),
            (
                "use proptest::test_runner::{A, FileFailurePersistence as F};",
                "`FileFailurePersistence`",
            ),
            ("config.failure_persistence", "`failure_persistence`"),
            ("Config { failure_persistence: None.or(a), ..b }", "`failure_persistence`"),
            ("Config { failure_persistence: a, ..b }", "`failure_persistence`"),
            ("let Config { source_file: s, .. } = c;", "`source_file`"),
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
            "fn f(x: &[f32]) -> impl Iterator<Item = f32> + use<'_> { x.iter().copied() } let env = 1;",
            "fn std<const N: usize>(x: [f32; N]) -> f32 { x[0] } std::<4>(x); self::std(y); Self::std::<2>(z)",
            "use self::stats::{mean, std}; use super::{core, alloc as a}; pub(crate) use crate::core;",
            "mod core { pub fn mean() {} } self::core::mean(); crate::core::mean(); super::core::mean()",
            "use {self::core::mean, crate::alloc}; use a::{self, b::{core, std}, c};",
            "std::line!(); ::core::column!(); std::file!(); std::module_path!(); std::format_args!(\"\")",
            "#[cfg_attr(test, derive(Debug, Clone))] #[cfg_attr(a, inline, cfg_attr(b, must_use),)] struct A;",
            "Config { cases: 20, failure_persistence: None, ..Config::default() }; A { failure_persistence: None }",
            "if env != 0 && include != 1 || asm!= 2 {}",
            "struct Stats { std: f32, core: [f32; 2] } Stats { std: y, core }; s.std + Stats::std(&s)",
            "match x { std @ 1.. => std, alloc => alloc } |std: f32, _: &str| std; 'core: loop { break 'core }",
            "use std::cmp::Ordering::{self, *}; use core::{iter, ops::Range,};",
            "std::thread::scope(|s| { s.spawn(f); }); std::thread::available_parallelism(); thread::park()",
            "proptest!(ProptestConfig::with_cases(20), |(x in 0.0..1.0f32)| { prop_assert!(x < 1.0) });",
            "impl<T: std::fmt::Display> std::ops::Add for A<T> where T: ::core::marker::Copy {}",
            "let f = |include: &str| include.len(); #[rustfmt::skip] let m = [[1, 0], [0, 1]];",
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
