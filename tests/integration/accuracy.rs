use std::path::Path;
use std::process::Command;

#[test]
fn the_page_of_published_measurements_is_what_its_rows_give() {
    let python = std::env::var("VRAMFIT_PYTHON").ok();
    assert!(python.is_some() || cfg!(debug_assertions), "`make test` says which Python to use");
    let Some(python) = python else { return };
    let binaries = Path::new(env!("CARGO_BIN_EXE_vramfit")).parent().unwrap();
    let output = Command::new(python)
        .args(["-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("accuracy"))
        .env("VRAMFIT_BIN", binaries)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Ran 0 tests"), "{said}");
}
