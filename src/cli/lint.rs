//! `vramfit lint`.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use super::args::LintArgs;
use super::output::{self, Output};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::lint::{Finding, RULES, Selection, Source, lint, scripts};
use crate::report;
use crate::report::LintDocument;

/// The parser and the rules go as deep as a script nests.
const STACK: usize = 256 << 20;

pub(super) fn run(args: &LintArgs, output: &Output) -> Result<ExitStatus, Error> {
    if args.rules {
        output.data(&rules())?;
        return Ok(ExitStatus::Done);
    }
    let selection = Selection::of(&args.select, &args.ignore)?;
    let files = files(&args.paths)?;
    let (findings, failures) = on_deep_stack(|| all(&files, &selection))?;
    let unread: Vec<_> = failures.iter().map(ToString::to_string).collect();
    let document = LintDocument::new(files.len() - failures.len(), findings, unread);
    if args.json {
        output.json(&document)?;
    } else if args.sarif {
        output.json(&report::sarif(&document.findings, &document.unread))?;
    } else if !document.findings.is_empty() {
        let colours = output.colours();
        let texts: Vec<_> =
            document.findings.iter().map(|finding| report::lint(finding, colours)).collect();
        output.data(&texts.join("\n\n"))?;
    }
    for failure in &failures {
        output.error(failure);
    }
    output.say(&document.summary.words());
    Ok(match (failures.is_empty(), document.summary.is_clean()) {
        (false, _) => ExitStatus::BadInput,
        (true, false) => ExitStatus::DoesNotFit,
        (true, true) => ExitStatus::Done,
    })
}

fn rules() -> String {
    let rows = RULES.iter().map(|rule| {
        vec![
            rule.number.to_owned(),
            rule.name.to_owned(),
            rule.severity.name().to_owned(),
            rule.summary.to_owned(),
        ]
    });
    output::table(&["", "name", "mostly", "looks for"], 0..0, rows)
}

/// The files to read, of which there is one at least.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let files = scripts(paths)?;
    match (files.is_empty(), paths.first()) {
        (true, Some(folder)) => Err(ErrorKind::NoScripts { path: folder.clone() }.into()),
        _ => Ok(files),
    }
}

/// What is found in all of them; one that cannot be read does not keep the others back.
fn all(files: &[PathBuf], selection: &Selection) -> (Vec<Finding>, Vec<Error>) {
    let (mut findings, mut failures) = (Vec::new(), Vec::new());
    for file in files {
        let source = match file.as_path() == Path::new("-") {
            true => Source::from_reader("-", io::stdin().lock()),
            false => Source::read(file),
        };
        match source.and_then(|source| lint(&source, selection)) {
            Ok(found) => findings.extend(found),
            Err(error) => failures.push(error),
        }
    }
    (findings, failures)
}

fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|source| ErrorKind::NoThread { source })?;
        worker.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
