//! What each execution plan computes: followed from the tensors through operations, graph, heuristics
//! and configuration to the plan, for the report alone.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::asks;
use super::backend::{attribute, kind};
use super::data_type_name;
use super::real::Descriptor;
use crate::activity::ConvolutionShape;
use crate::by_address::ByAddress;

/// What is known of one descriptor of cuDNN's.
#[derive(Default)]
struct Node {
    kind: i32,
    /// Descriptors it refers to, by attribute.
    links: HashMap<i32, Vec<usize>>,
    /// Of a tensor.
    dimensions: Vec<i64>,
    /// Of a tensor.
    strides: Vec<i64>,
    /// Of a tensor.
    data_type: i32,
    /// What it computes, once that is settled.
    work: Option<Arc<Work>>,
    /// Of a plan.
    workspace: Option<i64>,
    /// Of a plan: whether its engine multiplies on tensor cores.
    tensor_cores: bool,
}

/// The principal operation of a graph and its three tensors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) kind: i32,
    pub(super) x: Vec<i64>,
    pub(super) w: Vec<i64>,
    pub(super) y: Vec<i64>,
    pub(super) data_type: i32,
    /// Whether the channels of `x` lie next to each other (NHWC).
    pub(super) channels_last: bool,
}

impl Work {
    pub(super) fn is_convolution(&self) -> bool {
        matches!(self.kind, FORWARD | BACKWARD_DATA | BACKWARD_FILTER)
    }
}

/// Descriptor types of convolutions.
pub(super) const FORWARD: i32 = 10;
pub(super) const BACKWARD_FILTER: i32 = 11;
pub(super) const BACKWARD_DATA: i32 = 12;
/// Of other operations.
pub(super) const MATRIX_PRODUCT: i32 = 19;
pub(super) const NORM_FORWARD: i32 = 29;
pub(super) const NORM_BACKWARD: i32 = 30;
pub(super) const ATTENTION_FORWARD: i32 = 41;
pub(super) const ATTENTION_BACKWARD: i32 = 43;

/// An operation whose shape is worth reporting: its descriptor type, its name, and the attributes that
/// hold its input, its filter (or second factor, or scale) and its output.
struct Operation {
    kind: i32,
    name: &'static str,
    tensors: [i32; 3],
}

/// Most telling first: a graph is known by the first of these that it contains.
const OPERATIONS: [Operation; 8] = [
    Operation { kind: FORWARD, name: "convolution_forward", tensors: [704, 703, 705] },
    Operation { kind: BACKWARD_DATA, name: "convolution_backward_data", tensors: [710, 709, 711] },
    Operation {
        kind: BACKWARD_FILTER,
        name: "convolution_backward_filter",
        tensors: [716, 715, 717],
    },
    Operation { kind: ATTENTION_FORWARD, name: "sdpa_forward", tensors: [2800, 2801, 2803] },
    Operation { kind: ATTENTION_BACKWARD, name: "sdpa_backward", tensors: [2851, 2852, 2854] },
    Operation { kind: MATRIX_PRODUCT, name: "matmul", tensors: [1520, 1521, 1522] },
    Operation { kind: NORM_FORWARD, name: "norm_forward", tensors: [2002, 2005, 2013] },
    Operation { kind: NORM_BACKWARD, name: "norm_backward", tensors: [2101, 2105, 2104] },
];

type Nodes = ByAddress<Node>;

fn nodes() -> MutexGuard<'static, Nodes> {
    static NODES: LazyLock<Mutex<Nodes>> = LazyLock::new(Default::default);
    NODES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn created(descriptor: Descriptor, kind: i32) {
    nodes().insert(descriptor as usize, Node { kind, ..Node::default() });
}

pub(super) fn destroyed(descriptor: Descriptor) {
    nodes().remove(&(descriptor as usize));
}

pub(super) fn kind_of(descriptor: Descriptor) -> Option<i32> {
    nodes().get(&(descriptor as usize)).map(|node| node.kind)
}

