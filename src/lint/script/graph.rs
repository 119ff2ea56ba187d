use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall};

use super::{Gradients, How, Script};
use crate::lint::python::{called, last, path, receiver};
use crate::lint::tree::Id;

/// Whether a value holds the graph that it was computed by; the more certain, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lint) enum Graph {
    /// A plain number, or a tensor without a graph.
    No,
    /// It comes from where it cannot be seen.
    Unknown,
    /// What a model gave.
    Output,
    /// A loss.
    Loss,
}

/// Methods, and functions of torch, whose result has no graph.
const WITHOUT: &[&str] = &[
    "item",
    "detach",
    "detach_",
    "numpy",
    "tolist",
    "argmax",
    "argmin",
    "size",
    "dim",
    "numel",
    "eq",
    "ne",
    "data_ptr",
    "float64",
    "no_grad",
    "long",
    "int",
    "bool",
    "zeros_like",
    "ones_like",
    "isnan",
    "isfinite",
];

/// Those whose result has the graph of what they are given.
const WITH: &[&str] = &[
    "abs",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "double",
    "exp",
    "expand",
    "flatten",
    "float",
    "half",
    "log",
    "log_softmax",
    "mean",
    "neg",
    "permute",
    "pow",
    "relu",
    "reshape",
    "sigmoid",
    "softmax",
    "sqrt",
    "squeeze",
    "sum",
    "tanh",
    "to",
    "transpose",
    "type",
    "unsqueeze",
    "view",
];

/// Attributes of a tensor that have no graph.
const PLAIN: &[&str] =
    &["data", "shape", "dtype", "device", "grad", "grad_fn", "requires_grad", "ndim"];

/// What functions that compute a loss are called.
const LOSSES: &[&str] = &["cross_entropy", "nll_loss", "mse_loss", "l1_loss", "kl_div"];

/// Dotted names that loss functions were given.
pub(super) fn criteria(script: &Script<'_>) -> HashSet<String> {
    let is_criterion = |value: &Expr| match value {
        Expr::Call(call) => match called(call) {
            "cuda" | "to" => {
                matches!(receiver(call), Some(Expr::Call(inner)) if is_loss_class(called(inner)))
            }
            name => is_loss_class(name),
        },
        _ => false,
    };
    let made = script.assignments.iter().filter(|it| is_criterion(it.value));
    made.map(|it| it.name.clone()).collect()
}

fn is_loss_class(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && (name.ends_with("Loss") || name.ends_with("Criterion") || name.contains("CrossEntropy"))
}

/// What else has methods that models have.
const NO_MODELS: &[&str] =
    &["optim", "sched", "scaler", "trainer", "parser", "meter", "token", "processor", "extractor"];

/// Dotted names of models: what is put into training or evaluation mode, or has parameters.
pub(super) fn models(script: &Script<'_>, optimizers: &HashSet<String>) -> HashSet<String> {
    const TELLING: &[&str] =
        &["parameters", "named_parameters", "train", "eval", "zero_grad", "state_dict"];
    let telling = script.calls.iter().filter(|call| TELLING.contains(&call.name()));
    let mut names: HashSet<String> = telling.filter_map(super::Call::on_path).collect();
    let wrapped = script.assignments.iter().filter(|it| {
        it.how == How::Whole && matches!(it.value, Expr::Call(call) if makes_model(call))
    });
    names.extend(wrapped.map(|it| it.name.clone()));
    names.retain(|name| {
        let last = last(name).to_lowercase();
        !optimizers.contains(name)
            && !NO_MODELS.iter().any(|it| last.contains(it))
            && last != "self"
    });
    names
}

/// Whether a call gives a model: one that wraps another, or `SomeModel.from_pretrained`, which
/// tokenizers and processors have as well.
fn makes_model(call: &ExprCall) -> bool {
    match called(call) {
        "DataParallel" | "DistributedDataParallel" | "DDP" | "FSDP" => true,
        "from_pretrained" => {
            receiver(call).and_then(path).is_some_and(|class| last(&class).contains("Model"))
        }
        _ => false,
    }
}

