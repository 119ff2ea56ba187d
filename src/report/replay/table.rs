use super::{ReplayDocument, ReplayedDevice, ReplayedOn, ReplayedSetting};
use crate::replay::{Fit, Likeness};
use crate::report::table::{grid, indent, right, wrap};
use crate::snapshot::Begin;
use crate::units::Bytes;

impl ReplayedSetting {
    /// As a table names it.
    fn name(&self, device: &ReplayedDevice) -> String {
        let conf = if self.conf.is_empty() { "default" } else { &self.conf };
        let alone = device.settings.iter().filter(|it| it.recorded).count() == 1;
        match (self.recorded, self.begin) {
            (true, begin) if alone || begin == Begin::AsRecorded => {
                format!("as recorded ({conf})")
            }
            (true, _) => format!("{conf}, begun afresh"),
            (false, _) => conf.to_owned(),
        }
    }

    fn reserved(&self) -> Option<Bytes> {
        self.peaks.map(|peaks| peaks.reserved)
    }
}

/// What a person reads, without a line end at its end.
pub fn replay(document: &ReplayDocument) -> String {
    let parts: Vec<_> = document.devices.iter().map(|device| section(device, document)).collect();
    let torch = document.torch.as_deref().map_or_else(
        || "PyTorch's allocator".to_owned(),
        |version| format!("the allocator of PyTorch {version}"),
    );
    let evidence = format!(
        "Evidence: replayed by {torch} on a virtual GPU; nothing was executed. vramfit {}.",
        document.vramfit
    );
    format!("{}\n\n{}", parts.join("\n\n"), wrap(&evidence, "", "  "))
}

fn section(device: &ReplayedDevice, document: &ReplayDocument) -> String {
    let gpu = document.gpu.as_ref();
    let mut parts = vec![headline(device, document), table(device, gpu)];
    parts.extend(summary(device, gpu));
    if !device.notes.is_empty() {
        let notes = device.notes.iter().map(|note| wrap(note, "  - ", "    "));
        parts.push(format!("Notes\n{}", notes.collect::<Vec<_>>().join("\n")));
    }
    parts.join("\n\n")
}

fn headline(device: &ReplayedDevice, document: &ReplayDocument) -> String {
    let on = match &document.gpu {
        Some(gpu) => format!("{}, with a budget of {}", gpu.name, gpu.budget),
        None => "a card that is large enough".to_owned(),
    };
    let text = format!(
        "{}: {} events of device {}, replayed on {on}.",
        document.snapshot, device.events, device.device
    );
    wrap(&text, "", "")
}

fn table(device: &ReplayedDevice, gpu: Option<&ReplayedOn>) -> String {
    let mut grid = grid();
    let mut header = vec!["setting", "requested", "in use", "reserved", "unused"];
    header.extend(gpu.map(|_| "device"));
    header.extend(gpu.map(|_| "fits"));
    let columns = header.len();
    grid.set_header(header);
    for setting in &device.settings {
        let mut row = vec![setting.name(device)];
        match (&setting.peaks, &setting.refused) {
            (Some(peaks), _) => {
                let unused = peaks.reserved.saturating_sub(peaks.active);
                let sizes = [peaks.requested, peaks.active, peaks.reserved, unused];
                row.extend(sizes.map(|size| size.to_string()));
                row.extend(gpu.and(setting.device_peak).map(|peak| peak.to_string()));
                row.extend(setting.fit.map(|fit| word(fit).to_owned()));
            }
            (None, _) => row.extend(["-"; 4].map(str::to_owned)),
        }
        row.resize(columns, "-".to_owned());
        grid.add_row(row);
    }
    right(&mut grid, &[1, 2, 3, 4, 5][..columns.min(6) - 1]);
    let mut text = format!("Peaks\n{}", indent(&grid.trim_fmt()));
    for setting in &device.settings {
        if let Some(reason) = &setting.refused {
            let line = format!("{}: not replayed: {reason}", setting.name(device));
            text += &format!("\n{}", wrap(&line, "  ", "    "));
        }
    }
    text
}

