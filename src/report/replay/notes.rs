use std::collections::BTreeSet;

use crate::snapshot::{History, Script};
use crate::units::Bytes;

/// Streams that PyTorch makes of one priority; further ones are these again
/// (`kStreamsPerPool` of its `c10/cuda/CUDAStream.h`).
const STREAMS: usize = 32;

/// What one should know of a replay: what was put back, guessed at, or left out. `limited` is a
/// setting whose process limits itself to a part of the card's memory, and `context` the card's, where
/// one was chosen.
pub fn notes(
    history: &History<'_>,
    script: &Script,
    limited: Option<(&str, f64)>,
    context: Option<Bytes>,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(midst(history, script));
    notes.extend(flushes(script));
    let failed = history.recorded().out_of_memory;
    if failed > 0 {
        notes.push(format!(
            "when it was recorded, the program ran out of memory ({}); what it asked for is asked for \
             again, and is part of the peaks",
            times(failed)
        ));
    }
    notes.extend(lanes(script));
    notes.extend(contradictions(history, script));
    notes.extend(limited.map(|(conf, fraction)| {
        format!(
            "{conf} does something only in a process that limits itself, here by \
             torch.cuda.set_per_process_memory_fraction({fraction})"
        )
    }));
    notes.extend(context.map(|context| {
        format!(
            "of what lies outside PyTorch's allocator, which no snapshot holds, only the CUDA context \
             of {context} is counted: NCCL and other libraries come on top"
        )
    }));
    notes
}

fn midst(history: &History<'_>, script: &Script) -> Option<String> {
    if history.is_whole() {
        return None;
    }
    let mut text = format!(
        "the trace begins in the midst of the program, with {} in use and {} reserved: `as recorded` \
         puts back the segments as they lay; the other rows begin with what was in use and nothing \
         cached, so compare them with each other",
        history.live_before(),
        history.reserved_before()
    );
    if script.misplaced > 0 {
        text += match script.misplaced {
            1 => "; one block or free part could not be put back at its place".to_owned(),
            count => {
                format!("; {count} blocks or free parts could not be put back at their places")
            }
        }
        .as_str();
    }
    Some(text)
}

fn flushes(script: &Script) -> Vec<String> {
    let mut notes = Vec::new();
    let guess = match script.guessed {
        0 => "",
        _ => " (that it was so is inferred: the record has no stacks of calls there)",
    };
    if script.emptied_by_program > 0 {
        notes.push(format!(
            "the program emptied the cache {}, and so does the replay{guess}",
            times(script.emptied_by_program)
        ));
    }
    if script.emptied_by_allocator > 0 {
        notes.push(format!(
            "when it was recorded, the allocator gave memory back by itself {}, for want of it or \
             since a pool was done with{guess}; the replay does so only when it has to",
            times(script.emptied_by_allocator)
        ));
    }
    notes
}

fn lanes(script: &Script) -> Vec<String> {
    let streams: BTreeSet<_> = script.lanes.iter().map(|lane| lane.stream).collect();
    let pools: BTreeSet<_> = script.lanes.iter().filter_map(|lane| lane.pool).collect();
    let mut notes = Vec::new();
    if streams.len() > STREAMS {
        notes.push(format!(
            "of {} streams some share one: PyTorch has {STREAMS} beside the default one",
            streams.len()
        ));
    }
    if !pools.is_empty() {
        notes.push(format!(
            "private pools (CUDA graphs, torch.cuda.MemPool): {}, each replayed as a \
             torch.cuda.MemPool; blocks of pools that were gone at the end count as common ones",
            pools.len()
        ));
    }
    notes
}

fn contradictions(history: &History<'_>, script: &Script) -> Option<String> {
    let unknown = history.unknown_events();
    let contradictions = history.contradictions().max(script.skipped);
    match (contradictions, unknown) {
        (0, 0) => None,
        (0, unknown) => Some(format!("{unknown} events of kinds that are not known were left out")),
        (count, _) => Some(format!(
            "{count} events contradict others, as where recording was turned off for a while: the \
             peaks are those of what could be followed"
        )),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
