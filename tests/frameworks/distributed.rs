use crate::environments::{self, Environment};
use crate::program::{MIB, Program};

#[test]
fn with_each_pytorch_torchrun_with_two_ranks_is_reported_rank_by_rank() {
    for environment in environments::all() {
        check(environment);
    }
}

#[track_caller]
fn check(environment: Environment) {
    let run = Program::new("ddp", &[]).environment(environment).ranks(2).trains(8, 8);
    assert_eq!(run.document.gpus, 2);
    let reports = &run.document.processes;
    for (rank, (answer, report)) in run.answers.iter().zip(reports).enumerate() {
        assert_eq!(answer["rank"], rank);
        let python = report.python.as_ref().unwrap();
        assert_eq!(python.rank.map(|it| it as usize), Some(rank));
        let peak = &report.process_peak[rank];
        // NCCL's own, an estimate that the report names.
        let reserved = answer["reserved"].as_u64().unwrap();
        assert_eq!(peak.total_bytes, peak.context_bytes + reserved + 48 * MIB);
        assert!(report.estimates.iter().any(|it| it.starts_with("NCCL buffers")));
        let line = format!("vramfit: rank {rank}: {} MiB on GPU {rank} = ", peak.total_bytes / MIB);
        assert!(run.said.contains(&line), "no `{line}`:\n{}", run.said);
    }
    assert_eq!(run.answers[0]["allocated"], run.answers[1]["allocated"]);
}
