use ruff_python_ast::{Expr, ExprCall};

use super::Script;
use crate::lint::python::{called, keyword, last, path, string};

impl Script<'_> {
    /// Whether a call moves something to a device that is no CPU: `.cuda()`, `.to(device)`.
    pub(in crate::lint) fn moves_to_gpu(&self, call: &ExprCall) -> bool {
        match called(call) {
            "cuda" => crate::lint::python::receiver(call).is_some(),
            "to" => {
                let to = call.arguments.find_positional(0).or_else(|| keyword(call, "device"));
                to.is_some_and(|it| self.is_gpu(it))
            }
            _ => false,
        }
    }

    /// Whether an expression is a device that is, or may be, a GPU.
    pub(in crate::lint) fn is_gpu(&self, expr: &Expr) -> bool {
        match expr {
            Expr::StringLiteral(_) => string(expr).is_some_and(|it| it.starts_with("cuda")),
            Expr::FString(_) => true,
            Expr::Call(call) if called(call) == "device" => {
                call.arguments.find_positional(0).is_none_or(|it| self.is_gpu(it))
            }
            Expr::Name(_) | Expr::Attribute(_) => path(expr).is_some_and(|path| {
                let name = last(&path).to_lowercase();
                let may_be = ["device", "gpu", "cuda", "rank"].iter().any(|it| name.contains(it));
                may_be && !self.is_only_cpu(&path)
            }),
            Expr::If(it) => self.is_gpu(&it.body) || self.is_gpu(&it.orelse),
            _ => false,
        }
    }

    /// Whether a name is given the CPU, and nothing else.
    fn is_only_cpu(&self, name: &str) -> bool {
        let mut given = self.assignments.iter().filter(|it| it.name == name).peekable();
        let is_cpu = |value: &Expr| match value {
            Expr::Call(call) if called(call) == "device" => {
                call.arguments.find_positional(0).and_then(string) == Some("cpu")
            }
            other => string(other) == Some("cpu"),
        };
        given.peek().is_some() && given.all(|it| is_cpu(it.value))
    }

    /// Whether anything is moved to a GPU.
    pub(in crate::lint) fn uses_gpu(&self) -> bool {
        self.calls.iter().any(|call| {
            self.moves_to_gpu(call.node)
                || call.name() == "set_default_device"
                || keyword(call.node, "device").is_some_and(|it| self.is_gpu(it))
        })
    }
}
