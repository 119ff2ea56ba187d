//! What this process did on the virtual GPU, counted.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_schema::{Collective, Convolution, CopyTotals, Gemm, ReadBack};

use crate::kernel::{self, Kernel};

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicPtr<Kernel> = AtomicPtr::new(std::ptr::null_mut());
static FILLS: AtomicU64 = AtomicU64::new(0);
static TO_DEVICE: AtomicU64 = AtomicU64::new(0);
static TO_DEVICE_BYTES: AtomicU64 = AtomicU64::new(0);
static TO_HOST: AtomicU64 = AtomicU64::new(0);
static TO_HOST_BYTES: AtomicU64 = AtomicU64::new(0);

type Counts<K> = LazyLock<Mutex<HashMap<K, u64>>>;

static GEMMS: Counts<GemmShape> = LazyLock::new(Default::default);
static CONVOLUTIONS: Counts<ConvolutionShape> = LazyLock::new(Default::default);
static COLLECTIVES: Counts<(&'static str, u64)> = LazyLock::new(Default::default);
static ESTIMATES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
static READ_BACKS: Counts<(String, u64)> = LazyLock::new(Default::default);
static NOT_IMPLEMENTED: Mutex<BTreeSet<Cow<'static, str>>> = Mutex::new(BTreeSet::new());
static INTERNAL_ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A program may call what does not exist a million times; one line each is enough, and a bug in a
/// hot path must not fill the memory.
const MOST_INTERNAL_ERRORS: usize = 100;

/// The matrix product of one library call. See [`Gemm`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct GemmShape {
    /// The library call.
    pub(crate) call: &'static str,
    /// Rows of the result.
    pub(crate) m: u64,
    /// Columns of the result.
    pub(crate) n: u64,
    /// Length of the inner products.
    pub(crate) k: u64,
    /// Products in the call.
    pub(crate) batch: u64,
    /// Input type as CUDA names it.
    pub(crate) input_type: &'static str,
    /// Compute type as cuBLAS names it.
    pub(crate) compute_type: &'static str,
}

/// One execution of a cuDNN plan. See [`Convolution`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConvolutionShape {
    /// Operation as cuDNN names it.
    pub(crate) operation: &'static str,
    /// Input.
    pub(crate) x: Vec<i64>,
    /// Filter.
    pub(crate) w: Vec<i64>,
    /// Output.
    pub(crate) y: Vec<i64>,
    /// Input type as cuDNN names it.
    pub(crate) data_type: &'static str,
    /// Workspace of the plan.
    pub(crate) workspace_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count<K: Eq + Hash>(counts: &Counts<K>, key: K) {
    *lock(counts).entry(key).or_insert(0) += 1;
}

/// Kernels launched so far: the clock of the virtual GPU.
pub(crate) fn launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// Counts a launch of `kernel`.
pub(crate) fn launched_kernel(kernel: &'static Kernel) {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    kernel.launches.fetch_add(1, Ordering::Relaxed);
    LAST.store(std::ptr::from_ref(kernel).cast_mut(), Ordering::Relaxed);
}

/// Counts library call `name`, which on a real GPU would launch kernels.
pub(crate) fn launched(name: &'static str) {
    launched_kernel(kernel::named(name));
}

/// Counts a constant fill that was carried out.
pub(crate) fn computed_fill() {
    FILLS.fetch_add(1, Ordering::Relaxed);
}

/// Counts a matrix product.
pub(crate) fn gemm(shape: GemmShape) {
    launched(shape.call);
    count(&GEMMS, shape);
}

/// Counts the execution of a cuDNN plan.
pub(crate) fn convolution(shape: ConvolutionShape) {
    launched(shape.operation);
    count(&CONVOLUTIONS, shape);
}

/// Counts an NCCL call; `bytes` is one rank's share.
pub(crate) fn collective(call: &'static str, bytes: u64) {
    launched(call);
    count(&COLLECTIVES, (call, bytes));
}

/// Notes that the report holds a size which is an estimate, and on what basis.
pub(crate) fn estimate(basis: &'static str) {
    lock(&ESTIMATES).insert(basis);
}

