//! One kind of profile: the files built in, and a user's own that stand before them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::Dir;
use serde::de::DeserializeOwned;

use super::check::Check;
use crate::error::{Error, ErrorKind};

/// The profiles of one kind, by name. Files that are built in are parsed when they are asked for,
/// so that a command that needs one does not pay for all.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    /// `GPU` or `model`, for messages.
    what: &'static str,
    /// The subcommand that lists all.
    command: &'static str,
    built_in: BTreeMap<&'static str, (&'static Path, &'static str)>,
    own: BTreeMap<String, T>,
}

impl<T: Check + Clone + DeserializeOwned> Shelf<T> {
    pub(super) fn new(
        what: &'static str,
        command: &'static str,
        folder: Option<&'static Dir<'static>>,
    ) -> Self {
        let built_in = folder
            .into_iter()
            .flat_map(Dir::files)
            .filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"))
            .filter_map(|file| {
                let stem = file.path().file_stem()?.to_str()?;
                Some((stem, (file.path(), file.contents_utf8()?)))
            })
            .collect();
        Self { what, command, built_in, own: BTreeMap::new() }
    }

    /// Adds the user's own files, all of `folder/*.toml`; a folder that is not there is empty.
    ///
    /// They are parsed at once: a broken file is found even when another is asked for.
    pub(super) fn add_folder(&mut self, folder: &Path) -> Result<(), Error> {
        if !folder.is_dir() {
            return Ok(());
        }
        for path in toml_files(folder)? {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| ErrorKind::Unreadable { path: path.clone(), source })?;
            let profile: T = parse(&path, &text)?;
            self.own.insert(profile.name().to_owned(), profile);
        }
        Ok(())
    }

    /// All names, sorted, each once.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.built_in.keys().copied().chain(self.own.keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The profile named `name`, or an error that tells the nearest name.
    pub(super) fn get(&self, name: &str) -> Result<T, Error> {
        if let Some(profile) = self.own.get(name) {
            return Ok(profile.clone());
        }
        match self.built_in.get(name) {
            Some((path, text)) => parse(path, text),
            None => Err(self.unknown(name)),
        }
    }

    /// All profiles, sorted by name.
    pub(super) fn all(&self) -> Result<Vec<T>, Error> {
        self.names().into_iter().map(|name| self.get(name)).collect()
    }

    fn unknown(&self, name: &str) -> Error {
        let names = self.names();
        let list = format!("`vramfit {}` lists all {}", self.command, names.len());
        let hint = match nearest(name, &names) {
            Some(nearest) => format!("did you mean `{nearest}`? {list}"),
            None => list,
        };
        Error::new(ErrorKind::UnknownName { what: self.what, name: name.to_owned() }).hint(hint)
    }
}

/// The name most like `name`, if one is like it at all: people drop dashes, leave out the size, swap
/// words and mistype. The shortest name that holds all that was typed comes first.
fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    const ALIKE: f64 = 0.8;
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(name);
    let holds = |candidate: &&&str| !wanted.is_empty() && plain(candidate).contains(&wanted);
    let holder = names.iter().filter(holds).min_by_key(|candidate| candidate.len());
    let alike = || {
        names
            .iter()
            .map(|candidate| (strsim::jaro_winkler(&wanted, &plain(candidate)), candidate))
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, candidate)| candidate)
    };
    holder.or_else(alike).copied()
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |source| ErrorKind::Unreadable { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn parse<T: Check + DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    let bad = |line, reason| ErrorKind::BadProfile { path: path.to_owned(), line, reason };
    let profile: T = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        bad(line, error.message().replace('\n', ", "))
    })?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if profile.name() != stem {
        return Err(
            bad(None, format!("its name is `{}`, not that of the file", profile.name())).into()
        );
    }
    match profile.contradiction() {
        Some(reason) => Err(bad(None, reason).into()),
        None => Ok(profile),
    }
}
