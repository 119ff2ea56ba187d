/// Foreign words as one line that does nothing to a terminal: control characters, and those that
/// turn the direction of writing around, are replaced.
pub fn one_line(text: &str) -> String {
    let harmless = |character: char| match character {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.trim().chars().map(harmless).collect()
}

/// As [`one_line`], of at most so many characters.
pub fn shorten(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The last line that says something.
pub fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| !line.trim().is_empty())
}

/// As [`one_line`], of a text that has lines of its own, such as a traceback.
pub fn harmless_lines(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|line| {
            let indent = line.len() - line.trim_start_matches(' ').len();
            format!("{}{}", &line[..indent], one_line(line))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_do_nothing_to_a_terminal() {
        assert_eq!(
            one_line("a\nb\r\u{1b}[2Jc\u{202e}d\u{9b}\n"),
            "a b \u{fffd}[2Jc\u{fffd}d\u{fffd}"
        );
        assert_eq!(one_line("µ-batch „8“"), "µ-batch „8“");
    }
}
