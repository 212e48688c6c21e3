//! One invariant, measured.

use serde::Serialize;

/// An invariant of a component, what was measured, and the most it may be.
///
/// Every invariant is put so that it holds if `measured <= bound`: an error against its bound,
/// or a number of exceptions against 0. In JSON there are five fields: `component`,
/// `invariant`, `measured`, `bound`, `holds`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The slug of a component, such as `norm`.
    pub component: &'static str,
    /// Its name within the component, words joined by `-`.
    pub invariant: &'static str,
    /// The error, or the number of exceptions. In JSON, `null` if it is not a finite number.
    pub measured: f64,
    /// The most that `measured` may be.
    pub bound: f64,
    /// Whether `measured <= bound`. `NaN` holds nothing.
    pub holds: bool,
    /// What `measured` counts or measures.
    #[serde(skip)]
    pub unit: &'static str,
    /// Where exceptions are counted: how many there could have been.
    #[serde(skip)]
    pub out_of: Option<usize>,
    /// The invariant in words.
    #[serde(skip)]
    pub words: &'static str,
    /// The invariant as a formula, and where the bound comes from.
    #[serde(skip)]
    pub formula: &'static str,
}

/// The name and the text of an invariant, before it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// See [`Finding::component`].
    pub component: &'static str,
    /// See [`Finding::invariant`].
    pub invariant: &'static str,
    /// See [`Finding::words`].
    pub words: &'static str,
    /// See [`Finding::formula`].
    pub formula: &'static str,
}

impl Claim {
    /// The claim with an error and the bound that rounding explains.
    pub fn measured(self, measured: f64, bound: f64, unit: &'static str) -> Finding {
        let Claim { component, invariant, words, formula } = self;
        let (holds, out_of) = (measured <= bound, None);
        Finding { component, invariant, measured, bound, holds, unit, out_of, words, formula }
    }

    /// The claim with its number of exceptions among `out_of` cases. It holds if there are none.
    pub fn exceptions(self, count: usize, out_of: usize, unit: &'static str) -> Finding {
        Finding { out_of: Some(out_of), ..self.measured(count as f64, 0.0, unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Claim = Claim { component: "norm", invariant: "name", words: "", formula: "" };

    #[test]
    fn nan_holds_nothing() {
        assert!(!CLAIM.measured(f64::NAN, 1.0, "relative").holds);
        assert!(CLAIM.measured(1.0, 1.0, "relative").holds);
        assert!(!CLAIM.exceptions(1, 9, "values").holds);
    }

    #[test]
    fn json_has_five_fields() {
        let json = serde_json::to_value(CLAIM.exceptions(0, 9, "values")).unwrap();
        let mut names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        names.sort();
        assert_eq!(names, ["bound", "component", "holds", "invariant", "measured"]);
    }
}
