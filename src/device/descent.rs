//! Which process descends from which, as `/proc` tells (proc(5), field 4 of `/proc/PID/stat`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

/// Longest line of ancestors that is followed.
const GENERATIONS: usize = 64;

/// Whether a process is `ancestor` or descends from it.
pub fn descends_from(pid: u32, ancestor: u32) -> bool {
    std::iter::successors(Some(pid), |pid| parent(*pid))
        .take(GENERATIONS)
        .any(|pid| pid == ancestor)
}

/// All that descend from a process and still run, children before their own children. A launcher's
/// children may be in other process groups and sessions.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, parent) in processes().filter_map(|pid| Some((pid, parent(pid)?))) {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let own = children.remove(pid).unwrap_or_default();
        found.extend(own);
        next += 1;
    }
    found.remove(0);
    found
}

/// All that still run and were started with this variable in their environment, also those whose
/// parents have ended (proc(5), `/proc/PID/environ`).
pub fn started_with(name: &str, value: &OsStr) -> Vec<u32> {
    let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|it| it.split(|byte| *byte == 0).any(|variable| variable == wanted))
    };
    processes().filter(has).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_grandchild_descends_from_this_process_and_not_the_other_way_round() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        let own = std::process::id();
        assert!(descends_from(grandchild, own) && descends_from(own, own));
        assert!(!descends_from(own, grandchild));
        assert_eq!(descendants(child.id()), [grandchild]);
        Command::new("kill").arg(grandchild.to_string()).status().unwrap();
        child.wait().unwrap();
    }
}
