use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{is_true, keyword};
use crate::lint::rule::Traps;
use crate::lint::script::{How, Script};

pub(super) const RULE: Rule = Rule {
    number: "V10",
    name: "retained-graph",
    summary: "`retain_graph=True` in a training loop",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for backward in &script.backwards {
        let retained = keyword(backward.node, "retain_graph").is_some_and(is_true);
        let Some(in_loop) = script.tree.innermost_loop(backward.id).filter(|_| retained) else {
            continue;
        };
        let again = script
            .backwards_in(in_loop)
            .any(|it| it.id > backward.id && !script.tree.exclude_each_other(it.id, backward.id));
        // In an outer loop another may go through the same graph.
        let outer = script.tree.loops(backward.id).last().unwrap_or(in_loop);
        let elsewhere = script.backwards_in(outer).any(|it| it.id > backward.id);
        // `for loss in losses`, which one forward gave.
        let in_turn = script.assignments.iter().any(|it| {
            it.how == How::Item
                && it.id == in_loop
                && script.names_in(backward.loss).contains(&it.name)
        });
        let at = keyword(backward.node, "retain_graph")
            .map_or(backward.node.into(), ruff_python_ast::AnyNodeRef::from);
        match again || elsewhere || in_turn {
            true => traps.note(
                &at,
                "the graph's saved tensors stay until the next `backward` through it is done",
                "where both losses share the graph, `(a + b).backward()` goes through it once",
            ),
            false => traps.warning(
                &at,
                "the saved tensors of the graph outlive `backward`, and no second one goes through it",
                "leave it out; where PyTorch then complains of a second backward, detach what an \
                 iteration takes over from the one before",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::lint::Severity;

    const RULE: &str = "retained-graph";

    #[test]
    fn a_graph_that_nothing_goes_through_again_is_found() {
        let found = findings(
            RULE,
            "\nfor x in data:\n    loss = f(x)\n    loss.backward(retain_graph=True)\n",
        );
        assert_eq!((found[0].place.line, found[0].severity), (4, Severity::Warning));
    }

    #[test]
    fn one_that_a_second_loss_shares_is_a_note() {
        let code = "\nfor x in data:\n    a.backward(retain_graph=True)\n    b.backward()\n";
        assert_eq!(findings(RULE, code)[0].severity, Severity::Note);
        let in_turn = "\nfor x in data:\n    for loss in model(x):\n        loss.backward(retain_graph=True)\n";
        assert_eq!(findings(RULE, in_turn)[0].severity, Severity::Note);
    }

    #[test]
    fn elsewhere_it_is_fine() {
        let code = "\nloss.backward(retain_graph=True)\nfor x in data:\n    f(x).backward(retain_graph=False)\n";
        assert!(findings(RULE, code).is_empty());
    }
}
