//! cuBLASLt: descriptors that remember what they were given, one heuristic answer, and products that
//! are recorded, not computed.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::PoisonError;

use vramfit_vgpu_cost::Work;

use crate::activity::{self, GemmShape};
use crate::cublas::{self, status};
use crate::data_type::{compute_name, cuda_name};
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, capture};
use crate::handles::Handles;

/// Attributes of a layout (`cublasLtMatrixLayoutAttribute_t`) that are read here.
mod layout {
    pub(super) const TYPE: i32 = 0;
    pub(super) const ROWS: i32 = 2;
    pub(super) const COLS: i32 = 3;
    pub(super) const LD: i32 = 4;
    pub(super) const BATCH_COUNT: i32 = 5;
}

/// Attributes of an operation (`cublasLtMatmulDescAttributes_t`) that are read here.
mod operation {
    pub(super) const COMPUTE_TYPE: i32 = 0;
    pub(super) const SCALE_TYPE: i32 = 1;
    pub(super) const TRANSA: i32 = 3;
}

/// A descriptor's attributes by number. No attribute of cuBLASLt is longer than 8 bytes.
struct Attributes(Mutex<Vec<(i32, Value)>>);

#[derive(Clone, Copy)]
struct Value {
    bytes: [u8; 8],
    length: usize,
}

impl Value {
    fn number(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Self { bytes, length: 4 }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self { bytes: number.to_le_bytes(), length: 8 }
    }
}

impl Attributes {
    fn new(initial: impl Into<Vec<(i32, Value)>>) -> Self {
        Self(Mutex::new(initial.into()))
    }

    fn get(&self, attribute: i32) -> Option<Value> {
        let attributes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attributes.iter().find(|(number, _)| *number == attribute).map(|(_, value)| *value)
    }

    fn set(&self, attribute: i32, value: Value) {
        let mut attributes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match attributes.iter_mut().find(|(number, _)| *number == attribute) {
            Some((_, old)) => *old = value,
            None => attributes.push((attribute, value)),
        }
    }

    /// The attribute as a number, 0 where it was never set.
    fn number(&self, attribute: i32) -> u64 {
        self.get(attribute).map_or(0, Value::number)
    }

    /// The attribute as an enumeration value.
    fn code(&self, attribute: i32) -> i32 {
        self.number(attribute) as u32 as i32
    }
}

/// Layouts, operations and preferences, in one table, as cuBLASLt keeps no types apart at its edge.
static DESCRIPTORS: Handles<Attributes> = Handles::new();

fn create(descriptor: Out<*mut c_void>, initial: impl Into<Vec<(i32, Value)>>) -> i32 {
    if descriptor.is_null() {
        return status::INVALID_VALUE;
    }
    descriptor.set(DESCRIPTORS.insert(Attributes::new(initial)));
    status::SUCCESS
}

fn destroy(descriptor: *mut c_void) -> i32 {
    // Like `free`, destroying nothing is allowed.
    if descriptor.is_null() || DESCRIPTORS.remove(descriptor) {
        status::SUCCESS
    } else {
        status::INVALID_VALUE
    }
}

fn set(descriptor: *mut c_void, attribute: i32, value: *const u8, length: usize) -> i32 {
    let Some(attributes) = DESCRIPTORS.get(descriptor) else { return status::INVALID_VALUE };
    if value.is_null() || length == 0 || length > 8 {
        return status::INVALID_VALUE;
    }
    let mut bytes = [0; 8];
    // SAFETY: the caller's value is `length` bytes long, which is at most 8.
    unsafe { std::ptr::copy_nonoverlapping(value, bytes.as_mut_ptr(), length) };
    attributes.set(attribute, Value { bytes, length });
    status::SUCCESS
}

