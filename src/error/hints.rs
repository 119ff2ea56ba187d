use std::io;

use super::ErrorKind;

/// The hints that follow from a kind alone.
pub(super) fn hints(kind: &ErrorKind) -> Vec<String> {
    let hint = match kind {
        ErrorKind::NothingToVary { .. } => {
            "write `{micro_batch}` where its number stands, as in `--batch-size {micro_batch}`; \
             for a command that reads VRAMFIT_MICRO_BATCH, `--vary micro_batch`"
                .to_owned()
        }
        ErrorKind::NoCommand => {
            "as in `-- python train.py --batch-size {micro_batch}`; leave `--` out for a model"
                .to_owned()
        }
        ErrorKind::SeveralRealGpus { .. } => {
            "name its virtual twin by `--gpu NAME`; `vramfit gpus` lists them".to_owned()
        }
        ErrorKind::SequenceUnsaid { .. } => "say it with `--seq 1024`".to_owned(),
        ErrorKind::UnevenTarget { world_size: 0, .. } => "at least one GPU is needed".to_owned(),
        ErrorKind::TargetTooLarge { most, .. } => {
            format!("up to {most} samples on each GPU; was it meant in tokens?")
        }
        ErrorKind::UnevenTarget { target, world_size } => {
            let below = target - target % world_size;
            let above = u64::from(below) + u64::from(*world_size);
            match below {
                0 => format!("{above} would"),
                _ => format!("{below} and {above} would"),
            }
        }
        ErrorKind::SequenceTooLong { longest, .. } => format!("`--seq {longest}` is the most"),
        ErrorKind::NoSequences { .. } => "leave `--seq` out".to_owned(),
        ErrorKind::NoHardware { .. } => {
            "PyTorch would emulate it, many times slower; use fp16 or fp32".to_owned()
        }
        ErrorKind::BrokenPlan { .. } | ErrorKind::PlanVersion { .. } => {
            "write it anew with `vramfit plan … --output`".to_owned()
        }
        ErrorKind::BrokenSnapshot { .. } => {
            "call `torch.cuda.memory._record_memory_history()` before the training and \
             `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` after it"
                .to_owned()
        }
        ErrorKind::BrokenRecording { .. } => {
            "record one with `vramfit watch --record FILE -- python train.py`".to_owned()
        }
        ErrorKind::ReplayFailed { .. } => {
            "it is replayed by PyTorch: `VRAMFIT_PYTHON` names a Python that has it".to_owned()
        }
        ErrorKind::EquivalenceFailed { .. } => {
            "it is PyTorch that trains: `VRAMFIT_PYTHON` names a Python that has it".to_owned()
        }
        ErrorKind::InTheWay { .. } => "name another with `--output`".to_owned(),
        ErrorKind::TemporaryFolder { .. } => {
            "the dynamic linker would cut it there; set TMPDIR to another folder".to_owned()
        }
        ErrorKind::PlanOfCommand { .. } => {
            "the command to run is in its field `command`".to_owned()
        }
        ErrorKind::ProgramStart { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "it is looked for in PATH; one of this folder is called `./NAME`".to_owned()
        }
        ErrorKind::ProgramStart { source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            "it must be an executable file; a script may be run by name, as in `python train.py`"
                .to_owned()
        }
        ErrorKind::NoWorkingDirectory => "go to a folder that does, e.g. `cd ~`".to_owned(),
        ErrorKind::NothingToWatch => {
            "`--gpu NAME` runs it on a virtual one, which `vramfit gpus` lists; `--replay FILE` looks \
             at what was recorded elsewhere"
                .to_owned()
        }
        ErrorKind::FlagOfVirtualGpu { .. } => {
            "name a virtual one with `--gpu NAME`; `vramfit gpus` lists them".to_owned()
        }
        ErrorKind::NoRealGpu => {
            "`vramfit run --gpu NAME -- vramfit gpu-check` rehearses it on a virtual one".to_owned()
        }
        ErrorKind::WorkerMissing { .. } => {
            "`make` builds it; `VRAMFIT_WORKER` may name another".to_owned()
        }
        ErrorKind::WorkerProtocol { .. } | ErrorKind::WorkerVersion { .. } => {
            "`make` builds both from the same sources; a `VRAMFIT_WORKER` may be stale".to_owned()
        }
        ErrorKind::PythonMissing { .. } => {
            "name one that has PyTorch by `VRAMFIT_PYTHON`".to_owned()
        }
        ErrorKind::UsersCode { reason } if reason.contains(" importing ") => {
            "put what is not for import under `if __name__ == \"__main__\":`".to_owned()
        }
        ErrorKind::NoBudget { .. } => {
            "a smaller `--reserve` or `--margin`, or fewer programs on the GPU".to_owned()
        }
        ErrorKind::NothingMeasured { reason } | ErrorKind::WorkerRefused { message: reason }
            if reason.contains("no kernel image") =>
        {
            "the worker's PyTorch was not built for a GPU as old as this: PyTorch 2.11 for CUDA 13 \
             needs compute capability 7.5"
                .to_owned()
        }
        ErrorKind::NotTheVirtualGpu { .. } => {
            "`VRAMFIT_VGPU_LIBRARY` names it; unset, the one beside vramfit is taken".to_owned()
        }
        ErrorKind::VirtualGpuMissing { .. } => {
            "`make` builds it; `VRAMFIT_VGPU_LIBRARY` may name another".to_owned()
        }
        _ => return Vec::new(),
    };
    vec![hint]
}
