use std::ffi::OsString;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placeholder::{Hole, Part, Variable, parts};
use super::{Checkpointing, Precision};
use crate::error::{Error, ErrorKind, shorten};

/// Characters of a command that are shown where it is only named.
const SHOWN: usize = 60;

/// A command that trains, with placeholders for what is varied; docs/command.md describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Program and arguments, with their placeholders.
    pub words: Vec<String>,
    /// The folder it is run in, absolute.
    pub folder: PathBuf,
    /// What it reads from its environment (`VRAMFIT_…`) rather than from placeholders.
    pub vary: Vec<Variable>,
}

/// What the placeholders of a command stand for in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// Samples in one micro-step.
    pub micro_batch: u32,
    /// Micro-steps in one optimizer step.
    pub accumulation: u32,
    /// In which precision the step computes.
    pub precision: Precision,
    /// Which blocks are checkpointed.
    pub checkpointing: Checkpointing,
    /// Tokens in one sample.
    pub sequence: Option<u32>,
    /// Optimizer steps to run; `None` leaves the placeholder.
    pub steps: Option<u32>,
}

impl Command {
    /// A command whose placeholders are all known.
    ///
    /// # Errors
    /// When one is mistyped, has texts that it cannot have, or none stands for the micro-batch.
    pub fn new(words: Vec<String>, folder: PathBuf, vary: Vec<Variable>) -> Result<Self, Error> {
        for word in &words {
            parts(word)?;
        }
        let command = Self { words, folder, vary };
        match command.varies(Variable::MicroBatch) {
            true => Ok(command),
            false => Err(ErrorKind::NothingToVary { command: command.name() }.into()),
        }
    }

    /// Whether something is for vramfit to set: by a placeholder, by a variable that the command
    /// names, or by one that is said to be read.
    pub fn varies(&self, variable: Variable) -> bool {
        let name = variable.environment();
        self.vary.contains(&variable)
            || self.holes().iter().any(|hole| hole.variable == variable)
            || self.words.iter().any(|word| names(word, &name))
    }

    /// The precisions that can be set; `None` if that is the command's own affair.
    pub fn precisions(&self) -> Option<Vec<Precision>> {
        let holes = self.holes();
        if let Some(hole) = holes.iter().find(|hole| hole.variable == Variable::Precision) {
            return Some(hole.precisions());
        }
        if self.varies(Variable::Precision) {
            return Some(Precision::ALL.to_vec());
        }
        let mixed = [(Variable::Bf16, Precision::Bf16), (Variable::Fp16, Precision::Fp16)];
        let mixed: Vec<_> = mixed.into_iter().filter(|(it, _)| self.varies(*it)).collect();
        (!mixed.is_empty()).then(|| {
            [Precision::Fp32].into_iter().chain(mixed.into_iter().map(|(_, it)| it)).collect()
        })
    }

    /// The kinds of checkpointing that can be set; `None` if that is the command's own affair.
    pub fn checkpointings(&self) -> Option<Vec<Checkpointing>> {
        self.varies(Variable::Checkpoint).then(|| vec![Checkpointing::None, Checkpointing::Full])
    }

    /// The words with everything filled in. One that was nothing but a placeholder for an optional
    /// text is left out where there is none.
    pub fn filled(&self, values: &Values) -> Vec<String> {
        self.words.iter().filter_map(|word| filled(word, values)).collect()
    }

    /// The variables that say the same.
    pub fn environment(&self, values: &Values) -> Vec<(OsString, OsString)> {
        let variables = Variable::ALL.into_iter();
        variables
            .filter_map(|it| Some((it.environment().into(), values.text(it)?.into())))
            .collect()
    }

    /// The shell's line that trains so.
    pub fn line(&self, values: &Values) -> String {
        let holes = self.holes();
        let by_environment = Variable::ALL.into_iter().filter(|variable| {
            self.varies(*variable) && !holes.iter().any(|hole| hole.variable == *variable)
        });
        let assignments = by_environment
            .filter_map(|it| Some(format!("{}={} ", it.environment(), values.text(it)?)));
        assignments.collect::<String>() + &quoted(&self.filled(values))
    }

    /// The processes that a launcher (`torchrun`) is asked to start on this machine, each with a GPU
    /// of its own.
    pub fn ranks(&self) -> Option<u32> {
        ranks(&self.words)
    }