impl Script<'_> {
    /// Whether calling it is a model's forward.
    pub(in crate::lint) fn is_model(&self, callee: &Expr) -> bool {
        let Some(path) = path(callee) else { return false };
        let path = path.trim_end_matches(".forward").trim_end_matches(".module");
        let name = last(path);
        path != "self"
            && path != "super"
            && !self.functions.iter().any(|(_, function)| *function.name == *path)
            && (self.models.contains(path) || matches!(name, "model" | "net" | "network"))
            && !self.is_frozen(path)
    }

    /// Whether none of a model's parameters is trained: `model.requires_grad_(False)`.
    fn is_frozen(&self, model: &str) -> bool {
        self.calls.iter().any(|call| {
            call.name() == "requires_grad_"
                && call.argument(0).is_some_and(crate::lint::python::is_false)
                && call.on_path().as_deref() == Some(model)
        })
    }

    /// Whether calling it computes a loss.
    pub(in crate::lint) fn is_criterion(&self, callee: &Expr) -> bool {
        if let Expr::Call(made) = callee {
            return is_loss_class(called(made));
        }
        let Some(path) = path(callee) else { return false };
        let full = self.full(callee).unwrap_or_default();
        let name = last(&path);
        let functional = full.starts_with("torch.nn.functional.")
            && (name.contains("loss") || LOSSES.contains(&name) || name.contains("cross_entropy"));
        functional
            || self.criteria.contains(&path)
            || name.starts_with("criterion")
            || matches!(name, "loss_fn" | "loss_func" | "loss_function" | "loss_fct")
    }

    /// Whether the value of an expression of the tree holds a graph.
    pub(in crate::lint) fn graph(&self, expr: &Expr) -> Graph {
        let at = self.tree.id(expr);
        if self.gradients(at) == Gradients::Off {
            return Graph::No;
        }
        match expr {
            Expr::Name(name) => self.graph_of_name(&name.id, at),
            Expr::Attribute(attribute) => {
                let attr = attribute.attr.as_str();
                if PLAIN.contains(&attr) {
                    return Graph::No;
                }
                match self.graph(&attribute.value) {
                    Graph::Output | Graph::Loss if attr.contains("loss") => Graph::Loss,
                    Graph::Output => Graph::Output,
                    _ => path(expr).map_or(Graph::Unknown, |path| self.graph_of_name(&path, at)),
                }
            }
            Expr::Call(call) => {
                let name = called(call);
                let on = receiver(call);
                if self.is_criterion(&call.func) {
                    return Graph::Loss;
                }
                if self.is_model(&call.func) {
                    return Graph::Output;
                }
                if matches!(name, "float" | "int" | "len" | "str" | "bool") && on.is_none()
                    || WITHOUT.contains(&name)
                {
                    return Graph::No;
                }
                let of_torch = || self.full(&call.func).is_some_and(|it| it.starts_with("torch."));
                match on {
                    Some(_) | None if WITH.contains(&name) && of_torch() => call
                        .arguments
                        .find_positional(0)
                        .map_or(Graph::Unknown, |it| self.graph(it)),
                    Some(on) if WITH.contains(&name) => self.graph(on),
                    _ => Graph::Unknown,
                }
            }
            Expr::BinOp(it) => self.graph(&it.left).max(self.graph(&it.right)),
            Expr::UnaryOp(it) => self.graph(&it.operand),
            Expr::Subscript(it) => self.graph(&it.value),
            Expr::If(it) => self.graph(&it.body).max(self.graph(&it.orelse)),
            Expr::Named(it) => self.graph(&it.value),
            Expr::Tuple(it) => it.elts.iter().map(|it| self.graph(it)).max().unwrap_or(Graph::No),
            Expr::List(it) => it.elts.iter().map(|it| self.graph(it)).max().unwrap_or(Graph::No),
            Expr::Starred(_) | Expr::Await(_) | Expr::ListComp(_) | Expr::Dict(_) => Graph::Unknown,
            _ => Graph::No,
        }
    }

    fn graph_of_name(&self, name: &str, at: Id) -> Graph {
        let function = self.tree.function(at);
        let given = self.last_assignment(name, at);
        let known = given.map_or(Graph::Unknown, |it| match it.how {
            How::Item | How::Context => Graph::Unknown,
            How::Whole | How::Part => self.graph(it.value),
            How::Augmented(_) => self.graph(it.value).max(self.graph_of_name(name, it.id)),
        });
        let is_backward = || {
            self.backwards.iter().any(|it| {
                it.function == function
                    && given.is_none_or(|given| given.id < it.id)
                    && path(it.loss).as_deref() == Some(name)
            })
        };
        match known {
            Graph::No | Graph::Loss => known,
            Graph::Output if last(name).contains("loss") => Graph::Loss,
            Graph::Output | Graph::Unknown if is_backward() => Graph::Loss,
            _ => known,
        }
    }
}
