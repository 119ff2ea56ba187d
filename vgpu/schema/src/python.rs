use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Characters of a line of code that are shown.
const MOST_CODE: usize = 60;

/// What only the Python side of a process knows: PyTorch's statistics, lines of the user's code, and
/// which values were really computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Python {
    /// Version of PyTorch.
    pub torch: String,
    /// The process's rank, if a launcher gave it one (`RANK`).
    pub rank: Option<u32>,
    /// PyTorch's own statistics, one entry a device that was used.
    pub allocators: Vec<Allocator>,
    /// Requests that found no memory, caught by the program or not, in order of the first of each.
    pub out_of_memory: Vec<OutOfMemory>,
    /// The exception that ended the program, if one did.
    pub ended_by: Option<EndedBy>,
    /// How small tensors were computed.
    pub shadow: Shadow,
}

/// What PyTorch's caching allocator says of one device, in bytes. Peaks are those of the whole run,
/// whether the program resets its statistics or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocator {
    /// Device ordinal.
    pub device: u32,
    /// Highest total of live blocks.
    pub allocated_peak_bytes: u64,
    /// Highest total taken from the device.
    pub reserved_peak_bytes: u64,
    /// Times the allocator had to give back its cache and ask again.
    pub retries: u64,
}

/// A line of the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Name of the function; `<module>` outside any.
    pub function: String,
    /// The line itself, without its indentation; empty where it cannot be read.
    pub code: String,
}

/// An allocation for which the device had no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// Device ordinal.
    pub device: u32,
    /// Bytes that PyTorch asked the device for.
    pub requested_bytes: u64,
    /// The user's lines, innermost first.
    pub places: Vec<Place>,
    /// How often it happened there with as many bytes.
    pub count: u64,
}

/// The exception that ended a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedBy {
    /// Name of its type.
    pub exception: String,
    /// First line of its text.
    pub message: String,
    /// Whether it says that the device is out of memory.
    pub out_of_memory: bool,
    /// The innermost of the user's lines in its traceback.
    pub place: Option<Place>,
}

/// Shadow execution: operators on small tensors really computed, on the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// Why it was not at work; none if it was.
    pub absent: Option<String>,
    /// Operators (overloads) that it watches.
    pub operators: u64,
    /// Calls of these operators.
    pub calls: u64,
    /// Calls whose small results were computed.
    pub computed: u64,
    /// Calls whose small results could not be, for want of an input, and hold stand-ins.
    pub stand_ins: u64,
    /// Operators that could not be computed though their inputs were there, with the reason.
    pub failures: Vec<String>,
    /// Values that the program read though they were not computed.
    pub unknown_reads: Vec<UnknownRead>,
    /// Results whose size depends on values that were not computed.
    pub sizes: Vec<DataDependentSize>,
}

/// A value that came back to the host and is a stand-in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownRead {
    /// The user's line, if there is one.
    pub place: Option<Place>,
    /// Element type as PyTorch names it, e.g. `float32`.
    pub element: String,
    /// Size of one copy in bytes.
    pub bytes: u64,
    /// How often it happened.
    pub count: u64,
}

/// A size that depends on values: an interval, and what the run went on with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDependentSize {
    /// Operator as PyTorch names it, e.g. `nonzero`.
    pub operator: String,
    /// The user's line, if there is one.
    pub place: Option<Place>,
    /// Fewest elements there could be, over all calls from there.
    pub lowest: u64,
    /// Most elements there could be.
    pub highest: u64,
    /// Elements that the run went on with, at most.
    pub taken: u64,
    /// Calls.
    pub count: u64,
}

impl fmt::Display for Place {
    /// `train.py:41 in main: `loss.item()``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Path::new(&self.file).file_name();
        let name = name.map_or_else(|| self.file.as_str().into(), |it| it.to_string_lossy());
        write!(f, "{name}:{}", self.line)?;
        if self.function != "<module>" && !self.function.is_empty() {
            write!(f, " in {}", self.function)?;
        }
        match self.code.char_indices().nth(MOST_CODE) {
            None if self.code.is_empty() => Ok(()),
            None => write!(f, ": `{}`", self.code),
            Some((end, _)) => write!(f, ": `{}…`", &self.code[..end]),
        }
    }
}

impl fmt::Display for UnknownRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} B) at {}", self.element, self.bytes, at(self.place.as_ref()))?;
        times(self.count, f)
    }
}

impl fmt::Display for DataDependentSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, lowest, highest, taken, .. } = self;
        let at = at(self.place.as_ref());
        write!(f, "{operator}: {lowest} to {highest}, went on with {taken}, at {at}")?;
        times(self.count, f)
    }
}

fn at(place: Option<&Place>) -> String {
    place.map_or_else(|| "a library".to_owned(), ToString::to_string)
}

fn times(count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if count == 1 { Ok(()) } else { write!(f, ", {count} times") }
}
