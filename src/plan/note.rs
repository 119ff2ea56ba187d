use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measurement::Setting;
use crate::units::Bytes;
use crate::workload::Precision;

/// Variables of the environment that change how much memory a step takes; those that a note may name.
pub const ALLOCATOR_VARIABLES: [&str; 4] = [
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
];

/// Something one should know about a plan. All wording is in its `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "note", rename_all = "kebab-case")]
pub enum Note {
    /// The search was stopped.
    Incomplete,
    /// The search could not go on.
    StoppedBy {
        /// Why.
        reason: String,
    },
    /// Nothing fits, and what would was not found out to the end.
    ChangesUntried {
        /// Why.
        reason: String,
    },
    /// Step times are not known.
    RankedWithoutTimes,
    /// Precisions were not searched, since the card has them not in hardware.
    PrecisionsLeftOut {
        /// Which.
        precisions: Vec<Precision>,
        /// Of the card.
        compute_capability: String,
    },
    /// The card has no tensor cores, for which mixed precision is made.
    NoTensorCores {
        /// It is one of the GTX 16 series, on which training in fp16 is known to fail.
        gtx_16: bool,
    },
    /// A laptop's clock, and so its speed, is up to who built it.
    LaptopPower {
        /// The clock in MHz at the most power.
        clock: u32,
        /// And at the least, where it is stated.
        lowest_clock: Option<u32>,
        /// The most power in watts.
        power: u32,
        /// And the least, where it is stated.
        lowest_power: Option<u32>,
    },
    /// Batch norm's statistics are of the micro-batch.
    BatchNorm {
        /// Samples that it sees.
        micro_batch: u32,
    },
    /// More GPUs were asked for than a worker uses.
    WorldSize {
        /// How many.
        world_size: u32,
    },
    /// A command has no placeholder for these.
    AsTheCommandDoes {
        /// `precision`, `checkpointing`.
        what: Vec<String>,
    },
    /// A command has no placeholder for the accumulation that the plan needs.
    OwnAccumulation {
        /// Micro-steps in one optimizer step.
        steps: u32,
    },
    /// A command was ended once its steps were seen.
    EndedEarly,
    /// Checkpointing was asked for and the model has nothing that can be.
    NoCheckpointing,
    /// Blocks to checkpoint could not be chosen.
    BlocksNotChosen {
        /// Why.
        reason: String,
    },
    /// A point failed for itself.
    PointFailed {
        /// Its setting.
        setting: Setting,
        /// Its micro-batch.
        micro_batch: u32,
        /// What became of it.
        reason: String,
    },
    /// Points that ran only by flushing the allocator's cache.
    Tight {
        /// Their settings and micro-batches.
        points: Vec<Tried>,
    },
    /// The context's size on a virtual GPU is a profile's figure.
    ContextOfProfile {
        /// The figure.
        context: Bytes,
        /// `observed`, `specified` or `inferred`.
        basis: String,
        /// Who says so.
        source: String,
        /// The least that it is expected to be.
        #[serde(default)]
        low: Bytes,
        /// The most; the margin allows for it unless one was given.
        #[serde(default)]
        high: Bytes,
    },
    /// What a desktop of Windows takes is an assumption.
    WindowsDesktop {
        /// Set aside for it.
        reserve: Bytes,
    },
    /// The driver of Windows goes on in the host's memory where the GPU's is short.
    Spills,
    /// A variable of the environment that PyTorch's allocator or cuBLAS goes by.
    AllocatorVariable {
        /// Its name.
        variable: String,
        /// Its value.
        value: String,
    },
    /// NVML did not name the worker's process.
    ProcessUnnamed,
    /// Other processes' use of the GPU changed during a point.
    OthersGrew {
        /// By how much, at most.
        grew: Bytes,
    },
    /// The real card needed more or less than its virtual twin.
    TwinDiffers {
        /// Measured over predicted device peak.
        factor: f64,
    },
    /// On a real card: next larger micro-batches that were tried on the twin only.
    NextOnTwin {
        /// Their settings and micro-batches.
        points: Vec<Tried>,
    },
    /// The search ran on the card itself, since no twin could be made.
    NoTwin {
        /// Why.
        reason: String,
    },
    /// The virtual GPU was asked for something it does not implement.
    NotImplemented {
        /// Entry points.
        names: Vec<String>,
    },
    /// Values came back that no kernel had computed.
    ReadBacks {
        /// How many copies.
        count: u64,
        /// Where, the most frequent first, with the type and how often.
        #[serde(default)]
        places: Vec<String>,
    },
    /// Sizes of results depend on values that nobody knows: the plan holds for the highest.
    DataDependentSizes {
        /// Which and where, with their bounds.
        places: Vec<String>,
        /// The recommended setting's device peak with the lowest sizes; null if that was not to be
        /// measured.
        lowest_peak: Option<Bytes>,
        /// And with the highest, which is the one that was planned for.
        highest_peak: Bytes,
    },
    /// A failure inside the virtual GPU.
    InternalError {
        /// Its own words.
        message: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => {
                write!(f, "stopped before the end: the plan fits, but a better one may exist")
            }
            Self::StoppedBy { reason } => write!(f, "the search could not go on: {reason}"),
            Self::ChangesUntried { reason } => {
                write!(f, "which changes would help was not tried to the end: {reason}")
            }
            Self::RankedWithoutTimes => write!(
                f,
                "ranked without step times, which are not known here: in the order of the steps \
                 above, then fewer accumulation steps, less numerical risk, less memory"
            ),
            Self::PrecisionsLeftOut { precisions, compute_capability } => {
                let names: Vec<_> = precisions.iter().map(|it| it.name()).collect();
                write!(
                    f,
                    "{} left out: compute capability {compute_capability} has no such hardware, 8.0 \
                     and later have",
                    names.join(" and "),
                )?;
                match precisions.contains(&Precision::Bf16) {
                    true => write!(f, "; PyTorch would emulate bf16, many times slower than fp16"),
                    false => Ok(()),
                }
            }
            Self::NoTensorCores { gtx_16 } => {
                write!(
                    f,
                    "the card has no tensor cores: mixed precision saves memory here, and no time to \
                     count on"
                )?;
                match gtx_16 {
                    true => write!(
                        f,
                        "; on the GTX 16 series fp16 is known to end in NaN \
                         (github.com/ultralytics/yolov5/issues/5815)"
                    ),
                    false => Ok(()),
                }
            }
            Self::LaptopPower { clock, lowest_clock, power, lowest_power } => {
                let watts = |power: Option<u32>| {
                    power.map_or_else(String::new, |power| format!(" at {power} W"))
                };
                match lowest_clock {
                    Some(lowest) => write!(
                        f,
                        "a laptop's maker sets its power: the slow end of the times is for {lowest} \
                         MHz{}, the fast end for {clock} MHz{}",
                        watts(*lowest_power),
                        watts(Some(*power))
                    )?,
                    None => write!(
                        f,
                        "a laptop's maker sets its power: the times are for {clock} MHz, the most that \
                         is stated, and how much slower others are is not known"
                    )?,
                }
                write!(f, "; throttling by heat is not predicted")
            }
            Self::BatchNorm { micro_batch } => {
                write!(f, "batch norm sees the micro-batch of {micro_batch}, not the target batch")
            }
            Self::WorldSize { world_size } => write!(
                f,
                "measured on one GPU of {world_size}: the buckets of DistributedDataParallel (about \
                 the size of the gradients) and NCCL's buffers are not in these figures"
            ),
            Self::AsTheCommandDoes { what } => write!(
                f,
                "the command has no placeholder for {}: it trained as it does by itself",
                what.join(" and ")
            ),
            Self::OwnAccumulation { steps } => write!(
                f,
                "the command has no `{{accumulation}}`: it reaches the target only if it \
                 accumulates {steps} micro-steps by itself, and was measured as it is"
            ),
            Self::EndedEarly => write!(
                f,
                "each run of the command was ended after its second optimizer step: what it does \
                 later, such as evaluating, was not seen; with `{{steps}}` it is left to run to its end"
            ),
            Self::NoCheckpointing => write!(
                f,
                "searched without checkpointing: the model has no repeated blocks; `checkpoint` of \
                 the workload can name modules or be a function"
            ),
            Self::BlocksNotChosen { reason } => {
                write!(f, "searched without checkpointing in part: {reason}")
            }
            Self::PointFailed { setting, micro_batch, reason } => write!(
                f,
                "micro-batch {micro_batch} ({}) could not be measured and was passed over: {reason}",
                words(setting)
            ),
            Self::Tight { points } => write!(
                f,
                "not counted as fitting, since they run only by flushing the allocator's cache: \
                 micro-batch {}",
                list(points)
            ),
            Self::ContextOfProfile { context, basis, source, low, high } => {
                write!(f, "the CUDA context of {context}")?;
                if low < high {
                    write!(f, " ({low} to {high} may be expected)")?;
                }
                write!(f, " is the profile's figure, {basis}: {source}")
            }
            Self::WindowsDesktop { reserve } => write!(
                f,
                "{reserve} is set aside for the desktop of Windows, where 0.5 to 1.4 GiB were seen \
                 at light load; `--reserve` says what yours takes"
            ),
            Self::Spills => write!(
                f,
                "short of memory, the driver of Windows does not fail but goes on in the host's, \
                 many times slower, unless its `CUDA - Sysmem Fallback Policy` says otherwise"
            ),
            Self::AllocatorVariable { variable, value } => {
                write!(f, "measured with `{variable}={value}`, and holds only where it is set so")
            }
            Self::ProcessUnnamed => write!(
                f,
                "NVML does not tell processes apart here, so the worker's use of the GPU is what \
                 the GPU's grew by while it ran"
            ),
            Self::OthersGrew { grew } => write!(
                f,
                "other processes took up to {grew} more while points ran; a larger `--reserve` \
                 allows for them"
            ),
            Self::TwinDiffers { factor } => write!(
                f,
                "the card needs {:.1} % of what its virtual twin predicted; the search was \
                 corrected by that",
                factor * 100.0
            ),
            Self::NextOnTwin { points } => write!(
                f,
                "said not to fit after a try on the card's virtual twin, not on the card: \
                 micro-batch {}",
                list(points)
            ),
            Self::NoTwin { reason } => {
                write!(f, "searched on the card itself, without a virtual twin: {reason}")
            }
            Self::NotImplemented { names } => write!(
                f,
                "the virtual GPU does not implement what was called: {}; figures may be off",
                names.join(", ")
            ),
            Self::ReadBacks { count, places } => {
                write!(
                    f,
                    "{count} values came back from the virtual GPU that no kernel had computed; a \
                     model that acts on them may behave otherwise on a real card"
                )?;
                listed(places, f)
            }
            Self::DataDependentSizes { places, lowest_peak, highest_peak } => {
                let lowest = lowest_peak
                    .map_or_else(|| "an unknown lower bound".to_owned(), |it| it.to_string());
                write!(
                    f,
                    "sizes depend on values nobody knows: the peak is between {lowest} and \
                     {highest_peak}, and the plan holds for the latter"
                )?;
                listed(places, f)
            }
            Self::InternalError { message } => {
                write!(f, "a failure inside the virtual GPU, please report it: {message}")
            }
        }
    }
}

/// The first few, and how many more.
fn listed(places: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const MOST: usize = 3;
    for (index, place) in places.iter().take(MOST).enumerate() {
        write!(f, "{} {place}", if index == 0 { ":" } else { ";" })?;
    }
    match places.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => write!(f, "; and {more} more"),
    }
}

/// A point as a note names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Its setting.
    pub setting: Setting,
    /// Its micro-batch.
    pub micro_batch: u32,
}

fn list(points: &[Tried]) -> String {
    let points = points.iter().map(|it| format!("{} ({})", it.micro_batch, words(&it.setting)));
    points.collect::<Vec<_>>().join("; ")
}

fn words(setting: &Setting) -> String {
    setting.to_string()
}
