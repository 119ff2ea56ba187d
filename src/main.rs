//! The command line of vramfit.
fn main() {}
