use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a thought; may be meant so.
    Note,
    /// Costs memory, or changes what is learnt.
    Warning,
    /// Cannot be meant so.
    Error,
}

impl Severity {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where something stands. Lines and columns count from 1, columns in Unicode characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file as it was given; `-` is standard input.
    pub path: String,
    /// The cell of a notebook, counted from 1 over all its cells; lines are then those of the cell.
    pub cell: Option<usize>,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The line where it ends.
    pub end_line: usize,
    /// The column after its last character.
    pub end_column: usize,
}

impl Place {
    /// `train.py:41:9`, or `train.ipynb:cell 3:41:9`.
    pub fn start(&self) -> String {
        match self.cell {
            Some(cell) => format!("{}:cell {cell}:{}:{}", self.path, self.line, self.column),
            None => format!("{}:{}:{}", self.path, self.line, self.column),
        }
    }
}

/// One trap in one script.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The rule's number, as `V01`.
    pub number: &'static str,
    /// The rule's name.
    pub rule: &'static str,
    /// How bad it is here.
    pub severity: Severity,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What is wrong, and what it costs.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// The line of `place`, without its line end.
    pub source: String,
}
