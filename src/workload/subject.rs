use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Command;
use crate::profile::model::{Architecture, ModelProfile};

/// Whose model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// One of a profile, which the Rust worker builds.
    #[serde(rename = "model")]
    BuiltIn(ModelProfile),
    /// The user's own, which a function in Python returns.
    Function(Function),
    /// A command of the user's, which is run as it is.
    Command(Command),
}

/// A Python function that returns what is to be trained; docs/workload.md describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The file it is in, absolute.
    pub file: PathBuf,
    /// Its name there.
    pub name: String,
    /// The Python that runs it: a path, or a name that is looked for in `PATH`.
    pub python: PathBuf,
}

impl Subject {
    /// What it is called: the profile's name, or `train.py:workload`.
    pub fn name(&self) -> String {
        match self {
            Self::BuiltIn(model) => model.name.clone(),
            Self::Function(function) => format!("{}:{}", function.file_name(), function.name),
            Self::Command(command) => format!("`{}`", command.name()),
        }
    }

    /// The built-in model, if it is one.
    pub fn built_in(&self) -> Option<&ModelProfile> {
        match self {
            Self::BuiltIn(model) => Some(model),
            Self::Function(_) | Self::Command(_) => None,
        }
    }

    /// The user's function, if it is one.
    pub fn function(&self) -> Option<&Function> {
        match self {
            Self::BuiltIn(_) | Self::Command(_) => None,
            Self::Function(function) => Some(function),
        }
    }

    /// The user's command, if it is one.
    pub fn command(&self) -> Option<&Command> {
        match self {
            Self::BuiltIn(_) | Self::Function(_) => None,
            Self::Command(command) => Some(command),
        }
    }

    /// Processes on one machine that train together, each on a GPU of its own.
    pub fn ranks(&self) -> u32 {
        self.command().and_then(Command::ranks).unwrap_or(1)
    }

    /// Whether it is known from its profile to have batch norm.
    pub fn has_batch_norm(&self) -> bool {
        self.built_in().is_some_and(|model| matches!(model.architecture, Architecture::Resnet(_)))
    }
}

impl Function {
    /// The last part of the file's path.
    pub fn file_name(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str());
        Path::new(name).display().to_string()
    }
}
