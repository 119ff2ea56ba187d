//! Rebuilds when a profile or a Python file is added or removed: the compiler sees only changes in files it knows.

fn main() {
    println!("cargo::rerun-if-changed=profiles");
    println!("cargo::rerun-if-changed=python");
}