    /// The command on one line, its program without its folder, shortened.
    pub fn name(&self) -> String {
        let mut words = self.words.clone();
        if let Some(program) = words.first_mut() {
            let name = Path::new(program.as_str()).file_name();
            *program = name.map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        }
        shorten(&quoted(&words), SHOWN)
    }

    fn holes(&self) -> Vec<Hole> {
        let words = self.words.iter();
        words
            .flat_map(|word| parts(word).unwrap_or_default())
            .filter_map(|part| match part {
                Part::Hole(hole) => Some(hole),
                Part::Text(_) => None,
            })
            .collect()
    }
}

impl Values {
    /// What a variable says in this run.
    pub(super) fn text(&self, variable: Variable) -> Option<String> {
        let Self { precision, checkpointing, .. } = *self;
        // What Python reads as a truth value, by `ast.literal_eval` and by argument parsers alike.
        let truth = |it: bool| if it { "True" } else { "False" }.to_owned();
        Some(match variable {
            Variable::MicroBatch => self.micro_batch.to_string(),
            Variable::Accumulation => self.accumulation.to_string(),
            Variable::Precision if precision == Precision::AsIs => return None,
            Variable::Precision => precision.name().to_owned(),
            Variable::Fp16 => truth(precision == Precision::Fp16),
            Variable::Bf16 => truth(precision == Precision::Bf16),
            Variable::Checkpoint => truth(checkpointing == Checkpointing::Full),
            Variable::Seq => self.sequence?.to_string(),
            Variable::Steps => self.steps?.to_string(),
        })
    }
}

/// The processes that `torchrun` is asked to start on this machine, if it is named and says so.
pub fn ranks(words: &[impl AsRef<str>]) -> Option<u32> {
    words.iter().enumerate().find_map(|(index, word)| {
        let next = words.get(index + 1).map(AsRef::as_ref);
        let (flag, value) = word.as_ref().split_once('=').or(Some((word.as_ref(), next?)))?;
        let is_count = flag.replace('_', "-") == "--nproc-per-node";
        is_count.then(|| value.parse().ok().filter(|count| *count > 0))?
    })
}

/// Words as a shell takes them.
pub fn quoted(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|it| it.is_alphanumeric() || "-_=+.,/:@%^{}|".contains(it))
    };
    let quoted = words.iter().map(|word| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn filled(word: &str, values: &Values) -> Option<String> {
    // It was understood when the command was made; a plan that was edited since stays as it is.
    let parts = parts(word).unwrap_or_else(|_| vec![Part::Text(word.to_owned())]);
    let optional = matches!(parts.as_slice(), [Part::Hole(hole)] if hole.is_optional());
    let text: String = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Hole(hole) => hole.text(values),
        })
        .collect();
    (!(optional && text.is_empty())).then_some(text)
}

