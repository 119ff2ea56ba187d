//! The real cuDNN without a device.

use vramfit_vgpu_schema::{Convolution, Device, Report};

use super::machine::{MIB, Machine, laptop};

fn card(compute_capability: (i32, i32)) -> Device {
    let bytes = 24 * 1024 * MIB;
    let (total_memory_bytes, usable_memory_bytes) = (bytes, bytes);
    let device = laptop();
    Device { total_memory_bytes, usable_memory_bytes, compute_capability, ..device }
}

fn convolve(device: Device, arguments: &[&str]) -> Report {
    Machine::new(vec![device]).run("convolution", arguments).1
}

#[track_caller]
fn operation<'a>(report: &'a Report, name: &str) -> &'a Convolution {
    let mut found = report.convolutions.iter().filter(|it| it.operation == name);
    let first = found.next().unwrap_or_else(|| panic!("no {name} in {:?}", report.convolutions));
    assert_eq!(found.next(), None);
    first
}

#[test]
fn a_convolution_takes_the_workspace_that_cudnn_states_for_the_card() {
    let report = convolve(card((8, 6)), &["fp32", "339", "64", "64", "86"]);
    assert_eq!(report.not_implemented, Vec::<String>::new());
    let forward = operation(&report, "convolution_forward");
    assert_eq!((&forward.x, &forward.w), (&vec![339, 64, 86, 86], &vec![64, 64, 3, 3]));
    assert_eq!((&forward.y, forward.data_type.as_str()), (&vec![339, 64, 86, 86], "FLOAT"));
    assert_eq!(forward.count, 1);
    // cuDNN 9 computes this one in NHWC: it copies its input there (612.2 MiB), and in backward its
    // output too.
    let input = 339 * 64 * 86 * 86 * 4;
    let beside = |operation: &Convolution, copies: u64| {
        let rest = operation.workspace_bytes as i64 - (copies * input) as i64;
        assert!((0..2 << 20).contains(&rest), "{rest} bytes beside {copies} copies: {operation:?}");
    };
    beside(forward, 1);
    beside(operation(&report, "convolution_backward_data"), 2);
    beside(operation(&report, "convolution_backward_filter"), 2);
}

#[test]
fn the_card_decides_which_engine_cudnn_takes() {
    let arguments = ["bf16", "16", "64", "64", "56"];
    let workspaces = [(7, 5), (8, 6), (9, 0)].map(|capability| {
        let report = convolve(card(capability), &arguments);
        assert_eq!(report.not_implemented, Vec::<String>::new());
        let work = report.convolutions.iter();
        work.map(|it| it.workspace_bytes).collect::<Vec<_>>()
    });
    assert!(
        workspaces[0] != workspaces[1] || workspaces[1] != workspaces[2],
        "three generations of cards, the same workspaces: {workspaces:?}"
    );
}

#[test]
fn an_engine_that_needs_no_workspace_takes_none() {
    // NHWC tensors suit the tensor cores as they are.
    let report = convolve(card((8, 6)), &["bf16", "16", "64", "64", "56", "channels_last"]);
    assert_eq!(operation(&report, "convolution_forward").workspace_bytes, 0);
}

#[test]
fn measuring_candidates_takes_their_workspaces_and_keeps_the_one_that_cudnn_prefers() {
    let arguments = ["fp32", "32", "64", "64", "56"];
    let forward = |report: &Report| -> Vec<(u64, u64)> {
        let found = report.convolutions.iter().filter(|it| it.operation == "convolution_forward");
        found.map(|it| (it.count, it.workspace_bytes)).collect()
    };
    let preferred = forward(&convolve(card((8, 6)), &arguments));
    let [(1, preferred)] = preferred[..] else { panic!("{preferred:?}") };
    let measured = convolve(card((8, 6)), &[&arguments[..], &["benchmark"]].concat());
    let tried = forward(&measured);
    assert!(tried.len() > 1, "candidates of different workspaces: {tried:?}");
    // All take as long here, and of those PyTorch keeps the first.
    assert_eq!(tried.iter().max().map(|(_, workspace)| *workspace), Some(preferred), "{tried:?}");
    let largest = tried.iter().map(|(_, workspace)| *workspace).max().unwrap();
    assert!(largest > preferred, "{tried:?}");
    assert!(measured.process_peak[0].total_bytes > largest);
}
