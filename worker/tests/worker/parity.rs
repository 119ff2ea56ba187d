//! Built-in models beside their originals in Python, on the same virtual GPU.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vramfit::units::Bytes;
use vramfit::workload::{Checkpointing, Precision};

use crate::machine::Machine;
use crate::worker::{Worker, point, python, workload};

struct Twin {
    script: &'static str,
    model: &'static str,
    micro_batch: u32,
    sequence: u32,
}

const TWINS: [Twin; 3] = [
    Twin { script: "gpt2", model: "gpt2-small", micro_batch: 4, sequence: 512 },
    Twin { script: "resnet50", model: "resnet50", micro_batch: 16, sequence: 0 },
    Twin { script: "llama", model: "smollm-135m", micro_batch: 2, sequence: 512 },
];

impl Twin {
    /// Parameter count, `max_memory_allocated` and `max_memory_reserved` of the original.
    fn original(
        &self,
        machine: &Machine,
        precision: Precision,
        checkpointing: Checkpointing,
        accumulation: u32,
    ) -> [u64; 3] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
        let mut command = Command::new(python());
        command
            .arg(folder.join(self.script).with_extension("py"))
            .args(["--batch", &self.micro_batch.to_string()])
            .args(["--sequence", &self.sequence.to_string()])
            .args(["--precision", precision.name()])
            .args(["--checkpoint", &checkpointing.to_string()])
            .args(["--accumulation", &accumulation.to_string()])
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let output = machine.command(command).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}.py: {stderr}", self.script);
        let text = String::from_utf8(output.stdout).unwrap();
        let json: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        ["parameters", "max_memory_allocated", "max_memory_reserved"]
            .map(|key| json[key].as_u64().unwrap())
    }

    #[track_caller]
    fn compare(&self, precision: Precision, checkpointing: Checkpointing, accumulation: u32) {
        let machine = Machine::new(Bytes::gib(24));
        let [parameters, allocated, reserved] =
            self.original(&machine, precision, checkpointing, accumulation);
        let workload = workload(self.model, self.sequence);
        assert_eq!(workload.subject.built_in().unwrap().parameters, parameters, "{}", self.model);
        let point = point(precision, checkpointing, self.micro_batch, accumulation);
        let memory = Worker::on(&machine).ran(&workload, point).memory;
        let what = format!("{} {precision} {checkpointing} ×{accumulation}", self.model);
        // Under autocast copies of weights are freed in the order of a hash of addresses, which
        // moves a block now and then; fp32 has no such freedom.
        let tolerance = if precision.is_mixed() { allocated / 500 } else { 0 };
        let [ours, ours_reserved] = [memory.allocated_peak.get(), memory.reserved_peak.get()];
        assert!(ours.abs_diff(allocated) <= tolerance, "{what}: {ours}, Python {allocated}");
        assert!(
            ours_reserved.abs_diff(reserved) <= 4 * tolerance,
            "{what}: reserved {ours_reserved}, Python {reserved}"
        );
    }
}

#[test]
fn fp32_peaks_are_those_of_the_originals() {
    for twin in TWINS {
        twin.compare(Precision::Fp32, Checkpointing::None, 1);
    }
}

#[test]
fn bf16_peaks_are_those_of_the_originals() {
    for twin in TWINS {
        twin.compare(Precision::Bf16, Checkpointing::None, 1);
    }
}

#[test]
fn checkpointed_peaks_are_those_of_torch_utils_checkpoint() {
    for twin in TWINS {
        twin.compare(Precision::Fp32, Checkpointing::Full, 1);
    }
}

#[test]
fn accumulated_fp16_peaks_are_those_of_the_originals_with_a_gradient_scaler() {
    for twin in TWINS {
        twin.compare(Precision::Fp16, Checkpointing::Full, 2);
    }
}
