//! What a launch of a kernel asks of the device: from the kernel's name, the grid and, where the kernel's
//! signature is sure, its arguments.
//!
//! ```text
//! signature  element                        a mangled name, taken apart; sizes of types
//!        │
//! elementwise reduction lists table …       families of kernels: from a signature, how to tell the work
//!        │                                  of one launch (once per kernel)
//! call                                      one launch: sizes and argument values
//! ```
//!
//! A kernel that no family knows is taken to read and to write four bytes a thread, and is counted.

mod attention;
mod call;
mod compiled;
mod concatenation;
mod element;
mod elementwise;
mod lists;
mod reduction;
mod signature;
mod table;
mod tensors;

use std::sync::OnceLock;

use vramfit_vgpu_cost::{Streaming, StreamingClass, Work};

use self::call::Call;
use self::signature::Signature;
use crate::launch::Launch;

/// Tells the work of one launch; none where the arguments are not what they should be.
type Rule = Box<dyn Fn(&Call) -> Option<Work> + Send + Sync>;

/// Families of kernels, most particular first: each gives a rule for a kernel that it knows.
const FAMILIES: [fn(&Signature) -> Option<Rule>; 8] = [
    elementwise::rule,
    reduction::rule,
    lists::rule,
    attention::rule,
    concatenation::rule,
    table::rule,
    compiled::rule,
    tensors::rule,
];

/// Bytes that a thread of an unknown kernel is taken to move: it reads one number and writes one.
const UNKNOWN_BYTES: u64 = 8;

/// How to tell what the launches of one kernel ask for.
#[derive(Default)]
pub(crate) struct Recipe(OnceLock<Option<Rule>>);

impl Recipe {
    /// What launch `launch` of the kernel with mangled name `name` asks of the device.
    pub(crate) fn work(&self, name: &str, launch: &Launch) -> Work {
        let rule = self.0.get_or_init(|| {
            let signature = Signature::of(name);
            FAMILIES.iter().find_map(|family| family(&signature))
        });
        let call = Call::new(launch);
        rule.as_ref().and_then(|rule| rule(&call)).unwrap_or_else(|| guess(&call))
    }
}

/// What an unknown kernel is taken to ask for.
fn guess(call: &Call) -> Work {
    let threads = call.threads();
    let bytes = threads * UNKNOWN_BYTES;
    Work::Streaming(Streaming { class: StreamingClass::Unrecognised, bytes, threads })
}

/// A kernel that is bound by memory.
fn streaming(class: StreamingClass, bytes: u64, call: &Call) -> Option<Work> {
    Some(Work::Streaming(Streaming { class, bytes, threads: call.threads() }))
}
