//! Code that may panic, the learner's and a library's: what it panics with becomes a sentence.

use crate::error::{Error, Moment, Result};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// How `todo!("task norm/forward")` begins.
const TODO: &str = "not yet implemented: task ";

/// Runs something that calls the learner's code, if `mine`.
///
/// # Errors
/// Those of `work`; a panic, and if it is that of a task that is not solved, its name.
pub fn guarded<T>(mine: bool, moment: Moment, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if !mine {
        return work();
    }
    caught(work).unwrap_or_else(|panic| Err(sentence(&*panic, moment)))
}

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or what it panicked with. The words are for an error: nothing is printed beside it.
///
/// # Errors
/// A panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !CAUGHT.get() {
                usual(info);
            }
        }));
    });
    let before = CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(before);
    result
}

fn sentence(panic: &(dyn Any + Send), moment: Moment) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    match text.strip_prefix(TODO) {
        Some(task) => Error::Unsolved { task: notebook_support::text::printable(task) },
        None => Error::Panicked { moment, message: notebook_support::text::printable(&text) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named() {
        let error = guarded::<()>(true, Moment::Start, || todo!("task norm/forward")).unwrap_err();
        assert!(matches!(error, Error::Unsolved { task } if task == "norm/forward"));
        let error =
            guarded::<()>(true, Moment::Step(7), || panic!("out of {}", "bounds")).unwrap_err();
        let words = "your code panicked in step 7: out of bounds;";
        assert!(error.to_string().starts_with(words), "{error}");
        assert_eq!(guarded(true, Moment::Start, || Ok(3)).unwrap(), 3);
    }
}
