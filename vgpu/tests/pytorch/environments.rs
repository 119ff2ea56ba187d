//! The environments with a PyTorch that tests run on: the main one, and those of `.venvs`
//! (`scripts/frameworks.sh`).
//!
//! `VRAMFIT_FRAMEWORKS` tells which must be there: `main`, or the name of a list in
//! `scripts/frameworks`. Unset, the main one and those that are there are used. A test over
//! all of them has `each_pytorch` in its name, by which `scripts/test-frameworks.sh` finds it.

use std::path::{Path, PathBuf};

/// One environment.
pub(crate) struct Environment {
    /// Its folder's name, e.g. `torch-2.6`; `main` for the main one.
    pub(crate) name: String,
    pub(crate) python: PathBuf,
}

/// The environment that everything else is tested with; it has all frameworks.
pub(crate) fn main() -> Environment {
    let python = std::env::var_os("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`");
    Environment { name: "main".to_owned(), python: python.into() }
}

/// The main environment, and after it those with another PyTorch and torchvision alone.
pub(crate) fn all() -> Vec<Environment> {
    let required = std::env::var("VRAMFIT_FRAMEWORKS").ok();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("scripts/frameworks").is_dir())
        .unwrap();
    let mut names: Vec<String> = std::fs::read_dir(checkout.join("scripts/frameworks"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut environments = vec![main()];
    for name in names {
        let python = checkout.join(".venvs").join(&name).join("bin/python");
        let wanted = required.as_ref().map_or(python.exists(), |required| *required == name);
        if wanted {
            assert!(python.exists(), "{name} is not installed; run `scripts/frameworks.sh {name}`");
            environments.push(Environment { name, python });
        }
    }
    environments
}
