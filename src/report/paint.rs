//! Colours for the table's bars, where a terminal shows them.

use anstyle::{AnsiColor, Style};

/// The first line of the rows that have bars.
const TITLE: &str = "Memory at the peak";
/// Each part of the memory in a colour of its own; a terminal's first eight are what themes adapt.
const COLOURS: [(&str, AnsiColor); 7] = [
    ("context", AnsiColor::BrightBlack),
    ("weights", AnsiColor::Blue),
    ("gradients", AnsiColor::Cyan),
    ("optimizer state", AnsiColor::Green),
    ("activations", AnsiColor::Yellow),
    ("workspace", AnsiColor::Magenta),
    ("fragmentation", AnsiColor::Red),
];

/// `table` with its bars coloured by what they stand for, and nothing else changed.
pub fn painted(table: &str) -> String {
    let mut among_bars = false;
    let lines = table.lines().map(|line| {
        among_bars = (among_bars && !line.is_empty()) || line == TITLE;
        let part = COLOURS.iter().find(|(name, _)| line.trim_start().starts_with(name));
        match part {
            Some((_, colour)) if among_bars => bar(line, colour.on_default()),
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn bar(line: &str, style: Style) -> String {
    match (line.find('█'), line.rfind('█')) {
        (Some(begin), Some(last)) => {
            let end = last + '█'.len_utf8();
            let (before, cells, after) = (&line[..begin], &line[begin..end], &line[end..]);
            format!("{before}{style}{cells}{style:#}{after}")
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Train it.\n\nMemory at the peak\n  context  1 MiB  █···\n  weights  2 MiB  \
                         ·██·\n  device peak  3 MiB\n  activations are gone\n\nNotes\n  - weights █";

    #[test]
    fn only_bars_are_coloured_and_each_part_by_itself() {
        let painted = painted(TABLE);
        let grey = "  context  1 MiB  \u{1b}[90m█\u{1b}[0m···";
        let blue = "  weights  2 MiB  ·\u{1b}[34m██\u{1b}[0m·";
        let lines: Vec<_> = painted.lines().collect();
        assert_eq!((lines[3], lines[4]), (grey, blue));
        let plain =
            painted.replace("\u{1b}[90m", "").replace("\u{1b}[34m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, TABLE);
        assert_eq!(painted.matches('\u{1b}').count(), 4);
    }
}
