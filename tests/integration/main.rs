//! Tests of the whole program and of its data; what concerns one function is tested beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// How commands answer: words, streams, exit status.
mod cli;
/// Which module may know of which.
mod floors;
/// The strict builder that the others run the program with.
mod harness;
/// The files in `profiles/`, and a user's own.
mod profiles;
