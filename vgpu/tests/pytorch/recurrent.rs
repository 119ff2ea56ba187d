//! Recurrent networks and CTC loss through cuDNN.

use super::attempts;

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
