//! What is going on, while it takes time.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Receives what is going on, in a few words, while it takes time.
pub type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// Does something that takes time, with a line on a terminal's standard error that says what.
pub fn with_spinner<T>(work: impl FnOnce(Progress<'_>) -> T) -> T {
    let spinner = ProgressBar::new_spinner();
    let template = ProgressStyle::with_template("{spinner} {wide_msg}");
    spinner.set_style(template.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work(&|words| spinner.set_message(words.to_string()));
    spinner.finish_and_clear();
    result
}
