use crate::error::one_line;
use crate::lint::{Finding, Severity};

/// A finding as compilers print them: place, what, the line with what is meant underlined, and the
/// hint. Colours are of a terminal's own sixteen.
pub fn lint(finding: &Finding, colours: bool) -> String {
    let paint = |code: &str, text: String| match colours {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text,
    };
    let colour = match finding.severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Note => "1;36",
    };
    let Finding { number, rule, severity, place, message, hint, .. } = finding;
    let kind = paint(colour, format!("{}[{number} {rule}]", severity.name()));
    let head = format!("{} {kind}: {}", one_line(&place.start()), one_line(message));
    let (source, caret) = excerpt(finding);
    let gutter = place.line.to_string();
    let blank = " ".repeat(gutter.len());
    format!(
        "{head}\n  {gutter} | {source}\n  {blank} | {}\nhint: {}",
        paint(colour, caret),
        one_line(hint)
    )
}

/// The line without what it is indented by, and the marks under it.
fn excerpt(finding: &Finding) -> (String, String) {
    /// So many columns of a long line are shown.
    const WIDEST: usize = 88;
    let line = finding.source.trim_start();
    let indent = finding.source.chars().count() - line.chars().count();
    let start = (finding.place.column - 1).saturating_sub(indent);
    let end = match finding.place.end_line == finding.place.line {
        true => (finding.place.end_column - 1).saturating_sub(indent),
        false => line.chars().count(),
    };
    let skipped = if end > WIDEST { start.min(end - WIDEST.min(end)) } else { 0 };
    let shown: String = line.chars().skip(skipped).take(WIDEST).collect();
    // Between bars, since spaces at the ends belong to it.
    let shown = one_line(&format!("|{shown}|"));
    let shown = shown[1..shown.len() - 1].to_owned();
    let width = shown.chars().count();
    let (start, end) = ((start - skipped).min(width), (end - skipped).min(width));
    let marks = format!("{}{}", " ".repeat(start), "^".repeat((end - start).max(1)));
    (shown, marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::Place;

    fn finding(source: &str, column: usize, end_column: usize) -> Finding {
        let place = Place {
            path: "train.py".into(),
            cell: None,
            line: 41,
            column,
            end_line: 41,
            end_column,
        };
        Finding {
            number: "V01",
            rule: "loss-with-graph",
            severity: Severity::Warning,
            place,
            message: "it costs".into(),
            hint: "mend it".into(),
            source: source.into(),
        }
    }

    #[test]
    fn a_finding_reads_as_a_compilers() {
        assert_eq!(
            lint(&finding("        total += loss", 9, 22), false),
            "train.py:41:9 warning[V01 loss-with-graph]: it costs\n  41 | total += loss\n     | \
             ^^^^^^^^^^^^^\nhint: mend it"
        );
    }

    #[test]
    fn a_long_line_is_cut_to_what_is_meant() {
        let source = format!("{}total += loss", "x".repeat(200));
        let text = lint(&finding(&source, 201, 214), false);
        assert!(text.contains("xtotal += loss\n"), "{text}");
        assert!(text.lines().all(|line| line.len() < 100));
    }

    #[test]
    fn colours_are_only_where_they_are_asked_for() {
        let found = finding("total += loss", 1, 14);
        assert!(lint(&found, true).contains("\u{1b}[1;33mwarning[V01 loss-with-graph]\u{1b}[0m"));
        assert!(!lint(&found, false).contains('\u{1b}'));
    }
}
