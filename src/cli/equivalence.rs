//! `vramfit equivalence`.

use std::thread;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::{EquivalenceArgs, Only, TrainedOn};
use super::output::Output;
use super::{choose_gpu, inputs};
use crate::device::{Setup, VirtualGpu};
use crate::equivalence::{
    Answer, Device, Equivalence, Own, Part, PeaksOn, Place, Progress, Request, Student,
};
use crate::error::{Error, ErrorKind, ExitStatus};
use crate::probe::{Interrupt, python};
use crate::profile::Catalog;
use crate::profile::gpu::GpuProfile;
use crate::report;

/// The built-in models are too small to be shared among threads, and on a busy machine these would
/// wait for each other.
const THREADS: usize = 1;

pub(super) fn run(
    args: &EquivalenceArgs,
    catalog: &Catalog,
    output: &Output,
) -> Result<ExitStatus, Error> {
    let own = own(args)?;
    let card = catalog.gpu(args.gpu.as_deref().unwrap_or(choose_gpu::DEFAULT))?;
    let student = Student { python: python(), interrupt: Interrupt::install() };
    let request = request(args, own);
    let bar = Bar::new();
    let answer = student.ask(&request, Place::Here, &mut |progress| bar.hear(progress))?;
    let peaks = match answer.peaks.is_none() && answer.training.is_some() {
        true => Some(virtual_peaks(&student, &card, &request, &bar)?),
        false => None,
    };
    drop(bar);
    let document = Equivalence::of(answer, args.seed, peaks);
    match args.json {
        true => output.json(&document)?,
        false => output.data(&report::equivalence(&document))?,
    }
    Ok(match document.well {
        true => ExitStatus::Done,
        false => ExitStatus::DoesNotFit,
    })
}

/// The user's function, whose file is there.
fn own(args: &EquivalenceArgs) -> Result<Option<Own>, Error> {
    let Some(named) = &args.workload else { return Ok(None) };
    let (target_batch, micro_batch) = (args.target_batch, args.micro_batch);
    if micro_batch >= target_batch {
        let reason = format!("not less than the target batch of {target_batch}");
        return Err(Error::bad_value("--micro-batch", micro_batch.to_string(), reason)
            .hint("a batch in one piece has nothing to be compared with"));
    }
    let function = inputs::function(named)?;
    Ok(Some(Own {
        file: function.file,
        function: function.name,
        target_batch,
        micro_batch,
        sequence: args.seq,
    }))
}

fn request(args: &EquivalenceArgs, own: Option<Own>) -> Request {
    let parts = match (&own, args.only) {
        (Some(_), _) => Vec::new(),
        (None, Some(Only::Gradients)) => vec![Part::Gradients],
        (None, Some(Only::Training)) => vec![Part::Training, Part::Peaks],
        (None, None) => vec![Part::Gradients, Part::Training, Part::Peaks],
    };
    let threads = match &own {
        Some(_) => thread::available_parallelism().map_or(1, usize::from),
        None => THREADS,
    };
    Request {
        device: match args.device {
            None => Device::Auto,
            Some(TrainedOn::Cpu) => Device::Cpu,
            Some(TrainedOn::Gpu) => Device::Gpu,
        },
        parts,
        steps: args.steps,
        seed: args.seed,
        threads,
        own,
    }
}

/// The same training on a virtual GPU, for its memory alone. What fails there takes nothing from what
/// was trained.
fn virtual_peaks(
    student: &Student,
    card: &GpuProfile,
    request: &Request,
    bar: &Bar,
) -> Result<PeaksOn, Error> {
    bar.say("memory, on a virtual GPU");
    let request = Request { device: Device::Virtual, parts: vec![Part::Peaks], ..request.clone() };
    let asked = VirtualGpu::new(card, Setup::default())
        .and_then(|gpu| student.ask(&request, Place::Virtual(&gpu), &mut |_| ()));
    let (peaks, failure) = match asked {
        Ok(Answer { peaks, .. }) => (peaks.unwrap_or_default(), None),
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => return Err(error),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(PeaksOn { gpu: card.name.clone(), is_virtual: true, peaks, failure })
}

/// How far it is, on standard error where that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("PyTorch starts");
        Self(bar)
    }

    fn hear(&self, progress: &Progress) {
        self.0.set_length(progress.of);
        self.0.set_position(progress.done);
        self.0.set_message(format!("{}, {} of {}", progress.part, progress.done, progress.of));
    }

    fn say(&self, what: &'static str) {
        self.0.set_message(what);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
