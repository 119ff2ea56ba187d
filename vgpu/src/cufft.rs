//! cuFFT: plans and the size of their work area; transforms are counted, not computed.
//!
//! PyTorch turns cuFFT's own allocation off and gives each transform a work area from its allocator.
//! cuFFT works the size out only with a device. Its API reference states the range: from one complex
//! element for each element of a batch of transforms to eight, and that lengths made of the factors 2,
//! 3, 5 and 7 have algorithms of their own, where others take Bluestein's. The lower end is taken for
//! the former, the upper end for the latter.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_cost::Work;

use crate::entry::{Out, entry_points};
use crate::on_stream::OnStream;
use crate::{activity, data_type, device, memory};

/// Values of `cufftResult`.
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const INVALID_PLAN: i32 = 1;
    pub(super) const ALLOC_FAILED: i32 = 2;
    pub(super) const INVALID_TYPE: i32 = 3;
    pub(super) const INVALID_VALUE: i32 = 4;
    pub(super) const INTERNAL_ERROR: i32 = 5;
    pub(super) const EXEC_FAILED: i32 = 6;
    pub(super) const INVALID_SIZE: i32 = 8;
}

/// What the report says of the work areas.
const BASIS: &str = "cuFFT work areas: one complex element for each element of lengths made of the \
                     factors 2, 3, 5 and 7, eight for other lengths, the ends of the range that NVIDIA \
                     documents; plans may take less, short one-dimensional ones nothing";

/// Most dimensions of a transform.
const MOST_DIMENSIONS: usize = 3;

/// A plan.
#[derive(Default)]
struct Plan {
    /// cuFFT allocates work areas itself unless told otherwise.
    callers_work_area: bool,
    work_bytes: usize,
    /// The work area that cuFFT allocated, as an address.
    own_work_area: Option<usize>,
    stream: OnStream,
}

/// Plans by number. The numbers are never used again.
#[derive(Default)]
struct Plans {
    made: i32,
    live: BTreeMap<i32, Plan>,
}

fn plans() -> MutexGuard<'static, Plans> {
    static PLANS: Mutex<Plans> = Mutex::new(Plans { made: 0, live: BTreeMap::new() });
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers with `body` applied to a plan.
fn with(plan: i32, body: impl FnOnce(&mut Plan) -> i32) -> i32 {
    plans().live.get_mut(&plan).map_or(status::INVALID_PLAN, body)
}

/// Bytes of a complex element of a `cudaDataType`, be it that of a real or of a complex number.
fn complex_bytes(data_type: i32) -> Option<u64> {
    let bytes = data_type::bytes(data_type)?;
    match data_type {
        0 | 1 | 2 | 14 => Some(2 * bytes),
        4 | 5 | 6 | 15 => Some(bytes),
        _ => None,
    }
}

