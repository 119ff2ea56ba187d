use std::path::PathBuf;

use clap::Args;

const LINT_EXAMPLES: &str = "\
Examples:
  vramfit lint train.py
  vramfit lint src notebooks/finetune.ipynb --ignore plain-loader
  vramfit lint . --sarif > vramfit.sarif
  git show HEAD:train.py | vramfit lint -

A comment `# vramfit: ignore[loss-with-graph]`, in the line or above it, keeps a finding back.

Exit status: 0 nothing but notes; 1 warnings or errors; 2 something cannot be read, or is no Python 3.";

/// Find traps in training scripts that cost memory, or the right gradient
///
/// Reads scripts and notebooks, and runs nothing: losses kept with their graphs, evaluation with
/// gradients on, accumulation that does not accumulate, and the like. docs/lint.md shows each rule.
#[derive(Debug, Args)]
#[command(after_help = LINT_EXAMPLES)]
pub(in crate::cli) struct LintArgs {
    /// Scripts, notebooks, folders of them, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "rules")]
    pub(in crate::cli) paths: Vec<PathBuf>,

    /// Look for these rules alone, by name or number, separated by commas
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub(in crate::cli) select: Vec<String>,

    /// Leave these rules out
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub(in crate::cli) ignore: Vec<String>,

    /// List the rules
    #[arg(long, exclusive = true, help_heading = "Rules")]
    pub(in crate::cli) rules: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "sarif", help_heading = "Output")]
    pub(in crate::cli) json: bool,

    /// Print SARIF 2.1.0, which code hosts read
    #[arg(long, help_heading = "Output")]
    pub(in crate::cli) sarif: bool,
}
