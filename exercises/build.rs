//! `QUADRIVIUM_STARTERS=norm,rope` builds with the starters of these components in place of the learner's
//! files. `cargo course` asks for it when a file does not compile, so that the others can be graded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=QUADRIVIUM_STARTERS");
    println!("cargo::rustc-check-cfg=cfg(starter, values(any()))");
    let starters = std::env::var("QUADRIVIUM_STARTERS").unwrap_or_default();
    for slug in starters.split(',').filter(|slug| !slug.is_empty()) {
        println!("cargo::rustc-cfg=starter=\"{slug}\"");
    }
}
