//! Empty: this crate's manifest is its subject.
