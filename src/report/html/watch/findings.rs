//! What was found: what it is, how it is known, what to do.

use maud::{Markup, html};

use super::super::plot::percent;
use super::super::scale::Scale;
use crate::units::duration;
use crate::watch::Finding;

/// Each finding with its letter, by which charts name it.
pub(super) fn list(findings: &[Finding]) -> Markup {
    html! {
        @for (finding, letter) in findings.iter().zip('A'..='Z') {
            article .finding {
                h3 { span .letter { (letter) } (finding.headline()) }
                p .note {
                    (format!("{:.0}", finding.confidence * 100.0)) " % sure, seen from "
                    (time(finding.from)) " to " (time(finding.until))
                    @if let Some(pid) = finding.pid { " in process " (pid) }
                }
                ul .notes { @for line in finding.evidence() { li { (line) } } }
                @let remedies = finding.remedies();
                @if !remedies.is_empty() {
                    h4 { "What to do" }
                    ol .notes { @for line in remedies { li { (line) } } }
                }
            }
        }
    }
}

/// The time of each, behind a chart over time.
pub(super) fn ranges(findings: &[Finding], time: Scale) -> Markup {
    html! {
        @for (finding, letter) in findings.iter().zip('A'..='Z') {
            @let from = time.place(finding.from);
            // What was seen at one moment can be seen too.
            @let width = (time.place(finding.until) - from).max(0.4);
            g .found {
                rect x=(percent(from)) width=(percent(width)) height="100%" {}
                text x=(percent(from + width / 2.0)) y="0" dy="-4" text-anchor="middle" { (letter) }
            }
        }
    }
}

fn time(seconds: f64) -> String {
    if seconds > 0.0 { duration(seconds, 3) } else { "the start".to_owned() }
}
