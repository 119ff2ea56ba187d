//! What a program that failed wrote: whether it was for want of memory, and where in its own code.

use crate::error::{harmless_lines, shorten};

/// How libraries say that the GPU has no memory left. Where cuDNN finds no engine, that is nearly
/// always for want of a workspace.
const OF_DEVICE: [&str; 13] = [
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "cudaErrorMemoryAllocation",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
    "Unable to find a valid cuDNN algorithm",
    "unable to find an engine to execute this computation",
    "Cuda failure 2 'out of memory'",
    // Of `backend:cudaMallocAsync`.
    "would exceed allowed memory. (out of memory)",
];
/// How they say it of the host.
const OF_HOST: [&str; 4] = [
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "std::bad_alloc",
    "Cannot allocate memory",
];
/// Begins what Python prints of an exception that nobody caught.
const HEADER: &str = "Traceback (most recent call last):";
/// Most characters of a message.
const LONGEST: usize = 300;

/// Memory that there was none of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OutOfMemory {
    /// The GPU's, in the program's own words.
    Device(String),
    /// The host's.
    Host(String),
}

/// The last line that tells of memory there was none of. Where Python ended with an exception, what was
/// said before it is not why.
pub(super) fn out_of_memory(lines: &[String]) -> Option<OutOfMemory> {
    let exception = lines.iter().position(|line| without_rank(line).trim_end() == HEADER);
    let lines = &lines[exception.unwrap_or(0)..];
    let says = |line: &str, words: &[&str]| words.iter().any(|words| line.contains(words));
    lines.iter().rev().find_map(|line| {
        let words = || shorten(without_rank(line), LONGEST);
        match () {
            () if says(line, &OF_DEVICE) => Some(OutOfMemory::Device(words())),
            () if says(line, &OF_HOST) || line.trim() == "MemoryError" => {
                Some(OutOfMemory::Host(words()))
            }
            () => None,
        }
    })
}

/// An exception that nobody caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uncaught {
    /// Its type and text, in one line.
    pub(super) exception: String,
    /// The frames of the program's own files, as Python prints them; empty if there are none.
    pub(super) frames: String,
}

/// The first uncaught exception of the last chain that Python printed: of several ranks, and of
/// exceptions that followed from others, it is the one that the others follow from.
pub(super) fn uncaught(lines: &[String]) -> Option<Uncaught> {
    let plain: Vec<&str> = lines.iter().map(|line| without_rank(line)).collect();
    let begin = plain.iter().rposition(|line| line.trim_end() == HEADER)?;
    let (mut frames, mut exception) = (Vec::new(), None);
    let mut shown = false;
    for line in &plain[begin + 1..] {
        if let Some(file) = line.strip_prefix("  File \"") {
            shown = is_users(file.split('"').next().unwrap_or_default());
        } else if !line.starts_with(' ') {
            exception = Some(*line).filter(|line| !line.is_empty());
            break;
        }
        if shown {
            frames.push(*line);
        }
    }
    let frames = if frames.is_empty() { String::new() } else { frames.join("\n") };
    Some(Uncaught { exception: shorten(exception?, LONGEST), frames: harmless_lines(&frames) })
}

/// The last line with something in it.
pub(super) fn last_line(lines: &[String]) -> Option<String> {
    lines.iter().rev().find(|line| !line.trim().is_empty()).map(|line| shorten(line, LONGEST))
}

/// A line without what `torchrun` puts before those of a rank.
fn without_rank(line: &str) -> &str {
    let tagged = line.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    match tagged {
        Some((tag, rest)) if tag.starts_with("rank") || tag.starts_with("default") => {
            rest.strip_prefix(' ').unwrap_or(rest)
        }
        _ => line,
    }
}

/// Whether a file is the program's own: none of a library, of Python itself, or of ours.
fn is_users(file: &str) -> bool {
    let foreign = ["/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"];
    !file.starts_with('<')
        && !foreign.iter().any(|part| file.contains(part))
        && !file.contains("/python/vramfit_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_known_ways_to_say_out_of_memory_are_understood() {
        for text in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "RuntimeError: CUDA error: out of memory",
            "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
            "[rank1]: torch.OutOfMemoryError: CUDA out of memory.",
            "RuntimeError: GET was unable to find an engine to execute this computation",
        ] {
            let found = out_of_memory(&lines(&format!("epoch 1\n{text}\n\n")));
            assert!(matches!(found, Some(OutOfMemory::Device(_))), "{text}: {found:?}");
        }
        let host = "RuntimeError: [enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't \
                    allocate memory: you tried to allocate 68719476736 bytes.";
        assert!(matches!(out_of_memory(&lines(host)), Some(OutOfMemory::Host(_))));
        assert_eq!(out_of_memory(&lines("KeyError: 'memory'")), None);
    }

    #[test]
    fn advice_before_an_exception_is_not_its_reason() {
        let advice = "tip: against CUDA out of memory lower the batch";
        let error = format!("{HEADER}\n  File \"a.py\", line 1\nKeyError: 'x'");
        assert_eq!(out_of_memory(&lines(&format!("{advice}\n{error}"))), None);
        let both = format!("{error}\nduring which\n{HEADER}\nRuntimeError: CUDA out of memory");
        assert!(out_of_memory(&lines(&both)).is_some());
        assert!(out_of_memory(&lines(advice)).is_some());
    }

    #[test]
    fn a_traceback_is_shortened_to_the_programs_own_frames() {
        let text = "warming up\n\
             Traceback (most recent call last):\n\
             \x20 File \"/home/a/train.py\", line 40, in <module>\n\
             \x20   main()\n\
             \x20   ~~~~^^\n\
             \x20 File \"/venv/lib/python3.11/site-packages/torch/nn/m.py\", line 1, in f\n\
             \x20   return g()\n\
             \x20 File \"/home/a/model.py\", line 7, in forward\n\
             \x20   raise ValueError(\"no\")\n\
             ValueError: no\n";
        let found = uncaught(&lines(text)).unwrap();
        assert_eq!(found.exception, "ValueError: no");
        assert_eq!(
            found.frames,
            "  File \"/home/a/train.py\", line 40, in <module>\n    main()\n    ~~~~^^\n  \
             File \"/home/a/model.py\", line 7, in forward\n    raise ValueError(\"no\")"
        );
    }

    #[test]
    fn the_tags_of_ranks_are_taken_off() {
        let text = "[rank0]: Traceback (most recent call last):\n\
             [rank0]:   File \"/home/a/ddp.py\", line 4, in <module>\n\
             [rank0]:     f()\n\
             [rank0]: NameError: name 'f' is not defined\n";
        let found = uncaught(&lines(text)).unwrap();
        assert_eq!(found.exception, "NameError: name 'f' is not defined");
        assert!(found.frames.starts_with("  File \"/home/a/ddp.py\""), "{}", found.frames);
    }

    #[test]
    fn without_a_traceback_the_last_line_must_do() {
        assert_eq!(uncaught(&lines("Segmentation fault\n")), None);
        assert_eq!(last_line(&lines("a\nb \n\n")), Some("b".to_owned()));
    }
}
