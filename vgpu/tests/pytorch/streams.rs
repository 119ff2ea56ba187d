//! Streams, events, pinned memory and the profiler.

use std::process::Stdio;

use super::environments;
use super::machine::{Machine, assert_as_expected, laptop};

#[test]
fn on_each_pytorch_streams_events_pinned_memory_and_the_profiler_work() {
    for environment in environments::all() {
        let machine = Machine::new(vec![laptop()]);
        let child = machine
            .program_in(&environment, "streams")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, report) = machine.finish(&format!("{}: streams", environment.name), child);
        assert_as_expected(&output, 24);
        // The profiler asks CUPTI for what kernels do: it is refused, and nothing else is.
        let names = &report.not_implemented;
        let of_cupti = names.iter().filter(|name| name.starts_with("cupti")).count();
        assert!(of_cupti > 0 && of_cupti == names.len(), "{}: {names:?}", environment.name);
    }
}
