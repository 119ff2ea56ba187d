//! The environments with a PyTorch that tests run on: the main one, and those of `.venvs`
//! (`scripts/frameworks.sh`), as far as they are there.
//!
//! Where `VRAMFIT_FRAMEWORKS` is set (`make test-frameworks`), each that `scripts/frameworks` lists must
//! be there.

use std::path::{Path, PathBuf};

/// One environment.
pub(crate) struct Environment {
    /// Its folder's name, e.g. `torch-2.6`; `main` for the main one.
    pub(crate) name: String,
    pub(crate) python: PathBuf,
}

/// The environment that everything else is tested with.
pub(crate) fn main() -> Environment {
    let python = std::env::var_os("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`");
    Environment { name: "main".to_owned(), python: python.into() }
}

/// All environments, the main one first.
pub(crate) fn all() -> Vec<Environment> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut environments = vec![main()];
    let mut lists: Vec<PathBuf> = std::fs::read_dir(checkout.join("scripts/frameworks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    lists.sort();
    for list in lists {
        let name = list.file_stem().unwrap().to_string_lossy().into_owned();
        let python = checkout.join(".venvs").join(&name).join("bin/python");
        if python.exists() {
            environments.push(Environment { name, python });
        } else {
            let required = std::env::var_os("VRAMFIT_FRAMEWORKS").is_some();
            assert!(!required, "{name} is not installed; run `scripts/frameworks.sh`");
        }
    }
    environments
}
