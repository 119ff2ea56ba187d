//! Single operations to the byte, against numbers worked out by hand in `programs/exact.py`.

use super::machine::{Machine, laptop};

#[test]
fn single_operations_take_the_bytes_that_the_allocators_rules_give() {
    let (output, _) = Machine::new(vec![laptop()]).run("exact", &[]);
    let wrong: Vec<&str> = output
        .lines()
        .filter(|line| {
            let mut fields = line.split('\t').skip(1);
            fields.next() != fields.next()
        })
        .collect();
    assert!(wrong.is_empty(), "name, measured, expected:\n{}", wrong.join("\n"));
    assert!(output.lines().count() >= 35, "only {} checks ran", output.lines().count());
}
