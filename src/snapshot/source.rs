//! What a line of a Python file says of the call that stands there, by reading the file.

use std::collections::HashMap;
use std::fs;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextSize};

use super::Frame;

/// Larger files are not looked into.
const MOST: u64 = 4 << 20;

/// Files of Python by path, read as they are asked for.
#[derive(Debug, Default)]
pub(super) struct Sources {
    files: HashMap<String, Option<Source>>,
}

#[derive(Debug)]
struct Source {
    text: String,
    /// Where each line begins, and the end.
    lines: Vec<TextSize>,
    statements: Vec<Stmt>,
}

impl Sources {
    /// The class in whose text a frame's line stands.
    pub(super) fn class(&mut self, frame: &Frame) -> Option<String> {
        let source = self.source(&frame.file)?;
        let mut search = Classes { at: source.begin(frame.line)?, found: None };
        search.visit_body(&source.statements);
        search.found
    }

    /// The function that a frame's line calls, where it calls just one.
    pub(super) fn call(&mut self, frame: &Frame) -> Option<String> {
        let source = self.source(&frame.file)?;
        let (begin, end) = (source.begin(frame.line)?, source.begin(frame.line + 1)?);
        let mut search = Calls { begin, end, found: Vec::new() };
        search.visit_body(&source.statements);
        search.found.dedup();
        match search.found.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// A frame's line, without its indentation.
    pub(super) fn line(&mut self, frame: &Frame) -> Option<String> {
        let source = self.source(&frame.file)?;
        let (begin, end) = (source.begin(frame.line)?, source.begin(frame.line + 1)?);
        let text = source.text.get(usize::from(begin)..usize::from(end))?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn source(&mut self, path: &str) -> Option<&Source> {
        let known = self.files.entry(path.to_owned());
        known.or_insert_with_key(|path| Source::read(path)).as_ref()
    }
}

impl Source {
    fn read(path: &str) -> Option<Self> {
        if fs::metadata(path).ok().filter(|it| it.is_file())?.len() > MOST {
            return None;
        }
        let text = fs::read_to_string(path).ok()?;
        let statements = parse_module(&text).ok()?.into_syntax().body;
        let ends = text.char_indices().filter(|(_, letter)| *letter == '\n');
        let begins = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).chain([text.len()]);
        let lines = begins.filter_map(|at| TextSize::try_from(at).ok()).collect();
        Some(Self { text, lines, statements: statements.into_iter().collect() })
    }

    fn begin(&self, line: u32) -> Option<TextSize> {
        self.lines.get(line.checked_sub(1)? as usize).copied()
    }
}

struct Classes {
    at: TextSize,
    found: Option<String>,
}

impl<'a> StatementVisitor<'a> for Classes {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !statement.range().contains(self.at) {
            return;
        }
        if let Stmt::ClassDef(class) = statement {
            self.found = Some(class.name.to_string());
        }
        walk_stmt(self, statement);
    }
}

struct Calls {
    begin: TextSize,
    end: TextSize,
    found: Vec<String>,
}

impl<'a> Visitor<'a> for Calls {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && (self.begin..self.end).contains(&call.start())
        {
            match call.func.as_ref() {
                Expr::Name(name) => self.found.push(name.id.to_string()),
                Expr::Attribute(attribute) => self.found.push(attribute.attr.to_string()),
                _ => {}
            }
        }
        walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import torch\n\nclass Outer:\n    class Inner:\n        def forward(self, x):\n            \
                        return F.linear(x, self.w)\n\n    def forward(self, x):\n        return a(b(x))\n";

    #[test]
    fn a_line_tells_its_class_and_its_only_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.py");
        fs::write(&path, TEXT).unwrap();
        let mut sources = Sources::default();
        let mut at = |line| {
            let file = path.to_str().unwrap().to_owned();
            let frame = Frame { file, line, function: "forward".to_owned() };
            (sources.class(&frame), sources.call(&frame))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(at(6), (some("Inner"), some("linear")));
        assert_eq!(at(9), (some("Outer"), None), "two calls");
        assert_eq!(at(1), (None, None));
        assert_eq!(at(99), (None, None));
    }

    #[test]
    fn a_file_that_is_gone_or_no_python_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.py");
        fs::write(&path, "class (:\n").unwrap();
        let mut sources = Sources::default();
        for file in [path.to_str().unwrap(), "/nonexistent.py", "<string>", "/"] {
            let frame = Frame { file: file.to_owned(), line: 1, function: String::new() };
            assert_eq!((sources.class(&frame), sources.call(&frame)), (None, None), "{file}");
        }
    }
}
