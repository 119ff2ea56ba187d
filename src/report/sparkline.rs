//! A line of text that shows how much memory was held as a program went on.

use vramfit_vgpu_schema::TimelinePoint;

use crate::units::Bytes;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH: usize = 60;
/// Launches too few to be an axis.
const FEW: u64 = WIDTH as u64;

/// The memory of one device over the launches of a process, or over its allocations if it hardly
/// launched any: each character the highest of its share, full height the peak. None if nothing was
/// held there.
pub(super) fn sparkline(points: &[TimelinePoint], device: u32) -> Option<String> {
    let own: Vec<_> = points.iter().filter(|point| point.device == device).collect();
    let peak = own.iter().map(|point| point.used_bytes).max().filter(|peak| *peak > 0)?;
    let launches = points.iter().map(|point| point.launches).max()? + 1;
    let mut columns = [None::<u64>; WIDTH];
    for (index, point) in own.iter().enumerate() {
        let (place, places) = match launches {
            0..=FEW => (index as u64, own.len() as u64),
            launches => (point.launches, launches),
        };
        let column = (place * WIDTH as u64 / places) as usize;
        columns[column] = columns[column].max(Some(point.used_bytes));
    }
    let mut last = 0;
    let line: String = columns
        .iter()
        .map(|column| {
            // Between two changes the program holds what it held.
            last = column.unwrap_or(last);
            LEVELS[((last * 8).div_ceil(peak).max(1) - 1).min(7) as usize]
        })
        .collect();
    Some(format!("{line} {}", Bytes(peak)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(device: u32, launches: u64, used_bytes: u64) -> TimelinePoint {
        TimelinePoint { device, seconds: 0.0, launches, used_bytes }
    }

    #[test]
    fn a_line_is_as_high_as_its_peak_and_holds_between_changes() {
        let points = [point(0, 0, 100), point(1, 10, 7), point(0, 300, 800), point(0, 590, 400)];
        let line = sparkline(&points, 0).unwrap();
        let drawn: Vec<char> = line.chars().take(WIDTH).collect();
        assert_eq!((drawn[0], drawn[29], drawn[31], drawn[59]), ('▁', '▁', '█', '▄'), "{line}");
        assert!(line.ends_with(" 800 B"), "{line}");
        assert_eq!(sparkline(&points, 2), None);
    }

    #[test]
    fn a_program_that_only_allocates_has_a_line_too() {
        let points = [point(0, 0, 100), point(0, 0, 800), point(0, 1, 400)];
        let line: String = sparkline(&points, 0).unwrap().chars().take(WIDTH).collect();
        assert_eq!(line, ["▁".repeat(20), "█".repeat(20), "▄".repeat(20)].concat());
    }
}