/// Notes that `descriptor` refers to `targets` by `attribute`.
pub(super) fn link(descriptor: Descriptor, attribute: i32, targets: &[usize]) {
    if let Some(node) = nodes().get_mut(&(descriptor as usize)) {
        node.links.insert(attribute, targets.to_vec());
    }
}

/// Notes a tensor's dimensions.
pub(super) fn dimensions(tensor: Descriptor, dimensions: &[i64]) {
    if let Some(node) = nodes().get_mut(&(tensor as usize)) {
        node.dimensions = dimensions.to_vec();
    }
}

/// Notes a tensor's strides.
pub(super) fn strides(tensor: Descriptor, strides: &[i64]) {
    if let Some(node) = nodes().get_mut(&(tensor as usize)) {
        node.strides = strides.to_vec();
    }
}

/// Notes a tensor's data type.
pub(super) fn data_type(tensor: Descriptor, data_type: i32) {
    if let Some(node) = nodes().get_mut(&(tensor as usize)) {
        node.data_type = data_type;
    }
}

/// Settles what `descriptor` computes. Its tensors may be destroyed after this.
pub(super) fn finalized(descriptor: Descriptor) {
    let mut nodes = nodes();
    let work = nodes.get(&(descriptor as usize)).and_then(|node| work_of(&nodes, node));
    if let Some(node) = nodes.get_mut(&(descriptor as usize)) {
        node.work = work.or(node.work.take());
    }
}

/// Settles what `plan` computes, its workspace in bytes, and whether it does so on tensor cores.
pub(super) fn finalized_plan(plan: Descriptor, workspace: i64, tensor_cores: bool) {
    finalized(plan);
    if let Some(node) = nodes().get_mut(&(plan as usize)) {
        node.workspace = Some(workspace);
        node.tensor_cores = tensor_cores;
    }
}

/// Notes that cuDNN filled `targets` in on behalf of `source`: configurations of a heuristic.
pub(super) fn passed_on(source: Descriptor, targets: &[usize]) {
    let mut nodes = nodes();
    let work = nodes.get(&(source as usize)).and_then(|node| node.work.clone());
    for target in targets {
        if let Some(node) = nodes.get_mut(target) {
            node.work.clone_from(&work);
        }
    }
}

/// The configuration that `plan` was given.
pub(super) fn config_of_plan(plan: Descriptor) -> Option<Descriptor> {
    let nodes = nodes();
    let configs = nodes.get(&(plan as usize))?.links.get(&attribute::PLAN_ENGINE_CONFIG)?;
    configs.first().map(|config| *config as Descriptor)
}

/// The workspace of a plan that was finalized here, in bytes.
pub(super) fn workspace_of_plan(plan: Descriptor) -> Option<i64> {
    nodes().get(&(plan as usize))?.workspace
}

/// What `descriptor` computes, once that is settled.
pub(super) fn work(descriptor: Descriptor) -> Option<Arc<Work>> {
    nodes().get(&(descriptor as usize))?.work.clone()
}

/// What executing `plan` would compute; none for a graph without an operation of [`OPERATIONS`].
pub(super) fn work_of_plan(plan: Descriptor) -> Option<ConvolutionShape> {
    let (work, workspace) = {
        let nodes = nodes();
        let node = nodes.get(&(plan as usize))?;
        (Arc::clone(node.work.as_ref()?), node.workspace.unwrap_or_default())
    };
    let operation = OPERATIONS.iter().find(|operation| operation.kind == work.kind)?;
    Some(ConvolutionShape {
        operation: operation.name,
        x: work.x.clone(),
        w: work.w.clone(),
        y: work.y.clone(),
        data_type: data_type_name(work.data_type),
        workspace_bytes: workspace.unsigned_abs(),
    })
}

/// What executing `plan` asks of the device.
pub(super) fn asks_of_plan(plan: Descriptor) -> vramfit_vgpu_cost::Work {
    let nodes = nodes();
    let plan = nodes.get(&(plan as usize));
    let work = plan.and_then(|plan| Some(asks::of(plan.work.as_ref()?, plan.tensor_cores)));
    work.unwrap_or(vramfit_vgpu_cost::Work::Unknown)
}

