//! Convolutions of each kind, with each of `torch.backends.cudnn`'s flags.

use super::attempts;

#[test]
fn convolutions_of_each_kind_run_with_each_flag() {
    for flag in ["", "benchmark", "deterministic", "no-allow_tf32"] {
        let flags: &[&str] = if flag.is_empty() { &[] } else { &[flag] };
        let report = attempts::run("convolutions", flags, 110);
        attempts::assert_estimates(&report, &[]);
        let has = |rank, operation| {
            report.convolutions.iter().any(|it| it.operation == operation && it.x.len() == rank)
        };
        for rank in [4, 5] {
            for pass in ["forward", "backward_data", "backward_filter"] {
                assert!(
                    has(rank, format!("convolution_{pass}")),
                    "{flag}: {pass} of {rank} dimensions"
                );
            }
        }
    }
}
