//! Shapes that can't fit do not compile, and the compiler's words are kept beside it.
//!
//! After a wanted change run `TRYBUILD=overwrite cargo test --test compile_fail` and read the
//! difference.

#[test]
fn what_does_not_fit_does_not_compile() {
    let cases = trybuild::TestCases::new();
    // Without a case that passes, trybuild only checks types, and the sizes are not looked at.
    cases.pass("what_fits.rs");
    cases.compile_fail("[0-9]*.rs");
}
