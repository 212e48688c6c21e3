//! Makes mutants of a solution: the same file with one small change between the marks of a task.
//!
//! A change replaces text, so a mutant reads as a learner would have written it. What does not compile is
//! no mutant; the compiler says so.

use proc_macro2::Span;
use std::collections::BTreeMap;
use std::ops::Range;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprRange, GenericArgument, Lit, Pat, RangeLimits, Stmt, Token, UnOp};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, in bytes.
    pub at: Range<usize>,
    /// What is there instead.
    pub to: String,
}

/// A file with one change, or with two.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// The task whose lines it changes.
    pub task: String,
    /// What changes.
    pub changes: Vec<Change>,
}

impl Mutant {
    /// The whole file.
    pub fn text(&self, source: &str) -> String {
        let mut text = source.to_string();
        let mut changes: Vec<&Change> = self.changes.iter().collect();
        changes.sort_by_key(|change| std::cmp::Reverse(change.at.start));
        for change in changes {
            text.replace_range(change.at.clone(), &change.to);
        }
        text
    }

    /// What it is known by: the lines before and after.
    pub fn words(&self, source: &str) -> String {
        let one = |change: &Change| {
            let start = source[..change.at.start].rfind('\n').map_or(0, |at| at + 1);
            let end =
                source[change.at.end..].find('\n').map_or(source.len(), |at| change.at.end + at);
            let before = &source[start..end];
            let after = format!(
                "{}{}{}",
                &source[start..change.at.start],
                change.to,
                &source[change.at.end..end]
            );
            let flat = |text: &str| {
                let lines =
                    text.lines().map(|line| line.split(" //").next().unwrap_or_default().trim());
                lines.collect::<Vec<_>>().join(" ")
            };
            format!("{} => {}", flat(before), flat(&after))
        };
        let changes: Vec<String> = self.changes.iter().map(one).collect();
        format!("{}: {}", self.task, changes.join(" AND "))
    }
}

/// The lines of the tasks: name, and where they are. Not those of a task about a property: any invariant is
/// right there that refuses nothing right.
fn tasks(source: &str) -> Vec<(String, Range<usize>)> {
    let mut tasks = Vec::new();
    for (at, begin) in source.match_indices("// task ") {
        let rest = &source[at + begin.len()..];
        let Some((name, _)) = rest.split_once(": begin\n").filter(|(name, _)| !name.contains('\n'))
        else {
            continue;
        };
        let behind = |what: &str| source.find(&format!("// task {name}: {what}"));
        let end = behind("starter").or_else(|| behind("end")).expect("a task has an end");
        if !name.ends_with("/property") {
            tasks.push((name.to_string(), at..end));
        }
    }
    tasks
}

/// All mutants of a file with one change, in the order of their places.
pub fn mutants(source: &str) -> Vec<Mutant> {
    let file = syn::parse_file(source).expect("a solution is Rust");
    let mut mutants = Vec::new();
    for (task, within) in tasks(source) {
        let mut names = Names { within: within.clone(), names: BTreeMap::new(), function: vec![] };
        names.visit_file(&file);
        let mut maker = Maker { source, within, names: names.names, changes: Vec::new() };
        maker.visit_file(&file);
        maker.changes.sort_by_key(|Change { at, to }| (at.start, at.end, to.clone()));
        maker.changes.dedup();
        maker.changes.retain(|change| source[change.at.clone()] != change.to);
        let one = |change| Mutant { task: task.clone(), changes: vec![change] };
        mutants.extend(maker.changes.into_iter().map(one));
    }
    mutants
}

/// Two steps at once: each tenth mutant with another one of its task that is elsewhere.
pub fn pairs(mutants: &[Mutant]) -> Vec<Mutant> {
    let n = mutants.len();
    let pair = |(i, one): (usize, &Mutant)| {
        // A place far away, another one for each.
        let other = &mutants[(i * 31 + 17) % n];
        let (a, b) = (&one.changes[0], &other.changes[0]);
        let apart = a.at.end <= b.at.start || b.at.end <= a.at.start;
        (one.task == other.task && apart)
            .then(|| Mutant { task: one.task.clone(), changes: vec![a.clone(), b.clone()] })
    };
    mutants.iter().enumerate().step_by(10).filter_map(pair).collect()
}

