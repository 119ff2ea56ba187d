use std::fs;
use std::io::{self, Read};
use std::path::Path;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, PySourceType};
use ruff_python_parser::Parsed;
use ruff_text_size::{Ranged as _, TextRange};

use super::finding::Place;
use super::notebook;
use crate::error::{Error, ErrorKind};

/// A script or notebook that was read, not yet understood.
#[derive(Debug)]
pub struct Source {
    /// As it was given.
    name: String,
    text: String,
    /// Byte offsets of the lines.
    lines: Vec<usize>,
    /// Number and first line of each cell of code; none of a script.
    cells: Option<Vec<(usize, usize)>>,
}

impl Source {
    /// A script, or, by its name, a notebook.
    ///
    /// # Errors
    /// When it cannot be read, or is no notebook.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = |source| ErrorKind::Unreadable { path: path.to_owned(), source };
        let text = text(fs::read(path).map_err(unreadable)?).map_err(unreadable)?;
        let name = path.display().to_string();
        match is_notebook(path) {
            true => Self::notebook(name, &text),
            false => Ok(Self::script(name, text)),
        }
    }

    /// What comes in from elsewhere, such as standard input, called `-`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn from_reader(name: &str, mut reader: impl Read) -> Result<Self, Error> {
        let unreadable = |source| ErrorKind::Unreadable { path: name.into(), source };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(Self::script(name.to_owned(), text(bytes).map_err(unreadable)?))
    }

    /// A script's text.
    pub fn script(name: String, text: String) -> Self {
        let lines = lines(&text);
        Self { name, text, lines, cells: None }
    }

    fn notebook(name: String, json: &str) -> Result<Self, Error> {
        let (text, cells) = notebook::code(json)
            .map_err(|reason| ErrorKind::BrokenNotebook { path: name.clone().into(), reason })?;
        let lines = lines(&text);
        Ok(Self { name, text, lines, cells: Some(cells) })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// # Errors
    /// Where it is no Python, with what to do where it is Python 2.
    pub(super) fn parse(&self) -> Result<Parsed<ModModule>, Error> {
        let kind = match self.cells {
            Some(_) => PySourceType::Ipynb,
            None => PySourceType::Python,
        };
        let parsed = ruff_python_parser::parse_unchecked_source(&self.text, kind);
        let Some(error) = parsed.errors().first() else { return Ok(parsed) };
        let place = self.place(error.location);
        let line = self.line(&place);
        let looks_old = ["print ", "exec "].iter().any(|it| line.trim_start().starts_with(it))
            || line.trim_start().starts_with("except ") && line.contains(',');
        let broken = Error::new(ErrorKind::BrokenScript {
            place: place.start(),
            reason: lower_first(&error.error.to_string()),
        });
        Err(if line.contains("async=") {
            broken.hint(
                "`async` is a keyword since Python 3.7; of `cuda` and `to` it is `non_blocking`",
            )
        } else if looks_old {
            broken.hint("it looks like Python 2; `2to3 -w FILE` translates it")
        } else {
            broken
        })
    }

    /// Where a part of the text stands.
    pub(super) fn place(&self, range: TextRange) -> Place {
        let (first, column) = self.position(range.start().to_usize());
        let (end, end_column) = self.position(range.end().to_usize());
        let cell = self
            .cells
            .as_ref()
            .and_then(|cells| cells.iter().rev().find(|(_, line)| *line <= first).copied());
        let above = cell.map_or(0, |(_, line)| line);
        Place {
            path: self.name.clone(),
            cell: cell.map(|(number, _)| number),
            line: first - above + 1,
            column: column + 1,
            end_line: end.max(first) - above + 1,
            end_column: end_column + 1,
        }
    }

    /// The line a place begins in, without its end.
    pub(super) fn line(&self, place: &Place) -> &str {
        let above = match (&self.cells, place.cell) {
            (Some(cells), Some(number)) => {
                cells.iter().find(|(it, _)| *it == number).map_or(0, |(_, line)| *line)
            }
            _ => 0,
        };
        self.text.lines().nth(above + place.line - 1).unwrap_or_default()
    }

    /// Line and column of an offset, from 0.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|&start| start <= offset).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or_default();
        let before = self.text.get(start..offset).unwrap_or_default();
        (line, before.chars().count())
    }

    /// The line, from 0, of an offset.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.position(offset).0
    }

    /// The comments, each with its line, from 0, and whether nothing else stands in it.
    pub(super) fn comments<'a>(
        &'a self,
        parsed: &'a Parsed<ModModule>,
    ) -> impl Iterator<Item = Comment<'a>> {
        let comments = parsed.tokens().iter().filter(|it| it.kind() == TokenKind::Comment);
        comments.map(|token| {
            let start = token.start().to_usize();
            let line = self.line_of(start);
            let before = &self.text[self.lines[line]..start];
            Comment {
                text: &self.text[start..token.end().to_usize()],
                line,
                alone: before.trim().is_empty(),
            }
        })
    }
}

/// A comment of a script.
#[derive(Debug)]
pub(super) struct Comment<'a> {
    pub(super) text: &'a str,
    /// From 0.
    pub(super) line: usize,
    /// Nothing else stands in its line.
    pub(super) alone: bool,
}

/// Whether a path names a notebook.
pub(super) fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "ipynb")
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Where the lines begin.
fn lines(text: &str) -> Vec<usize> {
    let after_ends = text.match_indices('\n').map(|(end, _)| end + 1);
    std::iter::once(0).chain(after_ends).collect()
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|it| it.to_lowercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}
