//! SARIF 2.1.0, which code hosts read findings from:
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use serde_json::{Value, json};

use crate::lint::{Finding, RULES, Severity};

/// Findings, and what could not be read, as one run of vramfit.
pub fn sarif(findings: &[Finding], unread: &[String]) -> Value {
    let rules: Vec<_> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.number,
                "name": rule.name,
                "shortDescription": { "text": rule.summary },
                "defaultConfiguration": { "level": level(rule.severity) },
            })
        })
        .collect();
    let notifications: Vec<_> = unread
        .iter()
        .map(|reason| json!({ "level": "error", "message": { "text": reason } }))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "vramfit",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let place = &finding.place;
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&place.path) },
            "region": {
                "startLine": place.line,
                "startColumn": place.column,
                "endLine": place.end_line,
                "endColumn": place.end_column,
                "snippet": { "text": finding.source },
            },
        },
    });
    if let Some(cell) = place.cell {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": format!("cell {cell}") }]);
    }
    json!({
        "ruleId": finding.number,
        "ruleIndex": RULES.iter().position(|rule| rule.number == finding.number),
        "level": level(finding.severity),
        "message": { "text": format!("{}. Hint: {}", finding.message, finding.hint) },
        "locations": [location],
    })
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

/// A path as a URI reference: what RFC 3986 does not let stand in a path is written in hexadecimal.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.trim_start_matches("./").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri += &format!("%{other:02X}"),
        }
    }
    match uri.starts_with('/') {
        true => format!("file://{uri}"),
        false => uri,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("./src/my train.py"), "src/my%20train.py");
        assert_eq!(uri("/tmp/a.py"), "file:///tmp/a.py");
        assert_eq!(uri("ü.py"), "%C3%BC.py");
    }
}