/// Collects the names of the values that a task's lines can use: its function's and its own.
struct Names {
    within: Range<usize>,
    names: BTreeMap<String, usize>,
    function: Vec<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.function.clear();
        for input in &signature.inputs {
            if let syn::FnArg::Typed(typed) = input
                && let Pat::Ident(ident) = &*typed.pat
            {
                self.function.push(ident.ident.to_string());
            }
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let block_at = block.span().byte_range();
        if block_at.start < self.within.end && self.within.start < block_at.end {
            self.names.extend(self.function.iter().map(|name| (name.clone(), 0)));
        }
        visit::visit_block(self, block);
    }

    fn visit_pat_ident(&mut self, ident: &'ast syn::PatIdent) {
        if self.within.contains(&ident.span().byte_range().start) {
            let name = ident.ident.to_string();
            self.names.entry(name).or_insert(ident.span().byte_range().end);
        }
    }
}

struct Maker<'a> {
    source: &'a str,
    within: Range<usize>,
    names: BTreeMap<String, usize>,
    changes: Vec<Change>,
}

/// Methods that one may take for another.
const METHODS: &[&[&str]] = &[
    &["mean", "sum", "max", "min"],
    &["sqrt", "square", "abs"],
    &["cos", "sin", "tan"],
    &["powf", "powi"],
    &["floor", "ceil", "round", "trunc"],
    &["first", "last"],
    &["all", "any"],
    &["div_ceil", "div_euclid"],
    &["saturating_sub", "wrapping_sub"],
    &["saturating_add", "wrapping_add"],
    &["chunks", "windows"],
    &["skip", "take", "step_by"],
    &["is_finite", "is_nan", "is_infinite"],
    &["next_u32", "next_u64"],
    &["is_some", "is_none"],
];

