//! How long a GPU takes for a piece of work.
//!
//! [`Work`] says what a launch asks for: a matrix product with its shape, a convolution, an attention, so
//! many bytes to be read and written. [`Speed`] says what the device can do at best, and which share of
//! that each class of kernels reaches ([`Efficiency`], from a calibration). [`price()`] puts the two together:
//! a roofline, in which a kernel takes at least the time of its arithmetic and of its bytes, and never less
//! than a launch.
//!
//! Nothing here knows CUDA or the host: what is launched when, and on which stream, is the virtual GPU's.
#![forbid(unsafe_code)]

mod attention;
mod convolution;
mod efficiency;
mod price;
mod product;
mod speed;
mod streaming;
mod transfer;
mod work;

pub use efficiency::{ByArithmetic, ByDirection, Efficiency};
pub use price::{Bound, Price, price};
pub use speed::Speed;
pub use work::{
    Arithmetic, Attention, Collective, Convolution, Copy, Direction, Product, Route, Streaming,
    StreamingClass, Work,
};
