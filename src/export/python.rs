//! Frameworks that are told by a Python module.

use super::template::Facts;
use super::{Artefact, Exporter, Recommended, facts};

/// A framework and the template of its module.
#[derive(Debug)]
pub(super) struct Python {
    name: &'static str,
    about: &'static str,
    template: &'static str,
    /// Who spreads the samples over GPUs.
    shards: Shards,
}

/// Who spreads the samples over GPUs, where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shards {
    /// The loader that we write.
    Loader,
    /// The framework, by its own sampler, which knows micro-batches of one size only.
    FrameworkBySamples,
    /// The framework, by giving each process every n-th micro-batch.
    FrameworkByBatches,
}

pub(super) static PYTORCH: Python = Python {
    name: "pytorch",
    about: "a Python module with the training step",
    template: include_str!("templates/pytorch.py"),
    shards: Shards::Loader,
};

pub(super) static TRANSFORMERS: Python = Python {
    name: "hf",
    about: "a Python module with `TrainingArguments` of Hugging Face transformers",
    template: include_str!("templates/hf.py"),
    shards: Shards::FrameworkBySamples,
};

pub(super) static ACCELERATE: Python = Python {
    name: "accelerate",
    about: "a Python module with the training step for Hugging Face accelerate",
    template: include_str!("templates/accelerate.py"),
    shards: Shards::FrameworkByBatches,
};

pub(super) static LIGHTNING: Python = Python {
    name: "lightning",
    about: "a Python module with a Lightning `Trainer` and its loader",
    template: include_str!("templates/lightning.py"),
    shards: Shards::FrameworkBySamples,
};

/// Templates that go into others, each with what must hold for it.
const PARTS: [(&str, &str, &str); 5] = [
    ("constants", include_str!("templates/constants.py"), ""),
    ("loader", include_str!("templates/loader.py"), ""),
    ("optimizer", include_str!("templates/optimizer.py"), "!own"),
    ("checkpoint_blocks", include_str!("templates/checkpoint_blocks.py"), "checkpoint"),
    ("count_samples", include_str!("templates/count_samples.py"), "accumulate"),
];

impl Exporter for Python {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn render(&self, recommended: Recommended<'_>) -> Artefact {
        let mut facts = facts::of(recommended);
        self.sizes(&mut facts);
        for (name, template, condition) in PARTS {
            if facts.holds(condition) {
                let part = facts.fill(template);
                facts.parts.insert(name, part);
            }
        }
        let text = without_wide_gaps(&without_unused_imports(&facts.fill(self.template)));
        Artefact { text, remarks: Vec::new() }
    }
}

impl Python {
    /// Where the sizes of a step's micro-batches stand, for one GPU and for what the loader sees.
    fn sizes(&self, facts: &mut Facts) {
        let (remainder, distributed) = (facts.holds("remainder"), facts.holds("distributed"));
        let sizes = if remainder { "SIZES" } else { "[MICRO_BATCH] * MICRO_STEPS" };
        let loader_sizes = match self.shards {
            Shards::FrameworkByBatches if distributed => {
                "[size for size in SIZES for _ in range(WORLD_SIZE)]"
            }
            _ => "SIZES",
        };
        facts.values.insert("sizes", sizes.to_owned());
        facts.values.insert("loader_sizes", loader_sizes.to_owned());
        let sharded = match self.shards {
            Shards::Loader => distributed,
            Shards::FrameworkBySamples => distributed && remainder,
            Shards::FrameworkByBatches => false,
        };
        if sharded {
            facts.flags.insert("sharded");
        }
    }
}

/// Leaves out what is imported and not used: templates import whatever any plan needs.
fn without_unused_imports(module: &str) -> String {
    let is_import = |line: &str| line.starts_with("import ") || line.starts_with("from ");
    // What the text at the head of a module says is no use.
    let head = module.lines().skip(1).position(|line| line == "\"\"\"").map_or(0, |end| end + 2);
    let code: Vec<_> = module
        .lines()
        .skip(head)
        .filter(|line| !is_import(line) && !line.starts_with('#'))
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    let is_used = |name: &&str| {
        let bound = name.rsplit(" as ").next().unwrap_or(name);
        code.contains(&bound)
    };
    let kept = module.lines().enumerate().filter_map(|(index, line)| {
        if index < head || !is_import(line) {
            return Some(line.to_owned());
        }
        let (start, names) = line.split_once("import ")?;
        let names: Vec<_> = names.split(", ").filter(is_used).collect();
        (!names.is_empty()).then(|| format!("{start}import {}", names.join(", ")))
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// At most two empty lines in a row, and none at the end.
fn without_wide_gaps(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let gap = lines.iter().rev().take_while(|line| line.is_empty()).count();
        if !line.is_empty() || gap < 2 {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned()
}
