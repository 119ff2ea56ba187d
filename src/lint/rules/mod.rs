//! One trap a file.

mod aliased_state;
mod backward_without_grad;
mod carried_state;
mod data_on_gpu;
mod emptied_cache;
mod float64;
mod fp16_without_scaler;
mod kept_tensors;
mod loss_with_graph;
mod misplaced_zero_grad;
mod missing_no_grad;
mod plain_loader;
mod retained_graph;
mod step_each_micro_batch;
#[cfg(test)]
mod testing;
mod undivided_loss;
mod zeroed_in_place;

use super::rule::Rule;

/// All of them, by number.
pub static RULES: &[&Rule] = &[
    &loss_with_graph::RULE,
    &missing_no_grad::RULE,
    &undivided_loss::RULE,
    &fp16_without_scaler::RULE,
    &step_each_micro_batch::RULE,
    &misplaced_zero_grad::RULE,
    &float64::RULE,
    &kept_tensors::RULE,
    &plain_loader::RULE,
    &retained_graph::RULE,
    &data_on_gpu::RULE,
    &carried_state::RULE,
    &backward_without_grad::RULE,
    &aliased_state::RULE,
    &emptied_cache::RULE,
    &zeroed_in_place::RULE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_one_another_and_names_are_plain() {
        for (index, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.number, format!("V{:02}", index + 1));
            assert!(
                rule.name
                    .chars()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
            );
            assert_eq!(RULES.iter().filter(|it| it.name == rule.name).count(), 1);
        }
    }
}
