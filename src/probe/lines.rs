//! What a child writes, line by line.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Longest line that is still read as one; a reply has a few hundred bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// The last lines of a pipe, read in a thread of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// Reads `pipe` to its end, keeps the last `most` lines, and lets `listener` hear each.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn read(
        pipe: impl Read + Send + 'static,
        most: usize,
        listener: Option<fn(&str)>,
        name: &str,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let lines = Self::default();
        let kept = lines.clone();
        let read = move || {
            let mut pipe = BufReader::new(pipe);
            while let Some(line) = next_line(&mut pipe) {
                if let Some(hear) = listener {
                    hear(&line);
                }
                let mut kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == most {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(read)?;
        Ok((lines, thread))
    }

    /// Those that are kept now, the oldest first.
    pub(super) fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The next line without its end; none at the end of the pipe.
pub(super) fn next_line(pipe: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    match pipe.take(LONGEST_LINE).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}