/// Whether `word` names an environment variable, and no longer one that begins so.
fn names(word: &str, variable: &str) -> bool {
    word.match_indices(variable).any(|(start, found)| {
        let rest = &word[start + found.len()..];
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        let words = text.split(' ').map(str::to_owned).collect();
        Command::new(words, PathBuf::from("/"), Vec::new()).unwrap()
    }

    fn values(precision: Precision, checkpointing: Checkpointing) -> Values {
        Values {
            micro_batch: 8,
            accumulation: 2,
            precision,
            checkpointing,
            sequence: Some(512),
            steps: Some(2),
        }
    }

    const PLAIN: (Precision, Checkpointing) = (Precision::Fp32, Checkpointing::None);

    #[test]
    fn placeholders_are_filled_within_words() {
        let command = command("python t.py --bs={micro_batch} -a {accumulation} x{seq}x {steps}");
        let filled = command.filled(&values(PLAIN.0, PLAIN.1));
        assert_eq!(filled.join(" "), "python t.py --bs=8 -a 2 x512x 2");
    }

    #[test]
    fn an_optional_word_without_text_is_left_out() {
        let command = command("t {micro_batch} {bf16:--bf16} {checkpoint:--ckpt|--no-ckpt} {fp16}");
        let filled =
            |precision, checkpointing| command.filled(&values(precision, checkpointing)).join(" ");
        assert_eq!(filled(PLAIN.0, PLAIN.1), "t 8 --no-ckpt False");
        assert_eq!(filled(Precision::Bf16, Checkpointing::Full), "t 8 --bf16 --ckpt False");
        assert_eq!(filled(Precision::Fp16, Checkpointing::None), "t 8 --no-ckpt True");
    }

    #[test]
    fn a_precision_may_have_another_name_and_only_those_named_are_tried() {
        let command = command("t {micro_batch} {precision:fp32=32-true,bf16=bf16-mixed}");
        assert_eq!(command.precisions(), Some(vec![Precision::Fp32, Precision::Bf16]));
        let filled = command.filled(&values(Precision::Bf16, Checkpointing::None));
        assert_eq!(filled, ["t", "8", "bf16-mixed"]);
    }

    #[test]
    fn what_has_no_placeholder_is_not_varied() {
        let all = |text: &str| command(text).precisions().map_or(0, |it| it.len());
        assert_eq!(all("t {micro_batch}"), 0);
        assert_eq!(all("t {micro_batch} {bf16}"), 2);
        assert_eq!(all("t {micro_batch} {bf16} {fp16}"), 3);
        assert_eq!(all("t {micro_batch} {precision}"), 4);
        assert_eq!(command("t {micro_batch}").checkpointings(), None);
        assert!(command("t {micro_batch} {checkpoint}").checkpointings().is_some());
    }

    #[test]
    fn variables_of_the_environment_count_where_they_are_named_or_said_to_be_read() {
        let shell = command("sh -c t.py${IFS}$VRAMFIT_MICRO_BATCH");
        assert!(shell.varies(Variable::MicroBatch) && !shell.varies(Variable::Steps));
        let longer = Command::new(vec!["$VRAMFIT_MICRO_BATCHES".to_owned()], "/".into(), vec![]);
        assert!(longer.is_err());
        let said = Command::new(vec!["t".to_owned()], "/".into(), vec![Variable::MicroBatch]);
        let environment = said.unwrap().environment(&values(Precision::Bf16, Checkpointing::None));
        let text: Vec<_> = environment
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(
            text.join(" "),
            "VRAMFIT_MICRO_BATCH=8 VRAMFIT_ACCUMULATION=2 VRAMFIT_PRECISION=bf16 \
             VRAMFIT_FP16=False VRAMFIT_BF16=True VRAMFIT_CHECKPOINT=False VRAMFIT_SEQ=512 \
             VRAMFIT_STEPS=2"
        );
    }

    #[test]
    fn a_command_that_varies_nothing_or_is_mistyped_is_refused() {
        let refused = |text: &str| {
            let words = text.split(' ').map(str::to_owned).collect();
            Command::new(words, PathBuf::from("/"), Vec::new()).unwrap_err().to_string()
        };
        assert!(refused("python train.py").contains("micro-batch"));
        assert!(refused("t {micro_batch} {microbatch}").contains("`{microbatch}`"));
        assert!(refused("t {micro_batch:4}").contains("`{micro_batch:4}`"));
        assert!(refused("t {micro_batch} {precision:bf8=x}").contains("bf8"));
        assert!(refused("t {micro_batch} {bf16:|}").contains("the same either way"));
        assert!(refused("t {micro_batch} {precision:fp32=,bf16=}").contains("the same for fp32"));
        assert!(refused("t {micro_batch} {precision:fp32=a,fp32=b}").contains("fp32 twice"));
    }

    #[test]
    fn braces_that_are_none_of_ours_stay() {
        let command = command("t {micro_batch} {\"a\":1} {rank} ${HOME} {");
        let filled = command.filled(&values(PLAIN.0, PLAIN.1));
        assert_eq!(filled.join(" "), "t 8 {\"a\":1} {rank} ${HOME} {");
    }

    #[test]
    fn doubled_braces_are_the_text_of_a_placeholder() {
        let command = command("t {micro_batch} {epoch}-{{step}}.pt {{steps}} {{rank}} {{ steps }}");
        let filled = command.filled(&values(PLAIN.0, PLAIN.1));
        assert_eq!(filled.join(" "), "t 8 {epoch}-{step}.pt {steps} {{rank}} {{ steps }}");
        assert!(!command.varies(Variable::Steps));
    }

    #[test]
    fn torchrun_says_how_many_gpus_are_needed() {
        let ranks = |text: &str| ranks(&text.split(' ').collect::<Vec<_>>());
        assert_eq!(ranks("torchrun --nproc_per_node 2 ddp.py"), Some(2));
        assert_eq!(ranks("torchrun --nproc-per-node=4 ddp.py"), Some(4));
        assert_eq!(ranks("torchrun --nproc-per-node=gpu ddp.py"), None);
        assert_eq!(ranks("python train.py --nproc"), None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["sh", "-c", "echo 'a b'", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"sh -c 'echo '\''a b'\''' ''");
    }
}
