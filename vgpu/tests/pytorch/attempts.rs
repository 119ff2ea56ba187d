//! Programs that try many things (`programs/attempt.py`): each must run, and nothing that they call may
//! be refused.

use vramfit_vgpu_schema::Report;

use super::shadow;

/// Runs a program with the help of the Python side; it must have made at least `least` attempts.
#[track_caller]
pub(crate) fn run(name: &str, arguments: &[&str], least: usize) -> Report {
    let (output, report, python) = shadow::run(name, arguments, shadow::roomy());
    let attempts: usize = output.trim().parse().unwrap();
    assert!(attempts >= least, "{name}: only {attempts} attempts");
    assert_eq!(report.not_implemented, Vec::<String>::new(), "{name} {arguments:?}");
    assert_eq!(report.read_backs, Vec::new(), "{name}: values came back unaccounted for");
    assert!(python.shadow.computed > 0, "{name}: nothing was computed");
    report
}

/// How often library call `call` was made.
pub(crate) fn calls(report: &Report, call: &str) -> u64 {
    report.kernels.iter().filter(|it| it.name == call).map(|it| it.launches).sum()
}

/// Asks that the report names an estimate of `library`, and how many there are in all.
#[track_caller]
pub(crate) fn assert_estimates(report: &Report, beginnings: &[&str]) {
    let found = &report.estimates;
    assert_eq!(found.len(), beginnings.len(), "{found:?}");
    for beginning in beginnings {
        assert!(found.iter().any(|it| it.starts_with(beginning)), "{beginning} in {found:?}");
    }
}
