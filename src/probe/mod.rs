//! Trying points: the worker's protocol, the worker as a child process, and which point to try next.

pub mod protocol;
