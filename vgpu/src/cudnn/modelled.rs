//! cuDNN's graph interface where no library answers: descriptors keep what they are given, heuristics
//! offer the engines of [`rule`], and plans have the workspace that the rule states.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::backend::{attribute, kind, value_type, values};
use super::real::Descriptor;
use super::rule::{self, Engine};
use super::{graph, status};
use crate::activity;
use crate::handles::Handles;

/// What the report says of the sizes.
const BASIS: &str = "cuDNN workspaces: by rule, since the program's cuDNN is older than 9.8 and \
                     VRAMFIT_CUDNN names no newer one; on six image models the peak reserved memory was \
                     up to 9 % below and 5 % above that with cuDNN 9.10";

/// What a program is told that it did not set itself.
#[derive(Default)]
struct Modelled {
    kind: i32,
    /// Of a configuration, and of the engine taken from one.
    engine: Option<Engine>,
    /// Heuristics: the engines on offer.
    offers: Vec<Engine>,
    /// Configuration: the graph it computes, as an address.
    links: HashMap<i32, usize>,
}

static DESCRIPTORS: Handles<Mutex<Modelled>> = Handles::new();

/// Runs `body` on the descriptor; none for one that does not exist.
fn with<R>(descriptor: Descriptor, body: impl FnOnce(&mut Modelled) -> R) -> Option<R> {
    let own = DESCRIPTORS.get(descriptor)?;
    let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
    Some(body(&mut own))
}

fn known(found: Option<i32>) -> i32 {
    found.unwrap_or(status::BAD_PARAM)
}

pub(super) fn create(kind: i32) -> Descriptor {
    DESCRIPTORS.insert(Mutex::new(Modelled { kind, ..Modelled::default() }))
}

pub(super) fn destroy(descriptor: Descriptor) -> i32 {
    if DESCRIPTORS.remove(descriptor) { status::SUCCESS } else { status::BAD_PARAM }
}

/// Only links matter here; what else the rule needs, [`graph`] has noted.
pub(super) fn set(
    descriptor: Descriptor,
    name: i32,
    value_type: i32,
    count: i64,
    array: *const c_void,
) -> i32 {
    known(with(descriptor, |own| {
        if value_type == value_type::BACKEND_DESCRIPTOR
            && let [target, ..] = values::<usize>(count, array)
        {
            own.links.insert(name, *target);
        }
        status::SUCCESS
    }))
}

pub(super) fn finalize(descriptor: Descriptor) -> i32 {
    let Some((kind, links)) = with(descriptor, |own| (own.kind, own.links.clone())) else {
        return status::BAD_PARAM;
    };
    let linked = |name| links.get(&name).map(|target| *target as Descriptor);
    match kind {
        kind::ENGINE_HEURISTICS => {
            graph::finalized(descriptor);
            let Some(work) = graph::work(descriptor) else { return status::NOT_SUPPORTED };
            let offers = rule::engines(&work);
            if offers.is_empty() {
                return status::NOT_SUPPORTED;
            }
            known(with(descriptor, |own| {
                own.offers = offers;
                status::SUCCESS
            }))
        }
        kind::EXECUTION_PLAN => {
            let engine = linked(attribute::PLAN_ENGINE_CONFIG)
                .and_then(|config| with(config, |config| config.engine).flatten());
            let Some(engine) = engine else { return status::NOT_SUPPORTED };
            activity::estimate(BASIS);
            let tensor_cores = engine.notes.contains(&rule::NOTE_TENSOR_CORE);
            graph::finalized_plan(descriptor, engine.workspace as i64, tensor_cores);
            status::SUCCESS
        }
        _ => {
            graph::finalized(descriptor);
            status::SUCCESS
        }
    }
}

pub(super) fn get(
    descriptor: Descriptor,
    name: i32,
    requested: i64,
    count: *mut i64,
    array: *mut c_void,
) -> i32 {
    let Some((offers, engine)) = with(descriptor, |own| (own.offers.clone(), own.engine)) else {
        return status::BAD_PARAM;
    };
    match name {
        attribute::HEURISTICS_RESULTS => {
            let room = usize::try_from(requested).unwrap_or_default().min(offers.len());
            for (config, engine) in values::<usize>(room as i64, array).iter().zip(&offers) {
                with(*config as Descriptor, |config| config.engine = Some(*engine));
            }
            if room > 0 {
                graph::passed_on(descriptor, values::<usize>(room as i64, array));
            }
            // Asked for none, the answer is how many there are.
            write_count(count, if room == 0 { offers.len() } else { room })
        }
        attribute::CONFIG_ENGINE => {
            if let [target] = values::<usize>(requested.min(1), array) {
                with(*target as Descriptor, |target| target.engine = engine);
                graph::passed_on(descriptor, &[*target]);
            }
            write_count(count, 1)
        }
        attribute::ENGINE_GLOBAL_INDEX => {
            let index = engine.map_or(0, |engine| engine.index);
            write_values(&[index], requested, array);
            write_count(count, 1)
        }
        attribute::ENGINE_NUMERICAL_NOTES => {
            let notes = engine.map_or(&[][..], |engine| engine.notes);
            write_values(notes, requested, array);
            write_count(count, notes.len())
        }
        // No knobs, no other notes.
        _ => write_count(count, 0),
    }
}

fn write_count(count: *mut i64, value: usize) -> i32 {
    if !count.is_null() {
        // SAFETY: an out-pointer of the caller's, not null.
        unsafe { *count = value as i64 };
    }
    status::SUCCESS
}

fn write_values<T: Copy>(source: &[T], requested: i64, array: *mut c_void) {
    let room = usize::try_from(requested).unwrap_or_default().min(source.len());
    if !array.is_null() {
        // SAFETY: the caller's array holds `requested` values of the attribute's type.
        unsafe { array.cast::<T>().copy_from(source.as_ptr(), room) };
    }
}
