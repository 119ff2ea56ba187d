//! CUDA graphs: work that was captured instead of done, and is done each time the graph is launched.

pub(crate) mod capture;
mod dot;

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_cost::Work;

pub(crate) use dot::print;

use crate::clock;
use crate::handles::Handles;
use crate::memory::OutOfMemory;
use crate::memory::graph::{GraphMemory, Lease};

/// What a node does (`cudaGraphNodeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Kernel = 0,
    Copy = 1,
    Set = 2,
    Host = 3,
    Graph = 4,
    WaitEvent = 6,
    RecordEvent = 7,
    Allocate = 10,
    Free = 11,
}

impl Kind {
    /// Whether the device is busy with it.
    fn takes_time(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Set)
    }
}

/// What a launch does of a node.
type Effect = Arc<dyn Fn() + Send + Sync>;

/// One step of a graph.
#[derive(Clone)]
pub(crate) struct Node {
    kind: Kind,
    name: Cow<'static, str>,
    /// The nodes that come before, by index.
    after: Vec<usize>,
    /// What it asks of the device.
    work: Work,
    effect: Effect,
}

/// A graph, still growing while its capture lasts.
pub(crate) struct Graph {
    nodes: Mutex<Vec<Node>>,
    memory: Arc<Lease>,
}

/// A graph made ready to launch.
pub(crate) struct Executable {
    nodes: Vec<Node>,
    memory: Arc<Lease>,
}

static GRAPHS: Handles<Graph> = Handles::new();
static EXECUTABLES: Handles<Executable> = Handles::new();

/// A node's handle: its graph's in the upper half, its index, from 1, in the lower.
fn node_handle(graph: usize, index: usize) -> usize {
    graph << 32 | (index + 1)
}

/// The graph behind `handle`.
pub(crate) fn graph(handle: *mut c_void) -> Option<Arc<Graph>> {
    GRAPHS.get(handle)
}

/// An empty graph on CUDA ordinal `ordinal`, and its handle.
pub(crate) fn create(ordinal: usize) -> (*mut c_void, Arc<Graph>) {
    let memory = Arc::new(Lease::new(GraphMemory::new(ordinal)));
    let graph = Arc::new(Graph { nodes: Mutex::default(), memory });
    (GRAPHS.insert_shared(graph.clone()), graph)
}

/// Ends a graph; what was made from it stays.
pub(crate) fn destroy(handle: *mut c_void) -> bool {
    GRAPHS.remove(handle)
}

/// A node by its handle: its graph, that one's handle, and its index.
fn node(handle: usize) -> Option<(Arc<Graph>, usize, usize)> {
    let (of, index) = (handle >> 32, (handle & 0xffff_ffff).checked_sub(1)?);
    let graph = GRAPHS.get(of as *mut c_void)?;
    let known = index < graph.nodes().len();
    known.then_some((graph, of, index))
}

/// What the node behind `handle` does.
pub(crate) fn kind_of(handle: usize) -> Option<Kind> {
    let (graph, _, index) = node(handle)?;
    let nodes = graph.nodes();
    Some(nodes[index].kind)
}

/// Handles of the nodes that the one behind `handle` follows.
pub(crate) fn dependencies_of(handle: usize) -> Option<Vec<usize>> {
    let (graph, of, index) = node(handle)?;
    let nodes = graph.nodes();
    Some(nodes[index].after.iter().map(|it| node_handle(of, *it)).collect())
}

impl Graph {
    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node; its index.
    fn add(&self, node: Node) -> usize {
        let mut nodes = self.nodes();
        nodes.push(node);
        nodes.len() - 1
    }

    /// Whether every node comes before one of `last`, or is one of them.
    fn ends_in(&self, last: &[usize]) -> bool {
        let nodes = self.nodes();
        let mut reached = vec![false; nodes.len()];
        let mut waiting = last.to_vec();
        while let Some(index) = waiting.pop() {
            if !std::mem::replace(&mut reached[index], true) {
                waiting.extend(&nodes[index].after);
            }
        }
        reached.into_iter().all(|it| it)
    }

    /// Handles of its nodes, in the order in which they were captured; `own` is the graph's.
    pub(crate) fn node_handles(&self, own: *mut c_void) -> Vec<usize> {
        (0..self.nodes().len()).map(|index| node_handle(own as usize, index)).collect()
    }

    /// Makes it ready to launch.
    pub(crate) fn instantiate(&self) -> *mut c_void {
        let (nodes, memory) = (self.nodes().clone(), self.memory.clone());
        EXECUTABLES.insert(Executable { nodes, memory })
    }
}

/// The executable behind `handle`.
pub(crate) fn executable(handle: *mut c_void) -> Option<Arc<Executable>> {
    EXECUTABLES.get(handle)
}

/// Ends an executable.
pub(crate) fn destroy_executable(handle: *mut c_void) -> bool {
    EXECUTABLES.remove(handle)
}

impl Executable {
    /// Sees to its memory, as the first launch or an upload does.
    pub(crate) fn prepare(&self) -> Result<(), OutOfMemory> {
        self.memory.launched()
    }

    /// Does its work. Nodes were captured after those that they follow.
    pub(crate) fn run(&self) {
        for node in &self.nodes {
            (node.effect)();
            if node.kind.takes_time() {
                clock::run(&node.name, &node.work);
            }
        }
    }
}
