//! Writes a refusing stub for each entry point in `symbols/` that no source file defines.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=symbols");
    let mut defined = BTreeSet::new();
    for source in files(Path::new("src"), "rs")? {
        defined.extend(defined_functions(&fs::read_to_string(source)?));
    }
    let mut stubs = String::new();
    let mut names = Vec::new();
    for list in files(Path::new("symbols"), "txt")? {
        let text = fs::read_to_string(&list)?;
        for stub in stubs_of(&text, &defined) {
            let (name, line) =
                stub.map_err(|reason| io::Error::other(format!("{}: {reason}", list.display())))?;
            stubs.push_str(&line);
            names.push(name);
        }
    }
    names.sort();
    stubs.push_str(&format!("/// Every stub, in order.\nstatic NAMES: &[&str] = &{names:?};\n"));
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("stubs.rs"), stubs)
}

/// Files under `folder` whose name ends in `extension`, in a fixed order.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The names of all functions that `source` defines, exported or not; `fn [a, b](…)` defines several.
fn defined_functions(source: &str) -> impl Iterator<Item = String> {
    let mut pieces = source.split("fn ");
    let mut before = pieces.next().unwrap_or_default();
    pieces.flat_map(move |after| {
        let line = before.rsplit('\n').next().unwrap_or_default();
        before = after;
        let is_definition = line.split_whitespace().all(|word| {
            matches!(word, "pub" | "pub(crate)" | "pub(super)" | "unsafe" | "extern" | "\"C\"")
        });
        let names = after.strip_prefix('[').and_then(|list| list.split_once(']'));
        let names = names.or_else(|| after.split_once(['(', '<'])).filter(|_| is_definition);
        let names = names.map_or("", |(names, _)| names);
        names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
    })
}

/// A stub for each line of a list whose name is not in `defined`.
fn stubs_of(list: &str, defined: &BTreeSet<String>) -> Vec<Result<(String, String), String>> {
    let mut lines =
        list.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace());
    let status = lines.next().and_then(|mut words| {
        (words.next() == Some("refuse")).then(|| words.next()?.parse::<i32>().ok())?
    });
    let Some(status) = status else {
        return vec![Err("the first line must be `refuse STATUS NAME`".to_owned())];
    };
    lines
        .filter_map(|mut words| {
            let name = words.next()?;
            (!defined.contains(name))
                .then(|| stub(name, words, status).map(|text| (name.to_owned(), text)))
        })
        .collect()
}

/// One stub: `kind` of result first, then `index:bytes` of each argument to zero.
fn stub<'a>(
    name: &str,
    mut words: impl Iterator<Item = &'a str>,
    status: i32,
) -> Result<String, String> {
    let (result, answer) = match words.next() {
        Some("void") => ("()", "()".to_owned()),
        Some("pointer") => ("*mut u8", "std::ptr::null_mut()".to_owned()),
        Some("text") => {
            ("*const std::ffi::c_char", "c\"not supported by the virtual GPU\".as_ptr()".to_owned())
        }
        Some("float") => ("f64", "0.0".to_owned()),
        Some("size") => ("usize", "0".to_owned()),
        // A structure returned in a register begins with its status.
        Some("struct") => ("usize", status.to_string()),
        Some("status") => ("i32", status.to_string()),
        other => return Err(format!("`{name}` returns {other:?}")),
    };
    let mut zeroed = Vec::new();
    for word in words {
        let parsed = word.split_once(':').and_then(|(index, bytes)| {
            Some((index.parse::<usize>().ok()?, bytes.parse::<usize>().ok()?))
        });
        zeroed.push(parsed.ok_or_else(|| format!("`{name}` has the argument `{word}`"))?);
    }
    let arguments = zeroed.last().map_or(0, |(index, _)| index + 1);
    let parameters: Vec<String> = (0..arguments)
        .map(|index| {
            let used = zeroed.iter().any(|(zeroed, _)| *zeroed == index);
            format!("{}a{index}: usize", if used { "" } else { "_" })
        })
        .collect();
    let outputs: Vec<String> =
        zeroed.iter().map(|(index, bytes)| format!("(a{index}, {bytes})")).collect();
    let mut text = String::new();
    writeln!(
        text,
        "#[unsafe(no_mangle)]\nextern \"C\" fn {name}({}) -> {result} {{\n    \
         refuse({name:?}, &[{}]);\n    {answer}\n}}",
        parameters.join(", "),
        outputs.join(", "),
    )
    .map_err(|error| error.to_string())?;
    Ok(text)
}