/// With no room given, answers only how many bytes the attribute needs.
fn get(
    descriptor: *mut c_void,
    attribute: i32,
    value: *mut u8,
    length: usize,
    written: Out<usize>,
) -> i32 {
    let Some(attributes) = DESCRIPTORS.get(descriptor) else { return status::INVALID_VALUE };
    let Some(stored) = attributes.get(attribute) else {
        activity::not_implemented("cuBLASLt: default of an attribute that was never set");
        return status::NOT_SUPPORTED;
    };
    written.set(stored.length);
    if length == 0 {
        return status::SUCCESS;
    }
    if value.is_null() || length < stored.length {
        return status::INVALID_VALUE;
    }
    // SAFETY: the caller's buffer is `length` bytes long, at least as long as what is stored.
    unsafe { std::ptr::copy_nonoverlapping(stored.bytes.as_ptr(), value, stored.length) };
    status::SUCCESS
}

/// `cublasLtMatmulHeuristicResult_t`: the algorithm (64 opaque bytes), its workspace in bytes, whether
/// it can be used, how many waves of blocks it needs, and 16 reserved bytes.
#[repr(C)]
struct HeuristicResult {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

const _: () = assert!(size_of::<HeuristicResult>() == 96);

/// An algorithm that fits everywhere and needs no workspace: PyTorch allocates its workspace before it
/// asks, by its own rules, and tells only the upper limit.
fn any_algorithm() -> HeuristicResult {
    HeuristicResult {
        algorithm: [0; 8],
        workspace_bytes: 0,
        state: status::SUCCESS,
        waves: 1.0,
        reserved: [0; 4],
    }
}

/// What `cublasLtMatmul` computes: D (m×n) from op(A) (m×k) and op(B).
fn shape(operation: &Attributes, a: &Attributes, d: &Attributes) -> GemmShape {
    // CUBLAS_OP_N is 0.
    let inner = if operation.number(operation::TRANSA) == 0 { layout::COLS } else { layout::ROWS };
    GemmShape {
        call: "cublasLtMatmul",
        m: d.number(layout::ROWS),
        n: d.number(layout::COLS),
        k: a.number(inner),
        batch: d.number(layout::BATCH_COUNT),
        input_type: cuda_name(a.code(layout::TYPE)),
        compute_type: compute_name(operation.code(operation::COMPUTE_TYPE)),
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cublasLtCreate(handle: Out<*mut c_void>) -> i32 {
        cublas::create_handle(handle)
    }

    fn cublasLtDestroy(handle: *mut c_void) -> i32 {
        cublas::destroy_handle(handle)
    }

    fn cublasLtMatrixLayoutCreate(descriptor: Out<*mut c_void>, data_type: i32, rows: u64, cols: u64,
        ld: i64) -> i32 {
        create(descriptor, [
            (layout::TYPE, Value::from(data_type)),
            (layout::ROWS, Value::from(rows)),
            (layout::COLS, Value::from(cols)),
            (layout::LD, Value::from(ld as u64)),
            (layout::BATCH_COUNT, Value::from(1)),
        ])
    }

    fn cublasLtMatrixLayoutDestroy(descriptor: *mut c_void) -> i32 {
        destroy(descriptor)
    }

    fn cublasLtMatrixLayoutSetAttribute(descriptor: *mut c_void, attribute: i32, value: *const u8,
        length: usize) -> i32 {
        set(descriptor, attribute, value, length)
    }

    fn cublasLtMatrixLayoutGetAttribute(descriptor: *mut c_void, attribute: i32, value: *mut u8,
        length: usize, written: Out<usize>) -> i32 {
        get(descriptor, attribute, value, length, written)
    }

    fn cublasLtMatmulDescCreate(descriptor: Out<*mut c_void>, compute_type: i32, scale_type: i32) -> i32 {
        create(descriptor, [
            (operation::COMPUTE_TYPE, Value::from(compute_type)),
            (operation::SCALE_TYPE, Value::from(scale_type)),
        ])
    }

    fn cublasLtMatmulDescDestroy(descriptor: *mut c_void) -> i32 {
        destroy(descriptor)
    }

    fn cublasLtMatmulDescSetAttribute(descriptor: *mut c_void, attribute: i32, value: *const u8,
        length: usize) -> i32 {
        set(descriptor, attribute, value, length)
    }

    fn cublasLtMatmulDescGetAttribute(descriptor: *mut c_void, attribute: i32, value: *mut u8,
        length: usize, written: Out<usize>) -> i32 {
        get(descriptor, attribute, value, length, written)
    }

    fn cublasLtMatmulPreferenceCreate(descriptor: Out<*mut c_void>) -> i32 {
        create(descriptor, [])
    }

    fn cublasLtMatmulPreferenceDestroy(descriptor: *mut c_void) -> i32 {
        destroy(descriptor)
    }

    fn cublasLtMatmulPreferenceSetAttribute(descriptor: *mut c_void, attribute: i32, value: *const u8,
        length: usize) -> i32 {
        set(descriptor, attribute, value, length)
    }

    fn cublasLtMatmulPreferenceGetAttribute(descriptor: *mut c_void, attribute: i32, value: *mut u8,
        length: usize, written: Out<usize>) -> i32 {
        get(descriptor, attribute, value, length, written)
    }

    fn cublasLtMatmulAlgoGetHeuristic(_handle: *mut c_void, _operation: *mut c_void, _a: *mut c_void,
        _b: *mut c_void, _c: *mut c_void, _d: *mut c_void, _preference: *mut c_void, requested: i32,
        results: Out<HeuristicResult>, found: Out<i32>) -> i32 {
        if requested < 1 || results.is_null() {
            return status::INVALID_VALUE;
        }
        results.set(any_algorithm());
        found.set(1);
        status::SUCCESS
    }

    fn cublasLtMatmulAlgoCheck(_handle: *mut c_void, _operation: *mut c_void, _a: *mut c_void,
        _b: *mut c_void, _c: *mut c_void, _d: *mut c_void, _algorithm: *const c_void,
        result: Out<HeuristicResult>) -> i32 {
        result.set(any_algorithm());
        status::SUCCESS
    }

    /// The handle may be cuBLAS's: PyTorch passes that.
    fn cublasLtMatmul(_handle: *mut c_void, operation: *mut c_void, _alpha: *const c_void,
        _a: *const c_void, a_layout: *mut c_void, _b: *const c_void, _b_layout: *mut c_void,
        _beta: *const c_void, _c: *const c_void, _c_layout: *mut c_void, _d: *mut c_void,
        d_layout: *mut c_void, _algorithm: *const c_void, _workspace: *mut c_void,
        _workspace_bytes: usize, stream: *mut c_void) -> i32 {
        let descriptors = [operation, a_layout, d_layout].map(|it| DESCRIPTORS.get(it));
        let [Some(operation), Some(a), Some(d)] = descriptors else { return status::INVALID_VALUE };
        let shape = shape(&operation, &a, &d);
        let (call, work) = (shape.call, Work::Unknown);
        let given =
            capture::submit(stream, Kind::Kernel, call, work, move || activity::gemm(shape.clone()));
        cublas::answer(given)
    }
}

entry_points! { on_panic = 0;
    fn cublasLtGetVersion() -> usize {
        cublas::version().unsigned_abs() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_product_takes_its_inner_length_from_the_rows_of_a() {
        let layout_of = |rows: u64, cols: u64| {
            Attributes::new([
                (layout::TYPE, Value::from(14)),
                (layout::ROWS, Value::from(rows)),
                (layout::COLS, Value::from(cols)),
                (layout::BATCH_COUNT, Value::from(3)),
            ])
        };
        let operation = Attributes::new([
            (operation::COMPUTE_TYPE, Value::from(68)),
            (operation::TRANSA, Value::from(1)),
        ]);
        let found = shape(&operation, &layout_of(7, 5), &layout_of(5, 11));
        assert_eq!((found.m, found.n, found.k, found.batch), (5, 11, 7, 3));
        assert_eq!((found.input_type, found.compute_type), ("R_16BF", "32F"));
    }

    #[test]
    fn an_attribute_comes_back_with_the_length_it_was_set_with() {
        let attributes = Attributes::new([]);
        attributes.set(9, Value::from(-2));
        attributes.set(9, Value::from(u64::MAX - 1));
        let stored = attributes.get(9).unwrap();
        assert_eq!((stored.number(), stored.length), (u64::MAX - 1, 8));
    }
}
