use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::Script;

pub(super) const RULE: Rule = Rule {
    number: "V15",
    name: "emptied-cache",
    summary: "`torch.cuda.empty_cache()` in each training step",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for call in script.calls.iter().filter(|call| call.name() == "empty_cache") {
        let Some(in_loop) = script.tree.innermost_loop(call.id) else { continue };
        let is_each_step =
            script.backwards.iter().any(|it| script.tree.innermost_loop(it.id) == Some(in_loop));
        let is_conditional = script.tree.conditions(call.id, in_loop).next().is_some()
            || script.tree.above(call.id).take_while(|&id| id != in_loop).any(|id| {
                matches!(
                    script.tree.node(id),
                    ruff_python_ast::AnyNodeRef::ExceptHandlerExceptHandler(_)
                )
            });
        if is_each_step && !is_conditional {
            traps.warning(
                call.node,
                "each step gives PyTorch's cached memory back and asks the driver for it anew, which is \
                 slow and frees nothing that PyTorch could not use",
                "leave it out; against fragmentation, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "emptied-cache";

    #[test]
    fn a_cache_that_each_step_empties_is_found() {
        let code = "\nfor x in loader:\n    f(x).backward()\n    torch.cuda.empty_cache()\n";
        assert_eq!(lines(RULE, code), [4]);
    }

    #[test]
    fn now_and_then_it_is_fine() {
        let code = "
for epoch in range(9):
    for i, x in enumerate(loader):
        try:
            f(x).backward()
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        if i % 100 == 0:
            torch.cuda.empty_cache()
    torch.cuda.empty_cache()
";
        assert!(lines(RULE, code).is_empty());
    }
}
