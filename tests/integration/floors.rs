//! Holds the picture in `lib.rs`: a module uses its own floor and those below, never one above.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up.
const FLOORS: &[&[&str]] = &[
    &["units", "error", "destination"],
    &["lint", "profile", "snapshot"],
    &["workload"],
    &["measurement", "device", "survey"],
    &["probe"],
    &["doctor", "equivalence", "replay", "watch"],
    &["solve", "plan", "comparison"],
    &["report", "export"],
    &["cli"],
];

#[test]
fn no_module_uses_one_of_a_higher_floor() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(module) = module_of(&path) else { continue };
        let own = floor(&module).unwrap_or_else(|| panic!("`{module}` stands on no floor"));
        for used in uses(&text) {
            match floor(&used) {
                Some(other) if other <= own => {}
                Some(_) => wrong.push(format!("{} uses `{used}`", path.display())),
                None => wrong.push(format!("{} uses unknown `{used}`", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_stand_in_floor_order_in_lib() {
    let text = fs::read_to_string(source_folder().join("lib.rs")).unwrap();
    let declared: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(|module| floor(module).unwrap_or_else(|| panic!("`{module}` stands on no floor")))
        .collect();
    assert!(declared.is_sorted(), "{declared:?}");
}

#[test]
fn nothing_in_src_is_unsafe() {
    let found = lines_with(|line| words(line).any(|word| word == "unsafe"), &[]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_the_output_module_prints() {
    let prints = |line: &str| {
        ["println!", "print!", "eprintln!", "eprint!", "io::stdout(", "io::stderr("]
            .iter()
            .any(|call| line.contains(call))
    };
    let found = lines_with(prints, &["cli/output.rs"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::units::Bytes;\nuse crate::{error::Error, plan::{Plan, Note}, probe};\n\
                fn f(x: crate::report::Report) {}\nuse crate::device::{self, Device};\n\
                //! [`crate::cli`] is only prose\n";
    let expected = ["device", "error", "plan", "probe", "report", "units"];
    assert_eq!(uses(text).into_iter().collect::<Vec<_>>(), expected);
}

/// The modules of this crate that a file names by path.
fn uses(text: &str) -> BTreeSet<String> {
    let code: String = code_lines(text).map(|(_, line)| format!("{line}\n")).collect();
    let mut found = BTreeSet::new();
    for (start, _) in code.match_indices("crate::") {
        let path = code[start + "crate::".len()..].trim_start();
        match path.strip_prefix('{') {
            Some(group) => found.extend(heads(group)),
            None => found.extend(words(path).next().map(str::to_owned)),
        }
    }
    found
}

/// The first names of the paths in a `{…}` group, of which `group` is what follows the brace.
fn heads(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut paths = vec![String::new()];
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => paths.push(String::new()),
            _ => {}
        }
        if let (0, Some(path)) = (depth, paths.last_mut()) {
            path.push(character);
        }
    }
    paths.iter().filter_map(|path| words(path).next().map(str::to_owned)).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The module of the crate's root that a file belongs to; none for `lib.rs` and `main.rs`.
fn module_of(path: &Path) -> Option<String> {
    let first = path.iter().next()?.to_str()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (!["lib", "main"].contains(&module)).then(|| module.to_owned())
}

/// `path:line` of the code lines that are as asked, outside the files in `allowed`.
fn lines_with(is: impl Fn(&str) -> bool, allowed: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        if allowed.iter().any(|file| path == Path::new(file)) {
            continue;
        }
        for (number, line) in code_lines(&text).filter(|(_, line)| is(line)) {
            found.push(format!("src/{}:{number}: {line}", path.display()));
        }
    }
    found
}

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Every file of `src`, by its path below it.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![source_folder()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(source_folder()).unwrap().to_owned(), text));
            }
        }
    }
    assert!(files.len() > 10, "only {} files found", files.len());
    files
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
