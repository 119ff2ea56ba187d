use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use vramfit_vgpu_schema::{DataDependentSize, Report, SCHEMA, Shadow, UnknownRead};

/// Part of the name of the kernel by which a gradient scaler looks for infinities. What it would
/// have written, had it run on sound gradients, is the 0 that comes back.
const HARMLESS: &str = "_amp_foreach_non_finite_check_and_unscale";

/// What the processes of one virtual GPU reported when they ended, put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReports {
    /// Entry points that were called though the virtual GPU does not implement them, sorted.
    pub not_implemented: Vec<String>,
    /// Values that came back to the host though neither a kernel nor shadow execution had computed
    /// them: number of copies. Those of a gradient scaler, for which the 0 that comes back is right,
    /// are left out.
    pub read_backs: u64,
    /// Those of the read-backs whose place in the user's program may be known, most frequent first.
    pub unknown_reads: Vec<UnknownRead>,
    /// Results whose size depends on values that nobody knows, largest first.
    pub sizes: Vec<DataDependentSize>,
    /// Failures inside the virtual GPU itself.
    pub internal_errors: Vec<String>,
    /// Sizes that are estimates, each with its basis, sorted.
    pub estimates: Vec<String>,
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
    reports.sort_by_key(|report| (report.python.as_ref().and_then(|it| it.rank), report.pid));
    let names: BTreeSet<_> = reports.iter().flat_map(|report| &report.not_implemented).collect();
    let estimates: BTreeSet<_> = reports.iter().flat_map(|report| &report.estimates).collect();
    let unknown_reads = unknown_reads(&reports);
    let unnamed: u64 = reports
        .iter()
        .flat_map(|report| &report.read_backs)
        .filter(|back| !back.kernel.contains(HARMLESS))
        .map(|back| back.count)
        .sum();
    RunReports {
        not_implemented: names.into_iter().cloned().collect(),
        read_backs: unnamed + unknown_reads.iter().map(|read| read.count).sum::<u64>(),
        unknown_reads,
        sizes: sizes(&reports),
        internal_errors: reports.iter().flat_map(|report| report.internal_errors.clone()).collect(),
        estimates: estimates.into_iter().cloned().collect(),
        reports,
    }
}

fn shadows(reports: &[Report]) -> impl Iterator<Item = &Shadow> {
    reports.iter().filter_map(|report| Some(&report.python.as_ref()?.shadow))
}

/// The same line in several processes is one entry.
fn unknown_reads(reports: &[Report]) -> Vec<UnknownRead> {
    let mut together = BTreeMap::new();
    for read in shadows(reports).flat_map(|shadow| &shadow.unknown_reads) {
        *together.entry((&read.place, &read.element, read.bytes)).or_insert(0) += read.count;
    }
    let mut reads: Vec<_> = together
        .into_iter()
        .map(|((place, element, bytes), count)| UnknownRead {
            place: place.clone(),
            element: element.clone(),
            bytes,
            count,
        })
        .collect();
    reads.sort_by_key(|read| Reverse(read.count));
    reads
}

fn sizes(reports: &[Report]) -> Vec<DataDependentSize> {
    let mut together: BTreeMap<_, DataDependentSize> = BTreeMap::new();
    for size in shadows(reports).flat_map(|shadow| &shadow.sizes) {
        together
            .entry((&size.place, &size.operator))
            .and_modify(|seen| {
                seen.lowest = seen.lowest.min(size.lowest);
                seen.highest = seen.highest.max(size.highest);
                seen.taken = seen.taken.max(size.taken);
                seen.count += size.count;
            })
            .or_insert_with(|| size.clone());
    }
    let mut sizes: Vec<_> = together.into_values().collect();
    sizes.sort_by_key(|size| Reverse(size.highest - size.lowest));
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramfit_vgpu_schema::{Place, Python, ReadBack, folder};

    fn read_all(reports: Vec<Report>) -> RunReports {
        let folder = tempfile::tempdir().unwrap();
        for report in reports {
            let path = folder.path().join(folder::report(report.pid));
            fs::write(path, serde_json::to_string(&report).unwrap()).unwrap();
        }
        fs::write(folder.path().join(folder::report(99)), "{\"schema\": 1, \"pid\"").unwrap();
        fs::write(folder.path().join("device.json"), "{}").unwrap();
        read_run_reports(folder.path())
    }

    #[test]
    fn reports_are_put_together_and_rubbish_is_passed_over() {
        let report = |(pid, name): (u32, &str)| Report {
            schema: SCHEMA,
            pid,
            not_implemented: vec![name.to_owned()],
            estimates: vec![format!("size of {name}"), "size of all".to_owned()],
            read_backs: vec![
                ReadBack { kernel: "k".to_owned(), bytes: 4, count: 2 },
                ReadBack { kernel: format!("_ZN{HARMLESS}_cuda"), bytes: 4, count: 9 },
            ],
            ..Report::default()
        };
        let seen = read_all([(7, "cuFoo"), (8, "cuBar"), (9, "cuFoo")].map(report).to_vec());
        assert_eq!(seen.not_implemented, ["cuBar", "cuFoo"]);
        assert_eq!((seen.read_backs, seen.reports.len()), (6, 3));
        assert_eq!(seen.estimates, ["size of all", "size of cuBar", "size of cuFoo"]);
    }

    #[test]
    fn a_line_that_several_ranks_run_is_named_once_and_ranks_stand_in_order() {
        let line = Place { file: "train.py".to_owned(), line: 7, ..Place::default() };
        let report = |(pid, rank, highest): (u32, u32, u64)| {
            let read = UnknownRead {
                place: Some(line.clone()),
                element: "float32".to_owned(),
                bytes: 4,
                count: 3,
            };
            let size = DataDependentSize {
                operator: "nonzero".to_owned(),
                place: Some(line.clone()),
                highest,
                taken: highest,
                count: 1,
                ..DataDependentSize::default()
            };
            let shadow =
                Shadow { unknown_reads: vec![read], sizes: vec![size], ..Shadow::default() };
            let python = Some(Python { rank: Some(rank), shadow, ..Python::default() });
            Report { schema: SCHEMA, pid, python, ..Report::default() }
        };
        let seen = read_all([(7, 1, 10), (8, 0, 20)].map(report).to_vec());
        assert_eq!(seen.reports.iter().map(|it| it.pid).collect::<Vec<_>>(), [8, 7]);
        assert_eq!((seen.unknown_reads.len(), seen.unknown_reads[0].count), (1, 6));
        assert_eq!(seen.read_backs, 6);
        let [size] = &seen.sizes[..] else { panic!("{:?}", seen.sizes) };
        assert_eq!((size.lowest, size.highest, size.taken, size.count), (0, 20, 20, 2));
    }
}
