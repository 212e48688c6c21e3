//! Repairs: the one step of a computation whose replacement explains a wrong answer.
//!
//! The museum knows whole bugs. A repair knows none: it leaves the value of one step free, and finds it from the
//! answers. If the same value explains all of them, and it is not the right one, then this step is wrong, and the
//! value says how.

/// One step that can be replaced.
pub struct Repair<P: ?Sized> {
    /// The call whose answers are looked at, as in the `calls` of a task.
    pub call: &'static str,
    /// What explains the implementation's answers, in a sentence without its capital and its point. `None` where no value of
    /// this step explains them, and where they are right.
    pub explain: fn(&P) -> Option<String>,
}

/// More roundings than any right code needs, and less than a mistake that can be recognized.
const CLOSE: f64 = 1e-4;

/// Whether two values are the same up to rounding.
pub fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= CLOSE * a.abs().max(b.abs())
}

/// The value that all of these are, up to rounding.
pub fn one_value(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values = values.into_iter();
    let first = values.next().filter(|value| value.is_finite())?;
    values.all(|value| same(value, first)).then_some(first)
}

/// `values = a + b · of`, if there are such `a` and `b`.
pub fn line(values: &[f32], of: &[f32]) -> Option<(f64, f64)> {
    let [x, y] =
        [of, values].map(|values| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let far = (1..x.len()).max_by(|&i, &j| (x[i] - x[0]).abs().total_cmp(&(x[j] - x[0]).abs()))?;
    let b = (y[far] - y[0]) / (x[far] - x[0]);
    let a = y[0] - b * x[0];
    let size = y.iter().fold(a.abs(), |size, y| size.max(y.abs()));
    let on_it = x.iter().zip(&y).all(|(x, y)| (a + b * x - y).abs() <= CLOSE * size);
    (x.len() == y.len() && b.is_finite() && on_it).then_some((a, b))
}

/// A number as a repair shows it.
pub fn number(value: f64) -> String {
    let text = format!("{value:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
