//! What a wrong answer to a graded case says of the mistake.

use super::GradedCase;
use crate::category::Category;
use crate::component::Component;
use crate::run::Run;
use crate::violation::Verdict;

/// Asks the graded cases of a call in their order, up to the first that the implementation answers wrong.
pub fn judge_graded_cases<P: Component + ?Sized>(
    implementation: &P,
    run: &Run,
    call: &str,
) -> Verdict {
    let graded_cases = P::graded_cases(run);
    let of_call = || graded_cases.iter().filter(|graded| graded.call == call);
    let of_back = call.contains("backward");
    let asked = of_call().filter(|graded| !graded.typical && !graded.elsewhere);
    let mut wrong = asked.filter_map(|graded| {
        let violation = (graded.judge)(implementation).err()?;
        // A gradient that is not there, or is another number, has no order. Only layouts and right numbers have one.
        let of_order = graded.category == Category::Order
            && violation.is_plain()
            && !violation.is_rearranged();
        let is_lost = graded.category.is_of_a_formula() && violation.is_missing();
        let category =
            if of_back && (of_order || is_lost) { Category::Gradient } else { graded.category };
        Some((category, violation))
    });
    let Some((category, violation)) = wrong.next() else { return Ok(None) };
    let keeps = |kind: fn(&GradedCase<P>) -> bool| {
        of_call().any(|graded| kind(graded) && (graded.judge)(implementation).is_ok())
    };
    if violation.is_plain() && !violation.is_about_refusal() && keeps(|graded| graded.elsewhere) {
        return Err(violation.at(Category::Offset));
    }
    if !violation.is_nearly_right() {
        let of_size =
            category.is_of_a_formula() && violation.is_plain() && keeps(|graded| graded.typical);
        return Err(violation.about(if of_size { Category::Extent } else { category }));
    }
    // A formula with right digits: either it is its roundings, or what is wrong hardly matters here.
    match wrong.find(|(_, violation)| !violation.is_nearly_right()) {
        Some((Category::Extent | Category::Special, _)) | None => {
            Err(violation.about(Category::Precision))
        }
        Some((category, violation)) => Err(violation.about(category)),
    }
}
