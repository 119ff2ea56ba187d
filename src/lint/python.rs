//! What is asked of Python expressions again and again.

use ruff_python_ast::{Expr, ExprCall, Number};

/// `self.model` of the expression `self.model`: names and attributes, nothing computed.
pub(super) fn path(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => {
            Some(format!("{}.{}", path(&attribute.value)?, attribute.attr))
        }
        _ => None,
    }
}

/// The last part of a dotted name.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The name a call ends with: `step` of `self.optimizers[0].step()`.
pub(super) fn called(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    }
}

/// What a method is called on.
pub(super) fn receiver(call: &ExprCall) -> Option<&Expr> {
    match &*call.func {
        Expr::Attribute(attribute) => Some(&attribute.value),
        _ => None,
    }
}

/// The value of a named argument.
pub(super) fn keyword<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    call.arguments.find_keyword(name).map(|it| &it.value)
}

/// Whether it has arguments that the text does not show: `*args`, `**options`.
pub(super) fn has_unseen_arguments(call: &ExprCall) -> bool {
    call.arguments.keywords.iter().any(|it| it.arg.is_none())
        || call.arguments.args.iter().any(Expr::is_starred_expr)
}

/// The name an argument or target is computed from: `x` of `x[0].y`.
pub(super) fn base(expr: &Expr) -> Option<String> {
    path(expr).or_else(|| match expr {
        Expr::Attribute(attribute) => base(&attribute.value),
        Expr::Subscript(subscript) => base(&subscript.value),
        Expr::Starred(starred) => base(&starred.value),
        Expr::Call(call) => base(receiver(call)?),
        _ => None,
    })
}

pub(super) fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::BooleanLiteral(literal) if literal.value)
}

pub(super) fn is_false(expr: &Expr) -> bool {
    matches!(expr, Expr::BooleanLiteral(literal) if !literal.value)
}

/// The text of a string literal.
pub(super) fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(literal) => Some(literal.value.to_str()),
        _ => None,
    }
}

/// Whether it is a number with a fraction or an exponent.
pub(super) fn is_float(expr: &Expr) -> bool {
    matches!(expr, Expr::NumberLiteral(literal) if matches!(literal.value, Number::Float(_)))
}
