//! A graph as a drawing for Graphviz.

use std::ffi::c_void;
use std::fmt::Write;
use std::path::Path;

use super::Graph;

/// Writes `graph`, whose handle is `handle`, to a file in the language of Graphviz.
pub(crate) fn print(graph: &Graph, handle: *mut c_void, path: &Path) -> std::io::Result<()> {
    std::fs::write(path, text(graph, handle as usize))
}

fn text(graph: &Graph, handle: usize) -> String {
    let mut text = format!("digraph graph_{handle:x} {{\n");
    for (index, node) in graph.nodes().iter().enumerate() {
        let name = node.name.replace('\\', "\\\\").replace('"', "\\\"");
        // Writing to a text cannot fail.
        let _ =
            writeln!(text, "  n{index} [shape=box, label=\"{index}: {:?} {name}\"];", node.kind);
        for before in &node.after {
            let _ = writeln!(text, "  n{before} -> n{index};");
        }
    }
    text.push_str("}\n");
    text
}
