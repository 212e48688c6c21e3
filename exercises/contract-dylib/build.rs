//! The library's own calls need not be looked up by name when it is loaded: nobody else has functions of these names. A task about a
//! property starts some fifty processes, and each of them would look up some eighty thousand names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg=-Wl,-Bsymbolic");
    }
}