/// Counts a copy from host to device.
pub(crate) fn copied_to_device(bytes: u64) {
    TO_DEVICE.fetch_add(1, Ordering::Relaxed);
    TO_DEVICE_BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// Counts a copy from device to host; `computed` if a kernel should have written what it reads.
pub(crate) fn copied_to_host(bytes: u64, computed: bool) {
    TO_HOST.fetch_add(1, Ordering::Relaxed);
    TO_HOST_BYTES.fetch_add(bytes, Ordering::Relaxed);
    if computed {
        let last = LAST.load(Ordering::Relaxed);
        // SAFETY: LAST is null or points at a kernel that is never freed.
        let name = unsafe { last.as_ref() }.map_or("none", |kernel| kernel.name.as_str());
        count(&READ_BACKS, (name.to_owned(), bytes));
    }
}

/// Notes that entry point `name` was called but is not implemented.
pub(crate) fn not_implemented(name: impl Into<Cow<'static, str>>) {
    lock(&NOT_IMPLEMENTED).insert(name.into());
}

/// Notes a failure inside the virtual GPU itself.
pub(crate) fn internal_error(text: String) {
    let mut errors = lock(&INTERNAL_ERRORS);
    if errors.len() < MOST_INTERNAL_ERRORS && !errors.contains(&text) {
        errors.push(text);
    }
}

/// Constant fills carried out.
pub(crate) fn fills() -> u64 {
    FILLS.load(Ordering::Relaxed)
}

/// Copies so far.
pub(crate) fn copies() -> CopyTotals {
    CopyTotals {
        to_device: TO_DEVICE.load(Ordering::Relaxed),
        to_device_bytes: TO_DEVICE_BYTES.load(Ordering::Relaxed),
        to_host: TO_HOST.load(Ordering::Relaxed),
        to_host_bytes: TO_HOST_BYTES.load(Ordering::Relaxed),
    }
}

/// Matrix products so far, largest total work first.
pub(crate) fn gemms() -> Vec<Gemm> {
    let mut gemms: Vec<Gemm> = lock(&GEMMS)
        .iter()
        .map(|(shape, &count)| Gemm {
            call: shape.call.to_owned(),
            m: shape.m,
            n: shape.n,
            k: shape.k,
            batch: shape.batch,
            input_type: shape.input_type.to_owned(),
            compute_type: shape.compute_type.to_owned(),
            count,
        })
        .collect();
    let work = |gemm: &Gemm| {
        u128::from(gemm.m * gemm.n) * u128::from(gemm.k) * u128::from(gemm.batch * gemm.count)
    };
    gemms.sort_by_cached_key(|gemm| {
        (std::cmp::Reverse(work(gemm)), gemm.m, gemm.n, gemm.call.clone())
    });
    gemms
}

/// Executed cuDNN plans so far, largest total work first: outputs × filter, per execution.
pub(crate) fn convolutions() -> Vec<Convolution> {
    let mut convolutions: Vec<Convolution> = lock(&CONVOLUTIONS)
        .iter()
        .map(|(shape, &count)| Convolution {
            operation: shape.operation.to_owned(),
            x: shape.x.clone(),
            w: shape.w.clone(),
            y: shape.y.clone(),
            data_type: shape.data_type.to_owned(),
            workspace_bytes: shape.workspace_bytes,
            count,
        })
        .collect();
    let size = |dimensions: &[i64]| dimensions.iter().map(|&n| n.max(1) as u128).product::<u128>();
    convolutions.sort_by_cached_key(|convolution| {
        let work = size(&convolution.y)
            .saturating_mul(size(&convolution.w))
            .saturating_mul(u128::from(convolution.count));
        (std::cmp::Reverse(work), convolution.operation.clone(), convolution.x.clone())
    });
    convolutions
}

/// NCCL calls so far, most bytes first.
pub(crate) fn collectives() -> Vec<Collective> {
    let mut collectives: Vec<Collective> = lock(&COLLECTIVES)
        .iter()
        .map(|(&(call, bytes), &count)| Collective { call: call.to_owned(), bytes, count })
        .collect();
    collectives.sort_by_cached_key(|it| {
        (std::cmp::Reverse(u128::from(it.bytes) * u128::from(it.count)), it.call.clone(), it.bytes)
    });
    collectives
}

/// What is estimated in the report, sorted.
pub(crate) fn estimates() -> Vec<String> {
    lock(&ESTIMATES).iter().map(|basis| (*basis).to_owned()).collect()
}

/// Read-backs so far, most frequent first.
pub(crate) fn read_backs() -> Vec<ReadBack> {
    let mut read_backs: Vec<ReadBack> = lock(&READ_BACKS)
        .iter()
        .map(|((kernel, bytes), &count)| ReadBack { kernel: kernel.clone(), bytes: *bytes, count })
        .collect();
    read_backs.sort_by(|a, b| (b.count, &a.kernel, a.bytes).cmp(&(a.count, &b.kernel, b.bytes)));
    read_backs
}

/// Entry points that were called but are not implemented, sorted.
pub(crate) fn not_implemented_names() -> Vec<String> {
    lock(&NOT_IMPLEMENTED).iter().map(|name| name.clone().into_owned()).collect()
}

/// Failures inside the virtual GPU.
pub(crate) fn internal_errors() -> Vec<String> {
    lock(&INTERNAL_ERRORS).clone()
}