impl Maker<'_> {
    fn change(&mut self, span: Span, to: impl Into<String>) {
        let at = span.byte_range();
        let to = to.into();
        let inside = self.within.start <= at.start && at.end <= self.within.end;
        if inside && !at.is_empty() && self.source[at.clone()] != to {
            self.changes.push(Change { at, to });
        }
    }

    fn text(&self, of: &impl Spanned) -> String {
        self.source[of.span().byte_range()].to_string()
    }

    /// The values that were bound last before this place, except for `name`.
    fn others(&self, name: &str, place: usize) -> Vec<String> {
        let bound = self.names.iter().filter(|(other, at)| **at < place && *other != name);
        let mut bound: Vec<(&String, &usize)> = bound.collect();
        bound.sort_by_key(|(_, at)| std::cmp::Reverse(**at));
        bound.into_iter().take(4).map(|(name, _)| name.clone()).collect()
    }

    /// Neighbours exchanged.
    fn exchange<T: Spanned, P>(&mut self, items: &Punctuated<T, P>) {
        let items: Vec<&T> = items.iter().collect();
        for pair in items.windows(2) {
            let (a, b) = (pair[0].span().byte_range(), pair[1].span().byte_range());
            let between = &self.source[a.end..b.start];
            let to = format!("{}{between}{}", self.text(pair[1]), self.text(pair[0]));
            let at = a.start..b.end;
            if self.within.start <= at.start && at.end <= self.within.end {
                self.changes.push(Change { at, to });
            }
        }
    }

    fn whole_number(&mut self, span: Span, value: u128, suffix: &str) {
        for other in [value + 1, value.wrapping_sub(1), 2 * value, 0, 1] {
            if other != value && other < u128::MAX / 2 {
                self.change(span, format!("{other}{suffix}"));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Maker<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let others: &[&str] = match binary.op {
            BinOp::Add(_) => &["-", "*"],
            BinOp::Sub(_) => &["+", "/"],
            BinOp::Mul(_) => &["/", "+"],
            BinOp::Div(_) => &["*", "%", "-"],
            BinOp::Rem(_) => &["/", "*"],
            BinOp::And(_) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::BitAnd(_) => &["|", "^"],
            BinOp::BitOr(_) => &["&", "^"],
            BinOp::BitXor(_) => &["&", "|"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            BinOp::Eq(_) => &["!=", "<=", ">="],
            BinOp::Ne(_) => &["==", "<", ">"],
            BinOp::Lt(_) => &["<=", ">", "=="],
            BinOp::Le(_) => &["<", ">=", "=="],
            BinOp::Gt(_) => &[">=", "<", "=="],
            BinOp::Ge(_) => &[">", "<=", "=="],
            BinOp::AddAssign(_) => &["-=", "*=", "="],
            BinOp::SubAssign(_) => &["+=", "="],
            BinOp::MulAssign(_) => &["/=", "+=", "="],
            BinOp::DivAssign(_) => &["*=", "="],
            _ => &[],
        };
        for other in others {
            self.change(binary.op.span(), *other);
        }
        // One side alone, and the sides exchanged.
        let (left, right) = (self.text(&*binary.left), self.text(&*binary.right));
        let op = self.text(&binary.op);
        self.change(binary.span(), left.clone());
        self.change(binary.span(), right.clone());
        if matches!(binary.op, BinOp::Sub(_) | BinOp::Div(_) | BinOp::Rem(_)) {
            self.change(binary.span(), format!("({right}) {op} ({left})"));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_lit(&mut self, lit: &'ast Lit) {
        match lit {
            Lit::Int(int) => {
                if let Ok(value) = int.base10_parse::<u128>() {
                    self.whole_number(int.span(), value, int.suffix());
                }
            }
            Lit::Float(float) => {
                if let Ok(value) = float.base10_parse::<f64>() {
                    let others = [value + 1.0, value - 1.0, 2.0 * value, value / 2.0, 0.0, 1.0];
                    for other in others.into_iter().filter(|other| *other != value) {
                        self.change(float.span(), format!("({other:?}{})", float.suffix()));
                    }
                }
            }
            Lit::Bool(bool) => self.change(bool.span(), (!bool.value).to_string()),
            Lit::Str(text) => {
                // Another value in the words.
                let at = text.span().byte_range();
                let quoted = self.source[at.clone()].to_string();
                for name in self.names.clone().into_keys() {
                    let braced = format!("{{{name}}}");
                    for (place, _) in quoted.match_indices(&braced) {
                        for other in self.others(&name, at.start) {
                            let to = format!("{{{other}}}");
                            let range = at.start + place..at.start + place + braced.len();
                            if self.within.contains(&range.start) {
                                self.changes.push(Change { at: range, to });
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Neg(_) | UnOp::Not(_)) {
            let inner = self.text(&*unary.expr);
            self.change(unary.span(), inner);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_range(&mut self, range: &'ast ExprRange) {
        let limits = &range.limits;
        self.change(
            limits.span(),
            if matches!(limits, RangeLimits::HalfOpen(_)) { "..=" } else { ".." },
        );
        if let Some(start) = &range.start {
            let text = self.text(&**start);
            self.change(start.span(), format!("({text} + 1)"));
        }
        if let Some(end) = &range.end {
            let text = self.text(&**end);
            self.change(end.span(), format!("({text} - 1)"));
            self.change(end.span(), format!("({text} + 1)"));
            // Not the first half, not the second, a bound that is felt late.
            let literal = text.parse().unwrap_or(usize::MAX);
            for bound in [2, 3, 5, 9, 17, 65].into_iter().filter(|bound| *bound < literal) {
                self.change(end.span(), format!("({text}).min({bound})"));
            }
        }
        visit::visit_expr_range(self, range);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let receiver = self.text(&*call.receiver);
        self.change(call.span(), receiver);
        let name = call.method.to_string();
        for others in METHODS.iter().filter(|others| others.contains(&name.as_str())) {
            for other in others.iter().filter(|other| **other != name) {
                self.change(call.method.span(), *other);
            }
        }
        if ["iter", "chunks", "map", "into_iter", "flat_map", "zip"].contains(&name.as_str()) {
            let whole = self.text(call);
            for more in [".skip(1)", ".take(1)", ".rev()", ".take(65)"] {
                self.change(call.span(), format!("{whole}{more}"));
            }
        }
        self.exchange(&call.args);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        self.exchange(&call.args);
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_tuple(&mut self, tuple: &'ast syn::ExprTuple) {
        self.exchange(&tuple.elems);
        visit::visit_expr_tuple(self, tuple);
    }

    fn visit_expr_array(&mut self, array: &'ast syn::ExprArray) {
        self.exchange(&array.elems);
        visit::visit_expr_array(self, array);
    }

    fn visit_expr_cast(&mut self, cast: &'ast syn::ExprCast) {
        let inner = self.text(&*cast.expr);
        self.change(cast.span(), inner.clone());
        // Through a smaller type. (Through a wider one nothing is lost.)
        let target = self.text(&*cast.ty);
        let smaller: &[&str] = match target.as_str() {
            "f32" => &["u16"],
            "u32" | "i32" => &["u16", "f32"],
            _ => &["u16", "u32", "f32"],
        };
        for through in smaller {
            self.change(cast.span(), format!("({inner} as {through} as {target})"));
        }
        visit::visit_expr_cast(self, cast);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        if !matches!(*branch.cond, Expr::Let(_)) {
            let condition = self.text(&*branch.cond);
            for other in ["true".to_string(), "false".to_string(), format!("!({condition})")] {
                self.change(branch.cond.span(), other);
            }
        }
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if let Some(name) = path.path.get_ident().map(ToString::to_string)
            && self.names.contains_key(&name)
        {
            for other in self.others(&name, path.span().byte_range().start) {
                self.change(path.span(), other);
            }
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Member::Unnamed(index) = &field.member {
            for other in 0..4 {
                self.change(index.span(), other.to_string());
            }
        }
        visit::visit_expr_field(self, field);
    }

    fn visit_generic_argument(&mut self, argument: &'ast GenericArgument) {
        let number = match argument {
            GenericArgument::Const(Expr::Lit(lit)) => Some(lit.span()),
            _ => None,
        };
        if let Some(span) = number {
            // An axis.
            for other in 0..4 {
                self.change(span, other.to_string());
            }
            return;
        }
        visit::visit_generic_argument(self, argument);
    }

    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        arguments: &'ast syn::AngleBracketedGenericArguments,
    ) {
        self.exchange(&arguments.args);
        visit::visit_angle_bracketed_generic_arguments(self, arguments);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        for statement in &block.stmts {
            match statement {
                // Left out.
                Stmt::Expr(_, Some(_)) | Stmt::Local(_) | Stmt::Expr(Expr::If(_), None) => {
                    self.change(statement.span(), "");
                }
                // The result, spoilt.
                Stmt::Expr(last, None) => {
                    let text = self.text(last);
                    for spoilt in ["* 2.0", "* -1.0", "+ 1", "- 1", "+ 1e-3"] {
                        self.change(last.span(), format!("({text}) {spoilt}"));
                    }
                }
                _ => {}
            }
        }
        for pair in block.stmts.windows(2) {
            let (a, b) = (pair[0].span().byte_range(), pair[1].span().byte_range());
            let ends = matches!(pair[1], Stmt::Expr(_, None));
            if self.within.start <= a.start && b.end <= self.within.end && !ends {
                let to = format!("{}\n{}", self.text(&pair[1]), self.text(&pair[0]));
                self.changes.push(Change { at: a.start..b.end, to });
            }
        }
        visit::visit_block(self, block);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let arguments = mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        if let Ok(arguments) = arguments {
            // What is parsed here does not live as long as the file.
            let mut inner = Maker {
                source: self.source,
                within: self.within.clone(),
                names: self.names.clone(),
                changes: std::mem::take(&mut self.changes),
            };
            arguments.iter().for_each(|argument| inner.visit_expr(argument));
            inner.exchange(&arguments);
            self.changes = inner.changes;
        }
    }
}