fn word(fit: Fit) -> &'static str {
    match fit {
        Fit::Fits => "yes",
        Fit::ByFlushing(_) => "too tight",
        Fit::DoesNotFit(_) => "no",
    }
}

/// What follows from the table.
fn summary(device: &ReplayedDevice, gpu: Option<&ReplayedOn>) -> Option<String> {
    let mut lines = Vec::new();
    lines.extend(gpu.and_then(|_| failure(device)));
    lines.extend(best(device));
    lines.extend(device.smallest_gpu.as_ref().map(|smallest| {
        format!(
            "The smallest card that holds it as recorded: {} ({}), {} with its context.",
            smallest.name, smallest.memory, smallest.device_peak
        )
    }));
    lines.extend(device.likeness.map(|likeness| beside_file(device, &likeness)));
    let lines: Vec<_> = lines.iter().map(|line| wrap(line, "", "  ")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Why the recorded setting does not fit.
fn failure(device: &ReplayedDevice) -> Option<String> {
    let recorded = device.settings.first()?;
    match recorded.fit? {
        Fit::Fits => None,
        Fit::ByFlushing(times) => Some(format!(
            "Too tight as recorded: it runs only by emptying the allocator's cache, {times} times."
        )),
        Fit::DoesNotFit(failed) => {
            Some(format!("Does not fit as recorded: out of memory for {}.", failed.requested))
        }
    }
}

/// The setting that needs least, where that is less than with the recorded one begun alike.
fn best(device: &ReplayedDevice) -> Option<String> {
    let fits = |it: &&ReplayedSetting| it.fit == Some(Fit::Fits);
    let alike = device.settings.iter().filter(|it| it.recorded || it.begin == Begin::Afresh);
    // What people want to know first: what makes it fit.
    if device.settings.first()?.fit.is_some_and(|fit| fit != Fit::Fits) {
        let fitting = alike.clone().filter(|it| !it.recorded).filter(fits);
        let least = fitting.filter_map(|it| Some((it, it.reserved()?))).min_by_key(|it| it.1);
        return Some(match least {
            Some((it, reserved)) => {
                format!("It fits with {}: {reserved} reserved.", it.name(device))
            }
            None => "It fits with no setting that was tried.".to_owned(),
        });
    }
    let base = alike.clone().rfind(|it| it.recorded)?;
    let of_recorded = base.reserved()?;
    let best = alike
        .filter(|it| it.begin == Begin::Afresh && !it.recorded && it.memory_fraction.is_none())
        .filter_map(|it| Some((it, it.reserved()?)))
        .min_by_key(|(_, reserved)| *reserved)
        .filter(|(_, reserved)| *reserved < of_recorded);
    let Some((best, reserved)) = best else {
        return Some("No setting that was tried needs less.".to_owned());
    };
    Some(format!(
        "{} needs least: {reserved} reserved, {} less than {}.",
        best.name(device),
        of_recorded - reserved,
        base.name(device)
    ))
}

fn beside_file(device: &ReplayedDevice, likeness: &Likeness) -> String {
    let reserved = device.settings.first().and_then(ReplayedSetting::reserved).unwrap_or_default();
    let peak = match reserved == device.recorded.reserved_peak {
        true => format!("the recorded peak of {reserved} reserved"),
        false => format!("{reserved} reserved where {} were", device.recorded.reserved_peak),
    };
    let Likeness { segments, same_size, same_blocks, replayed_segments, .. } = likeness;
    let end = match likeness.is_exact() {
        true => format!("all {segments} segments at the end, block for block"),
        false => format!(
            "of {segments} segments at the end {same_size} of the same size, {same_blocks} with the \
             same blocks, among {replayed_segments}"
        ),
    };
    format!("Beside the file: {peak}; {end}.")
}
