//! cuDNN's recurrent networks (`nn.RNN`, `nn.LSTM`, `nn.GRU`): weights lie where cuDNN puts them, sizes
//! are told, calls are counted.

mod network;
mod spaces;
mod works;

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use vramfit_vgpu_cost::Work;

use self::network::{Bias, Cell, Network, Place};
use self::spaces::Sequences;
use super::descriptors::{Shape, create, destroy, set_shape};
use super::{HANDLES, dropout, element_bytes, launch, status};
use crate::activity;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;

/// `CUDNN_LINEAR_INPUT`: the first layer has matrices for its input.
const LINEAR_INPUT: i32 = 0;
/// `CUDNN_RNN_PADDED_IO_ENABLED`, of the auxiliary flags.
const PADDED_IO: u32 = 1;
/// `CUDNN_FMA_MATH`: not on tensor cores.
const FMA_MATH: i32 = 3;
/// `CUDNN_FWD_MODE_TRAINING`.
const TRAINING: i32 = 1;

static NETWORKS: Handles<Mutex<Option<Network>>> = Handles::new();
/// The sequences; whether they are trained on is told with each question.
static DATA: Handles<Mutex<Option<Sequences>>> = Handles::new();

fn set<T>(table: &Handles<Mutex<Option<T>>>, descriptor: *mut c_void, value: T) -> i32 {
    match table.get(descriptor) {
        Some(own) => {
            *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            status::SUCCESS
        }
        None => status::BAD_PARAM,
    }
}