fn work_of(nodes: &Nodes, node: &Node) -> Option<Arc<Work>> {
    let through = |attribute| {
        let target = node.links.get(&attribute)?.first()?;
        nodes.get(target)?.work.clone()
    };
    match node.kind {
        kind::OPERATION_GRAPH => {
            let operations = node.links.get(&attribute::GRAPH_OPERATIONS)?;
            let works = operations.iter().filter_map(|it| nodes.get(it)?.work.clone());
            works.min_by_key(|work| OPERATIONS.iter().position(|it| it.kind == work.kind))
        }
        kind::ENGINE => through(attribute::ENGINE_OPERATION_GRAPH),
        kind::ENGINE_HEURISTICS => through(attribute::HEURISTICS_OPERATION_GRAPH),
        kind::ENGINE_CONFIG => through(attribute::CONFIG_ENGINE),
        kind::EXECUTION_PLAN => through(attribute::PLAN_ENGINE_CONFIG),
        kind::TENSOR => None,
        other => {
            let operation = OPERATIONS.iter().find(|operation| operation.kind == other)?;
            let tensor = |attribute| nodes.get(node.links.get(&attribute)?.first()?);
            let [x, w, y] = operation.tensors.map(tensor);
            let shape = |tensor: Option<&Node>| {
                tensor.map(|tensor| tensor.dimensions.clone()).unwrap_or_default()
            };
            let data_type = x.map_or(0, |tensor| tensor.data_type);
            let channel_stride = x.and_then(|tensor| tensor.strides.get(1).copied());
            Some(Arc::new(Work {
                kind: other,
                x: shape(x),
                w: shape(w),
                y: shape(y),
                data_type,
                channels_last: channel_stride == Some(1),
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(address: usize, shape: &[i64]) -> Descriptor {
        let descriptor = address as Descriptor;
        created(descriptor, kind::TENSOR);
        dimensions(descriptor, shape);
        data_type(descriptor, 2);
        descriptor
    }

    fn node(address: usize, kind: i32, links: &[(i32, &[usize])]) -> Descriptor {
        let descriptor = address as Descriptor;
        created(descriptor, kind);
        for (attribute, targets) in links {
            link(descriptor, *attribute, targets);
        }
        finalized(descriptor);
        descriptor
    }

    #[test]
    fn a_plan_knows_its_convolution_after_the_descriptors_it_came_from_are_gone() {
        let tensors =
            [tensor(1, &[8, 3, 9, 9]), tensor(2, &[4, 3, 3, 3]), tensor(3, &[8, 4, 7, 7])];
        node(4, 10, &[(704, &[1]), (703, &[2]), (705, &[3])]);
        node(5, 19, &[(1520, &[1])]);
        node(6, kind::OPERATION_GRAPH, &[(attribute::GRAPH_OPERATIONS, &[5, 4])]);
        let heuristics =
            node(7, kind::ENGINE_HEURISTICS, &[(attribute::HEURISTICS_OPERATION_GRAPH, &[6])]);
        created(8 as Descriptor, kind::ENGINE_CONFIG);
        passed_on(heuristics, &[8]);
        let plan = 9 as Descriptor;
        created(plan, kind::EXECUTION_PLAN);
        link(plan, attribute::PLAN_ENGINE_CONFIG, &[8]);
        assert_eq!(config_of_plan(plan), Some(8 as Descriptor));
        finalized_plan(plan, 4096, false);
        tensors.into_iter().for_each(destroyed);
        (4..9).for_each(|address| destroyed(address as Descriptor));

        let work = work_of_plan(plan).unwrap();
        assert_eq!(work.operation, "convolution_forward");
        assert_eq!((work.x, work.w), (vec![8, 3, 9, 9], vec![4, 3, 3, 3]));
        assert_eq!((work.y, work.data_type), (vec![8, 4, 7, 7], "HALF"));
        assert_eq!(work.workspace_bytes, 4096);
        destroyed(plan);
    }
}
