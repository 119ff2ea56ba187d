//! Single operations to the byte, against numbers worked out by hand in `programs/exact.py`.

use super::machine::{Machine, assert_as_expected, laptop};

#[test]
fn single_operations_take_the_bytes_that_the_allocators_rules_give() {
    let (output, _) = Machine::new(vec![laptop()]).run("exact", &[]);
    assert_as_expected(&output, 35);
}