/// Whether `length` has no prime factor above 7.
fn is_smooth(length: u64) -> bool {
    let mut rest = length;
    for factor in [2, 3, 5, 7] {
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    rest == 1
}

/// Work area of `batch` transforms of `lengths`, all positive; none if no address space holds it.
fn work_bytes(lengths: &[u64], batch: u64, complex_bytes: u64) -> Option<u64> {
    let share = if lengths.iter().all(|length| is_smooth(*length)) { 1 } else { 8 };
    let mut factors = lengths.iter().copied().chain([batch, share]);
    factors.try_fold(complex_bytes, u64::checked_mul).filter(|bytes| i64::try_from(*bytes).is_ok())
}

/// The lengths that a caller names; none if they make no sense.
fn lengths_of(rank: i32, lengths: *const i64) -> Option<Vec<u64>> {
    let rank = usize::try_from(rank).ok().filter(|rank| (1..=MOST_DIMENSIONS).contains(rank))?;
    if lengths.is_null() {
        return None;
    }
    // SAFETY: the interface asks for `rank` lengths, at most three.
    let lengths = unsafe { std::slice::from_raw_parts(lengths, rank) };
    lengths.iter().map(|length| u64::try_from(*length).ok().filter(|length| *length > 0)).collect()
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cufftCreate(plan: Out<i32>) -> i32 {
        if device::make_context(device::current()).is_err() {
            return status::ALLOC_FAILED;
        }
        let mut plans = plans();
        plans.made += 1;
        let number = plans.made;
        plans.live.insert(number, Plan::default());
        plan.set(number);
        status::SUCCESS
    }

    fn cufftDestroy(plan: i32) -> i32 {
        let Some(plan) = plans().live.remove(&plan) else { return status::INVALID_PLAN };
        if let Some(area) = plan.own_work_area {
            memory::free(area as *mut c_void);
        }
        status::SUCCESS
    }

    fn cufftSetAutoAllocation(plan: i32, own: i32) -> i32 {
        with(plan, |plan| {
            plan.callers_work_area = own == 0;
            status::SUCCESS
        })
    }

    fn cufftXtMakePlanMany(plan: i32, rank: i32, lengths: *const i64, _input_embed: *const i64,
        _input_stride: i64, _input_distance: i64, _input_type: i32, _output_embed: *const i64,
        _output_stride: i64, _output_distance: i64, _output_type: i32, batch: i64, bytes: Out<usize>,
        execution_type: i32) -> i32 {
        let Some(complex) = complex_bytes(execution_type) else { return status::INVALID_TYPE };
        let (Some(lengths), Ok(batch)) = (lengths_of(rank, lengths), u64::try_from(batch)) else {
            return status::INVALID_SIZE;
        };
        let Some(work_bytes) = work_bytes(&lengths, batch, complex) else {
            return status::INVALID_SIZE;
        };
        with(plan, |plan| {
            plan.work_bytes = work_bytes as usize;
            activity::estimate(BASIS);
            bytes.set(plan.work_bytes);
            if !plan.callers_work_area && plan.own_work_area.is_none() {
                match memory::allocate(plan.work_bytes as u64) {
                    Ok(area) => plan.own_work_area = Some(area as usize),
                    Err(_) => return status::ALLOC_FAILED,
                }
            }
            status::SUCCESS
        })
    }

    fn cufftGetSize(plan: i32, bytes: Out<usize>) -> i32 {
        with(plan, |plan| {
            bytes.set(plan.work_bytes);
            status::SUCCESS
        })
    }

    fn cufftSetStream(plan: i32, stream: *mut c_void) -> i32 {
        with(plan, |plan| {
            plan.stream.set(stream);
            status::SUCCESS
        })
    }

    fn cufftSetWorkArea(plan: i32, _area: *mut c_void) -> i32 {
        with(plan, |_| status::SUCCESS)
    }

    fn cufftXtExec(plan: i32, input: *mut c_void, output: *mut c_void, _direction: i32) -> i32 {
        if input.is_null() || output.is_null() {
            return status::INVALID_VALUE;
        }
        with(plan, |plan| {
            let given = plan.stream.count("cufftXtExec", Work::Unknown);
            given.map_or(status::EXEC_FAILED, |()| status::SUCCESS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_with_a_large_factor_takes_eight_times_the_work_area() {
        assert_eq!(work_bytes(&[64, 60], 4, 8), Some(64 * 60 * 4 * 8));
        assert_eq!(work_bytes(&[1 << 20], 1, 16), Some(16 << 20));
        assert_eq!(work_bytes(&[1009], 4, 8), Some(8 * 1009 * 4 * 8));
        assert_eq!(work_bytes(&[64, 11], 1, 8), Some(8 * 64 * 11 * 8));
    }

    #[test]
    fn a_work_area_beyond_any_address_space_has_no_size() {
        assert_eq!(work_bytes(&[1 << 31, 1 << 31, 1 << 31], 1, 8), None);
        assert_eq!(work_bytes(&[1 << 30, 1 << 30], 1, 8), None);
        assert_eq!(work_bytes(&[1 << 62], 4, 8), None);
        assert_eq!(work_bytes(&[1 << 29, 1 << 30], 1, 8), Some(1 << 62));
    }

    #[test]
    fn smooth_lengths_have_factors_up_to_seven() {
        assert!([1, 2, 3, 400, 210, 1 << 30].into_iter().all(is_smooth));
        assert!(![11, 13 * 64, 1009].into_iter().any(is_smooth));
    }
}
