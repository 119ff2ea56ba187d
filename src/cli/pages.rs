//! Pages for a browser, where a report is asked for by a name that ends so.

use std::path::Path;

use super::made_by;
use crate::device::{RunReports, Snapshots};
use crate::report::{RecordedPeak, RunDocument, run_page};

/// Whether a report of this name is a page.
pub(super) fn is_page(path: &Path) -> bool {
    let ending = path.extension().and_then(|it| it.to_str());
    ending.is_some_and(|it| matches!(it.to_ascii_lowercase().as_str(), "html" | "htm"))
}

/// The page of a run, with what its processes recorded of their allocators.
pub(super) fn of_run(
    document: &RunDocument<'_>,
    seen: &RunReports,
    snapshots: Option<&Snapshots>,
) -> String {
    let (mut peaks, mut unrecorded) = (Vec::new(), Vec::new());
    for recorded in snapshots.map(Snapshots::read).unwrap_or_default() {
        match recorded.snapshot {
            Ok(snapshot) => peaks.extend(snapshot.devices.iter().filter_map(|trace| {
                let peak = trace.peak()?;
                let device = trace.device;
                Some(RecordedPeak { rank: recorded.rank, pid: recorded.pid, device, peak })
            })),
            Err(error) => unrecorded
                .push(format!("what process {} recorded cannot be read: {error}", recorded.pid)),
        }
    }
    if peaks.is_empty() && unrecorded.is_empty() {
        unrecorded.push(
            "what was in use at the peak is not known: no Python process that used the GPU through \
             PyTorch left a record"
                .to_owned(),
        );
    }
    run_page(document, seen, &peaks, &unrecorded, &made_by())
}
