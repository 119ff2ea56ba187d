//! What a failure of libtorch means: read from its text, for tch passes nothing else on.

use std::any::Any;

use vramfit::measurement::Outcome;

/// Fragments of the messages in which PyTorch, CUDA, cuBLAS and cuDNN say that there is no device
/// memory. The first is the caching allocator's own. A cuDNN that finds no engine is none of them:
/// where it found none for lack of memory, the allocator has counted that. Nor is the CPU's allocator,
/// whose memory says nothing about the device's.
const OUT_OF_MEMORY: [&str; 5] = [
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
];

/// What libtorch puts after a message: advice for debugging, and the stack it was raised on.
const APPENDIX: [&str; 3] =
    ["\nException raised from ", "\nSearch for `cuda", "\nCUDA kernel errors might be "];

/// The words of a panic, without Rust's and libtorch's wrapping.
pub(crate) fn text_of_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    // tch unwraps its errors: the text is in the debug form of `TchError::Torch`.
    let inner = text
        .strip_prefix("called `Result::unwrap()` on an `Err` value: Torch(\"")
        .and_then(|rest| rest.strip_suffix("\")"));
    without_appendix(&inner.map_or_else(|| text.to_owned(), unescape))
}

/// An error of libtorch without what it appends.
pub(crate) fn without_appendix(text: &str) -> String {
    let end = APPENDIX.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    text[..end].trim_end().to_owned()
}

/// What a failure means for a point. `ooms` tells how often the allocator found no memory while it
/// ran: libraries on top of it report that in words of their own.
pub(crate) fn outcome(text: &str, ooms: i64) -> Outcome {
    // One line, whatever it was.
    let message = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if ooms > 0 || OUT_OF_MEMORY.iter().any(|fragment| message.contains(fragment)) {
        Outcome::OutOfMemory { message }
    } else {
        Outcome::failed(message)
    }
}

/// Undoes `str`'s debug form as far as libtorch's messages need it.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('t')) => plain.push('\t'),
            ('\\', Some(escaped)) => plain.push(escaped),
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tch::{Device, Kind, TchError, Tensor};

    use super::*;

    fn panic_of(body: impl FnOnce()) -> Box<dyn Any + Send> {
        catch_unwind(AssertUnwindSafe(body)).expect_err("the body panics")
    }

    #[test]
    fn a_panic_of_tch_gives_the_plain_words_of_libtorch() {
        let text = "Tried to say \"no\"\nException raised from malloc";
        let fail = || Err::<(), _>(TchError::Torch(text.to_owned()));
        let panic = panic_of(|| fail().unwrap());
        assert_eq!(text_of_panic(panic.as_ref()), "Tried to say \"no\"");
    }

    #[test]
    fn a_real_operator_that_fails_is_understood() {
        let panic = panic_of(|| {
            let two = Tensor::zeros([2, 3], (Kind::Float, Device::Cpu));
            let _ = two.mm(&two);
        });
        assert_eq!(
            text_of_panic(panic.as_ref()),
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
        );
    }

    #[test]
    fn no_memory_is_told_from_other_failures() {
        let oom = |text: &str, ooms| matches!(outcome(text, ooms), Outcome::OutOfMemory { .. });
        assert!(oom("CUDA out of memory. Tried to allocate 20.00 MiB.", 0));
        assert!(oom("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", 0));
        assert!(oom("GET was unable to find an engine to execute this computation", 1));
        assert!(!oom("GET was unable to find an engine to execute this computation", 0));
        assert!(!oom("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if", 0));
        assert!(!oom("[enforce fail] DefaultCPUAllocator: can't allocate memory", 0));
        assert!(!oom("CUDA error: an illegal memory access was encountered", 0));
    }

    #[test]
    fn a_message_becomes_one_line() {
        let Outcome::Failed { message, .. } = outcome("CUDA error: x\nCompile with y\n", 0) else {
            panic!("a failure");
        };
        assert_eq!(message, "CUDA error: x Compile with y");
    }
}
