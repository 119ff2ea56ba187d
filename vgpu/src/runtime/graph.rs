//! Graphs: made by capture, instantiated, launched.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use vramfit_vgpu_cost::Work;

use super::device::checked;
use super::status::{INVALID_VALUE, Status, UNKNOWN, status};
use super::stream::stream;
use super::version::runtime_version;
use crate::entry::{In, Out, entry_points};
use crate::graph::{self, Kind, capture};
use crate::{device, memory};

fn instantiate(executable: Out<*mut c_void>, handle: *mut c_void) -> Result<(), Status> {
    let graph = graph::graph(handle).ok_or(INVALID_VALUE)?;
    executable.set(graph.instantiate());
    Ok(())
}

/// Launches an executable graph: in a capture it becomes a node.
pub(crate) fn launch(handle: *mut c_void, on: *mut c_void) -> Result<(), Status> {
    let executable = graph::executable(handle).ok_or(INVALID_VALUE)?;
    stream(on)?;
    executable.prepare()?;
    capture::submit(on, Kind::Graph, "graph", Work::Unknown, move || executable.run())
}

/// Hands out a list of handles as CUDA does: all of them counted, as many written as there is room.
fn list(found: &[usize], target: *mut usize, count: Out<usize>) -> Result<(), Status> {
    if target.is_null() {
        count.set(found.len());
        return Ok(());
    }
    let room = count.get().ok_or(INVALID_VALUE)?;
    for (place, handle) in found.iter().enumerate().take(room) {
        // SAFETY: the caller's array has room for `room` handles.
        unsafe { target.add(place).write_unaligned(*handle) };
    }
    for place in found.len()..room {
        // SAFETY: as above; the rest of the array is set to null, as the manual says.
        unsafe { target.add(place).write_unaligned(0) };
    }
    count.set(found.len().min(room));
    Ok(())
}

entry_points! {
    on_panic = UNKNOWN;

    /// Makes an empty graph.
    fn cudaGraphCreate(handle: Out<*mut c_void>, _flags: c_uint) -> Status {
        handle.set(graph::create(device::current()).0);
        status(Ok(()))
    }

    /// Ends a graph.
    fn cudaGraphDestroy(handle: *mut c_void) -> Status {
        status(if graph::destroy(handle) { Ok(()) } else { Err(INVALID_VALUE) })
    }

    /// Makes a graph ready to launch.
    fn cudaGraphInstantiate(
        executable: Out<*mut c_void>,
        handle: *mut c_void,
        _flags: c_ulonglong,
    ) -> Status {
        status(instantiate(executable, handle))
    }

    /// Makes a graph ready to launch.
    fn cudaGraphInstantiateWithFlags(
        executable: Out<*mut c_void>,
        handle: *mut c_void,
        _flags: c_ulonglong,
    ) -> Status {
        status(instantiate(executable, handle))
    }

    /// Ends an executable graph.
    fn cudaGraphExecDestroy(executable: *mut c_void) -> Status {
        status(if graph::destroy_executable(executable) { Ok(()) } else { Err(INVALID_VALUE) })
    }

    /// Launches a graph.
    fn cudaGraphLaunch(executable: *mut c_void, on: *mut c_void) -> Status {
        status(launch(executable, on))
    }

    /// Does before a launch what can be done before.
    fn cudaGraphUpload(executable: *mut c_void, on: *mut c_void) -> Status {
        let executable = graph::executable(executable).ok_or(INVALID_VALUE);
        status(stream(on).and(executable).and_then(|executable| Ok(executable.prepare()?)))
    }

    /// Nodes of a graph.
    fn cudaGraphGetNodes(
        handle: *mut c_void,
        nodes: *mut usize,
        count: Out<usize>,
    ) -> Status {
        let graph = graph::graph(handle).ok_or(INVALID_VALUE);
        status(graph.and_then(|graph| list(&graph.node_handles(handle), nodes, count)))
    }

    /// What a node does.
    fn cudaGraphNodeGetType(node: usize, kind: Out<c_int>) -> Status {
        let found = graph::kind_of(node).ok_or(INVALID_VALUE);
        status(found.map(|found| kind.set(found as c_int)))
    }

    /// Nodes that a node follows. CUDA 13 asks for the edges' data as well, of which there is none; in
    /// CUDA 12 the third argument is the count, and the longer function has the name `_v2`.
    fn cudaGraphNodeGetDependencies(
        node: usize,
        dependencies: *mut usize,
        edges_or_count: *mut usize,
        count: *mut usize,
    ) -> Status {
        let count = if runtime_version() < 13_000 { edges_or_count } else { count };
        let found = graph::dependencies_of(node).ok_or(INVALID_VALUE);
        status(found.and_then(|found| list(&found, dependencies, Out::of(count))))
    }

    /// Nodes that a node follows (CUDA 12, since 12.3).
    fn cudaGraphNodeGetDependencies_v2(
        node: usize,
        dependencies: *mut usize,
        _edges: *mut c_void,
        count: Out<usize>,
    ) -> Status {
        let found = graph::dependencies_of(node).ok_or(INVALID_VALUE);
        status(found.and_then(|found| list(&found, dependencies, count)))
    }

    /// What graphs hold of a device's memory: in use, the most in use, reserved, the most reserved.
    /// What is reserved counts as in use.
    fn cudaDeviceGetGraphMemAttribute(ordinal: c_int, which: c_int, value: Out<u64>) -> Status {
        status(checked(ordinal).and_then(|(ordinal, _)| {
            let held = memory::graph::reserved(ordinal, |it| *it);
            value.set(match which {
                0 | 2 => held.now,
                1 | 3 => held.high,
                _ => return Err(INVALID_VALUE),
            });
            Ok(())
        }))
    }

    /// Resets the most that graphs held, to what they hold now.
    fn cudaDeviceSetGraphMemAttribute(ordinal: c_int, which: c_int, value: Out<u64>) -> Status {
        status(checked(ordinal).and_then(|(ordinal, _)| match (which, value.get()) {
            (1 | 3, Some(0)) => {
                memory::graph::reserved(ordinal, |it| it.high = it.now);
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }))
    }

    /// Gives back what graphs keep and do not use: they keep only what the next launch needs.
    fn cudaDeviceGraphMemTrim(ordinal: c_int) -> Status {
        status(checked(ordinal).map(|_| ()))
    }

    /// Draws a graph into a file of Graphviz's language.
    fn cudaGraphDebugDotPrint(handle: *mut c_void, path: In<c_char>, _flags: c_uint) -> Status {
        let graph = graph::graph(handle).ok_or(INVALID_VALUE);
        status(graph.and_then(|graph| {
            graph::print(&graph, handle, Path::new(path.text())).map_err(|_| INVALID_VALUE)
        }))
    }
}
