//! The words of a caught panic.

use std::any::Any;
use std::cell::RefCell;
use std::panic::set_hook;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, panics print nothing. Their place is kept for [`message`].
///
/// For programs that judge code: a panic in it is a finding, which the report tells.
pub fn silence() {
    set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        PLACE.set(place);
    }));
}

/// What a panic said, with its file and line if [`silence`] was called.
pub fn message(payload: &(dyn Any + Send)) -> String {
    let words = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_string());
    match PLACE.take() {
        Some(place) => format!("{words} ({place})"),
        None => words,
    }
}
