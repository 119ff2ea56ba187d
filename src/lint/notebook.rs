use serde::Deserialize;

/// A notebook as Jupyter writes it, as far as it is read.
#[derive(Deserialize)]
struct Document {
    cells: Vec<Cell>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Text,
}

/// One text, or one for each line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

#[derive(Default, Deserialize)]
struct Metadata {
    language_info: Option<Language>,
}

#[derive(Deserialize)]
struct Language {
    name: String,
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// Cell magics after which the cell is still Python.
const AROUND_PYTHON: &[&str] = &["time", "timeit", "capture", "prun"];

/// The code of a notebook as one text, and of each of its cells the number, from 1, and the line of
/// the text that its first one is, from 0.
///
/// # Errors
/// Why it is no notebook of Python.
pub(super) fn code(json: &str) -> Result<(String, Vec<(usize, usize)>), String> {
    let document: Document = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if let Some(language) = document.metadata.language_info
        && !language.name.eq_ignore_ascii_case("python")
    {
        return Err(format!("its language is {}, not Python", language.name));
    }
    let (mut text, mut cells, mut line) = (String::new(), Vec::new(), 0);
    for (index, cell) in document.cells.iter().enumerate() {
        if cell.cell_type != "code" {
            continue;
        }
        let source = match &cell.source {
            Text::Whole(text) => text.clone(),
            Text::Lines(lines) => lines.concat(),
        };
        cells.push((index + 1, line));
        let source = without_cell_magic(&source);
        line += source.matches('\n').count() + 1;
        text += &source;
        text.push('\n');
    }
    Ok((text, cells))
}

/// A cell without its `%%` line, or an empty one where that hands it to another language.
fn without_cell_magic(source: &str) -> String {
    let (first, rest) = source.split_once('\n').unwrap_or((source, ""));
    match first.trim_start().strip_prefix("%%").and_then(|it| it.split_whitespace().next()) {
        None => source.to_owned(),
        Some(magic) if AROUND_PYTHON.contains(&magic) => format!("\n{rest}"),
        Some(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cells_keep_their_numbers_and_lines() {
        let json = r##"{"metadata": {"language_info": {"name": "python"}}, "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "source": ["%%time\n", "x = 1\n", "y = 2"]},
            {"cell_type": "code", "source": "%%bash\nls"},
            {"cell_type": "code", "source": "z = 3"}]}"##;
        let (text, cells) = code(json).unwrap();
        assert_eq!(text, "\nx = 1\ny = 2\n\nz = 3\n");
        assert_eq!(cells, [(2, 0), (3, 3), (4, 4)]);
    }

    #[test]
    fn a_notebook_of_another_language_is_named() {
        let json = r#"{"metadata": {"language_info": {"name": "R"}}, "cells": []}"#;
        assert_eq!(code(json).unwrap_err(), "its language is R, not Python");
        assert!(code("[]").is_err());
    }
}
