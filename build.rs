//! Rebuilds when a profile is added or removed: the compiler sees only changes in files it knows.

fn main() {
    println!("cargo::rerun-if-changed=profiles");
}
