use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use vramfit_vgpu_schema::{Report, SCHEMA};

/// Part of the name of the kernel by which a gradient scaler looks for infinities. What it would
/// have written, had it run on sound gradients, is the 0 that comes back.
const HARMLESS: &str = "_amp_foreach_non_finite_check_and_unscale";

/// What the processes of one virtual GPU reported when they ended, put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReports {
    /// Entry points that were called though the virtual GPU does not implement them, sorted.
    pub not_implemented: Vec<String>,
    /// Values that came back to the host though no kernel had written them: number of copies. Those
    /// a gradient scaler, for which the 0 that comes back is right, are left out.
    pub read_backs: u64,
    /// Failures inside the virtual GPU itself.
    pub internal_errors: Vec<String>,
    /// The reports themselves.
    pub reports: Vec<Report>,
}

/// Reads the reports that lie in the folder of a virtual GPU. Processes that were killed have left
/// none, and a half-written one says nothing, so neither is an error.
pub fn read_run_reports(folder: &Path) -> RunReports {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut reports: Vec<Report> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("report-") && name.ends_with(".json")
        })
        .filter_map(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok())
        .filter(|report: &Report| report.schema == SCHEMA)
        .collect();
    reports.sort_by_key(|report| report.pid);
    let names: BTreeSet<_> = reports.iter().flat_map(|report| &report.not_implemented).collect();
    RunReports {
        not_implemented: names.into_iter().cloned().collect(),
        read_backs: reports
            .iter()
            .flat_map(|report| &report.read_backs)
            .filter(|back| !back.kernel.contains(HARMLESS))
            .map(|back| back.count)
            .sum(),
        internal_errors: reports.iter().flat_map(|report| report.internal_errors.clone()).collect(),
        reports,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramfit_vgpu_schema::{ReadBack, folder};

    #[test]
    fn reports_are_put_together_and_rubbish_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: String, text: String| fs::write(folder.path().join(name), text).unwrap();
        for (pid, name) in [(7, "cuFoo"), (8, "cuBar"), (9, "cuFoo")] {
            let report = Report {
                schema: SCHEMA,
                pid,
                not_implemented: vec![name.to_owned()],
                read_backs: vec![
                    ReadBack { kernel: "k".to_owned(), bytes: 4, count: 2 },
                    ReadBack { kernel: format!("_ZN{HARMLESS}_cuda"), bytes: 4, count: 9 },
                ],
                ..Report::default()
            };
            write(folder::report(pid), serde_json::to_string(&report).unwrap());
        }
        write(folder::report(10), "{\"schema\": 1, \"pid\"".to_owned());
        write("device.json".to_owned(), "{}".to_owned());
        let seen = read_run_reports(folder.path());
        assert_eq!(seen.not_implemented, ["cuBar", "cuFoo"]);
        assert_eq!((seen.read_backs, seen.reports.len()), (6, 3));
    }
}
