//! Recurrent networks and CTC loss through cuDNN.

use std::process::Stdio;

use super::attempts;
use super::environments;
use super::machine::Machine;
use super::shadow::roomy;

#[test]
fn recurrent_networks_train_through_cudnn() {
    let report = attempts::run("recurrent", &[], 50);
    for call in
        ["cudnnRNNForward", "cudnnRNNBackwardData", "cudnnRNNBackwardWeights", "cudnnCTCLoss"]
    {
        assert!(attempts::calls(&report, call) > 0, "{call} in {:?}", report.kernels);
    }
    attempts::assert_estimates(&report, &["cuDNN CTC", "cuDNN RNN", "cuDNN dropout"]);
}

#[test]
fn each_pytorch_trains_recurrent_networks() {
    for environment in environments::all() {
        let machine = Machine::new(vec![roomy()]);
        let mut command = machine.program_in(&environment, "recurrent");
        command.arg("without_loss");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (_, report) = machine.finish(&environment.name, child);
        assert_eq!(report.not_implemented, Vec::<String>::new(), "{}", environment.name);
        assert!(attempts::calls(&report, "cudnnRNNForward") > 60, "{}", environment.name);
    }
}
