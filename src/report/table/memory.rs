//! The parts of a peak.

use super::{grid, indent, right, wrap};
use crate::measurement::Memory;
use crate::units::Bytes;

/// Cells of the bar that stands for the budget.
const BAR: usize = 40;

/// The parts of the peak, and a bar of how much of the budget they take.
pub(super) fn stack(memory: &Memory, budget: Bytes) -> String {
    let mut grid = grid();
    let mut below = Bytes::ZERO;
    for (name, bytes) in parts(memory) {
        grid.add_row([name.to_owned(), bytes.to_string(), bar(below, bytes, budget)]);
        below = below + bytes;
    }
    let free = budget.saturating_sub(memory.device_peak);
    let of = format!("of {budget} budget, {free} left");
    grid.add_row(["device peak".to_owned(), memory.device_peak.to_string(), of]);
    right(&mut grid, &[1]);
    let mut text = format!("Memory at the peak\n{}", indent(&grid.to_string()));
    if let Some(earlier) = earlier(memory) {
        text += &format!("\n{}", wrap(&earlier, "  ", "  "));
    }
    text
}

/// What a device peak is made of, by name; together they are the peak.
pub(in crate::report) fn parts(memory: &Memory) -> [(&'static str, Bytes); 7] {
    // Parts are whole at different times; activations are what is gone by the time others are.
    let gone = memory.not_together();
    [
        ("context", memory.context),
        ("weights", memory.weights),
        ("gradients", memory.gradients),
        ("optimizer state", memory.optimizer_state),
        ("activations", memory.activations.saturating_sub(gone)),
        ("workspace", memory.workspace),
        ("fragmentation", memory.fragmentation()),
    ]
}

/// That there were more activations than at the peak, if there were.
pub(in crate::report) fn earlier(memory: &Memory) -> Option<String> {
    let gone = memory.not_together();
    (gone > Bytes::ZERO).then(|| {
        format!(
            "activations are {} when the forward pass ends; at the peak {gone} of them are gone",
            memory.activations
        )
    })
}

/// Cells from `below` on that stand for `bytes` of `budget`.
fn bar(below: Bytes, bytes: Bytes, budget: Bytes) -> String {
    let cell = |bytes: Bytes| {
        let share = bytes.get() as f64 / budget.get().max(1) as f64;
        ((share * BAR as f64).round() as usize).min(BAR)
    };
    let (start, end) = (cell(below), cell(below + bytes));
    // Something is never shown as nothing.
    let end = if bytes > Bytes::ZERO && end == start { (start + 1).min(BAR) } else { end };
    format!("{}{}", "·".repeat(start.min(end)), "█".repeat(end - start.min(end)))
        + &"·".repeat(BAR - end)
}
