//! Files that do not compile: their starters take their place, so that one file does not hide the others.

use crate::compile_error::CompileError;
use contract::registry::COMPONENTS;

/// A program, and the files that it was built without.
#[derive(Debug)]
pub struct Settled<T> {
    /// The program; none if no file of those that were asked for compiles.
    pub program: Option<T>,
    /// Why files do not compile. Their starters take their places.
    pub uncompiled: Vec<CompileError>,
}

/// What came of building with some starters: a program, or the first error. An `Err` says that nothing could be built.
pub type Attempt<T, E> = Result<Result<T, CompileError>, E>;

/// What ends without a program.
#[derive(Debug)]
pub enum Ended<E> {
    /// The code does not compile, and it is no file's own mistake.
    Nobodys(CompileError),
    /// Nothing could be built.
    Failed(E),
}

impl<E> From<E> for Ended<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

/// Builds by `attempt`, which takes the components whose starters replace their files. Those of `given` always do, because they are no Rust
/// at all, or are refused although they compile. `wanted` are the components whose tasks are to be graded: if none of their files compiles, no more is built.
///
/// # Errors
/// Code outside these files does not compile; nothing can be built.
pub fn settle<T, E>(
    wanted: &[&str],
    given: Vec<CompileError>,
    mut attempt: impl FnMut(&[&'static str]) -> Attempt<T, E>,
) -> Result<Settled<T>, Ended<E>> {
    let mut place = given.len();
    let mut uncompiled = given;
    let program = loop {
        let starters = starters(&uncompiled);
        // One file, whose mistake is its own: nothing is left to grade.
        let own = uncompiled.iter().all(|error| blamed(error).len() == 1);
        if wanted.iter().all(|slug| starters.contains(slug)) && own {
            return Ok(Settled { program: None, uncompiled });
        }
        match attempt(&starters)? {
            Ok(program) => break program,
            Err(mut error) => {
                // An error in a starter is the mistake of another file that it names.
                let next = blamed(&error).into_iter().find(|slug| !starters.contains(slug));
                if next.is_none() {
                    // The starters did not help, so the error is not theirs.
                    let mut first = uncompiled.into_iter().next().unwrap_or(error);
                    first.component = None;
                    return Err(Ended::Nobodys(first));
                }
                error.component = next;
                uncompiled.push(error);
            }
        }
    };
    // A file may only have missed what another one should have: with that one's starter, it compiles. Those that were given are not
    // tried, since a refused file would come back.
    let mut program = Some(program);
    while uncompiled.len() > 1 && place + 1 < uncompiled.len() {
        let mut fewer = uncompiled.clone();
        fewer.remove(place);
        // Each attempt writes the same program, so the last one that is built must be the one that is kept.
        match attempt(&starters(&fewer))? {
            Ok(kept) => (program, uncompiled) = (Some(kept), fewer),
            Err(_) => (program, place) = (None, place + 1),
        }
    }
    let left = starters(&uncompiled);
    if wanted.iter().all(|slug| left.contains(slug)) {
        return Ok(Settled { program: None, uncompiled }); // an error that names others was their own all the same
    }
    if program.is_none() {
        program = attempt(&left)?.ok();
    }
    Ok(Settled { program, uncompiled })
}

/// The components whose mistake an error may be: the one in whose file it is, then those that it names.
fn blamed(error: &CompileError) -> Vec<&'static str> {
    // One that is in none of these files belongs to no component.
    let Some(own) = error.component else { return Vec::new() };
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    let words: Vec<&str> = error.first.split(part).collect();
    let slugs = COMPONENTS.iter().map(|of| of.slug);
    let named = slugs.filter(|slug| *slug != own && words.contains(slug));
    std::iter::once(own).chain(named).collect()
}

/// The components whose starters are used.
fn starters(uncompiled: &[CompileError]) -> Vec<&'static str> {
    uncompiled.iter().filter_map(|error| error.component).collect()
}

#[cfg(test)]
mod refused {
    use super::*;

    fn error(component: &'static str) -> CompileError {
        let component = Some(component);
        CompileError { component, place: None, first: String::new(), further: 0, signature: false }
    }

    /// Files that are refused compile: their starters are used all the same, however many there are.
    #[test]
    fn what_is_refused_is_in_no_program() {
        for given in [&["norm"][..], &["norm", "loss"], &["norm", "loss", "rope"]] {
            let given = given.iter().map(|slug| error(slug)).collect::<Vec<_>>();
            let mut programs = Vec::new();
            let attempt = |starters: &[&'static str]| -> Attempt<(), ()> {
                programs.push(starters.to_vec());
                // Beside them one that does not compile.
                Ok(if starters.contains(&"biases") { Ok(()) } else { Err(error("biases")) })
            };
            let settled = settle(&["norm", "model"], given.clone(), attempt).ok().unwrap();
            assert_eq!(settled.uncompiled.len(), given.len() + 1);
            let all_stand_in =
                |starters: &Vec<&str>| starters.starts_with(&super::starters(&given));
            assert!(programs.iter().all(all_stand_in), "{programs:?}");
        }
    }
}