fn get<T: Copy>(table: &Handles<Mutex<Option<T>>>, descriptor: *mut c_void) -> Option<T> {
    let own = table.get(descriptor)?;
    *own.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells where `place` lies in the weight space that begins at `weights`, to a caller who asks.
fn tell(
    network: &Network,
    place: Option<Place>,
    weights: *mut c_void,
    descriptor: *mut c_void,
    address: Out<*mut c_void>,
) -> i32 {
    if descriptor.is_null() {
        return status::SUCCESS;
    }
    let Some(place) = place else {
        address.set(std::ptr::null_mut());
        // A tensor without dimensions says that there is none.
        return set_shape(descriptor, Some(Shape::default()));
    };
    let bytes = (place.offset * network.element_bytes) as usize;
    address.set(if weights.is_null() {
        std::ptr::null_mut()
    } else {
        weights.wrapping_byte_add(bytes)
    });
    let dimensions = [1, place.rows as i32, place.columns as i32];
    set_shape(descriptor, Some(Shape::packed(network.data_type, &dimensions)))
}

/// Counts one launch of `call` and gives the stream what `works` says of the network and its data.
fn launched(
    call: &'static str,
    handle: *mut c_void,
    network: *mut c_void,
    data: *mut c_void,
    works: impl Fn(&Network, &Sequences) -> Vec<Work>,
) -> i32 {
    let works = match (get(&NETWORKS, network), get(&DATA, data)) {
        (Some(network), Some(data)) => works(&network, &data),
        _ => Vec::new(),
    };
    let mut works = works.into_iter();
    let first = works.next().unwrap_or(Work::Unknown);
    let first = launch(call, first, handle, move || activity::launched(call));
    works.fold(first, |status, work| match status {
        status::SUCCESS => launch(call, work, handle, || ()),
        failed => failed,
    })
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnCreateRNNDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&NETWORKS, descriptor, Mutex::default())
    }

    fn cudnnDestroyRNNDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&NETWORKS, descriptor)
    }

    fn cudnnSetRNNDescriptor_v8(descriptor: *mut c_void, _algorithm: i32, mode: i32, bias: i32,
        direction: i32, input_mode: i32, data_type: i32, _compute_type: i32, math: i32, input: i32,
        hidden: i32, projection: i32, layers: i32, dropout: *mut c_void, flags: u32) -> i32 {
        let positive = [input, hidden, projection, layers].iter().all(|size| *size > 0);
        let (Some(cell), Some(bias), true) = (Cell::of(mode), Bias::of(bias), positive) else {
            return status::BAD_PARAM;
        };
        if input_mode != LINEAR_INPUT {
            activity::not_implemented("cudnnSetRNNDescriptor_v8 with CUDNN_SKIP_INPUT");
            return status::NOT_SUPPORTED;
        }
        let size = |size: i32| u64::from(size.unsigned_abs());
        set(&NETWORKS, descriptor, Network {
            cell,
            bias,
            directions: if direction == 0 { 1 } else { 2 },
            input: size(input),
            hidden: size(hidden),
            projection: (projection != hidden).then_some(size(projection)),
            layers: size(layers),
            element_bytes: element_bytes(data_type),
            data_type,
            tensor_cores: math != FMA_MATH,
            padded: flags & PADDED_IO != 0,
            drops: dropout::drops(dropout),
        })
    }

    fn cudnnCreateRNNDataDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&DATA, descriptor, Mutex::default())
    }

    fn cudnnDestroyRNNDataDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&DATA, descriptor)
    }

    fn cudnnSetRNNDataDescriptor(descriptor: *mut c_void, _data_type: i32, _layout: i32, _steps: i32,
        batch: i32, _width: i32, lengths: *const i32, _padding: *const c_void) -> i32 {
        let Ok(batch) = u64::try_from(batch) else { return status::BAD_PARAM };
        if lengths.is_null() {
            return status::BAD_PARAM_NULL_POINTER;
        }
        // SAFETY: the interface asks for one length for each sequence of the batch, on the host.
        let lengths = unsafe { std::slice::from_raw_parts(lengths, batch as usize) };
        let tokens = lengths.iter().map(|length| u64::from(length.unsigned_abs())).sum();
        set(&DATA, descriptor, Sequences { batch, tokens, training: false })
    }

    fn cudnnGetRNNWeightSpaceSize(_handle: *mut c_void, descriptor: *mut c_void, bytes: Out<usize>) -> i32 {
        let Some(network) = get(&NETWORKS, descriptor) else { return status::BAD_PARAM };
        bytes.set(network.weight_bytes() as usize);
        status::SUCCESS
    }

    fn cudnnGetRNNWeightParams(_handle: *mut c_void, descriptor: *mut c_void, layer: i32, _bytes: usize,
        weights: *mut c_void, matrix: i32, matrix_descriptor: *mut c_void,
        matrix_address: Out<*mut c_void>, bias_descriptor: *mut c_void,
        bias_address: Out<*mut c_void>) -> i32 {
        let Some(network) = get(&NETWORKS, descriptor) else { return status::BAD_PARAM };
        let (Ok(layer), Ok(matrix)) = (u64::try_from(layer), u64::try_from(matrix)) else {
            return status::BAD_PARAM;
        };
        let exists = network.has(layer, matrix);
        let place = exists.then(|| network.matrix(layer, matrix));
        let bias = exists.then(|| network.bias(layer, matrix)).flatten();
        match tell(&network, place, weights, matrix_descriptor, matrix_address) {
            status::SUCCESS => tell(&network, bias, weights, bias_descriptor, bias_address),
            refused => refused,
        }
    }

    fn cudnnGetRNNTempSpaceSizes(handle: *mut c_void, descriptor: *mut c_void, mode: i32,
        data: *mut c_void, workspace: Out<usize>, reserve: Out<usize>) -> i32 {
        if HANDLES.get(handle).is_none() {
            return status::NOT_INITIALIZED;
        }
        let (Some(network), Some(data)) = (get(&NETWORKS, descriptor), get(&DATA, data)) else {
            return status::BAD_PARAM;
        };
        let sequences = Sequences { training: mode == TRAINING, ..data };
        activity::estimate(spaces::BASIS);
        workspace.set(spaces::workspace_bytes(&network, &sequences) as usize);
        reserve.set(spaces::reserve_bytes(&network, &sequences) as usize);
        status::SUCCESS
    }

    /// Of this and the next two, only the leading arguments are declared; the C ABI lets a function
    /// leave the others alone.
    fn cudnnRNNForward(handle: *mut c_void, network: *mut c_void, _mode: i32, _lengths: *const i32,
        data: *mut c_void) -> i32 {
        launched("cudnnRNNForward", handle, network, data, Network::steps)
    }

    /// The data's descriptor is that of the output, of which batch and lengths are the same.
    fn cudnnRNNBackwardData_v8(handle: *mut c_void, network: *mut c_void, _lengths: *const i32,
        data: *mut c_void) -> i32 {
        launched("cudnnRNNBackwardData", handle, network, data, Network::steps)
    }

    fn cudnnRNNBackwardWeights_v8(handle: *mut c_void, network: *mut c_void, _add: i32,
        _lengths: *const i32, data: *mut c_void) -> i32 {
        launched("cudnnRNNBackwardWeights", handle, network, data, Network::of_weights)
    }
}
