use std::path::{Path, PathBuf};

/// A Python environment with PyTorch.
pub(crate) struct Environment {
    /// Its folder's name, e.g. `torch-2.6`; `main` for the one with all frameworks.
    pub(crate) name: String,
    pub(crate) python: PathBuf,
}

/// Whether everything is to run, however long it takes.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os("VRAMFIT_FRAMEWORKS").is_some()
}

/// The environment with all frameworks.
pub(crate) fn main() -> Environment {
    let python = std::env::var_os("VRAMFIT_PYTHON")
        .expect("VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`");
    Environment { name: "main".to_owned(), python: python.into() }
}

/// The main one, and those with another PyTorch and torchvision alone, as far as they are there.
pub(crate) fn all() -> Vec<Environment> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut lists: Vec<PathBuf> = std::fs::read_dir(checkout.join("scripts/frameworks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    lists.sort();
    let mut environments = vec![main()];
    for list in lists {
        let name = list.file_stem().unwrap().to_string_lossy().into_owned();
        let python = checkout.join(".venvs").join(&name).join("bin/python");
        if python.exists() {
            environments.push(Environment { name, python });
        } else {
            assert!(!is_thorough(), "{name} is not installed; run `scripts/frameworks.sh`");
        }
    }
    environments
}
