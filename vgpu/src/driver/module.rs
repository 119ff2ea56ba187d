//! Modules and libraries: code that is compiled or loaded at run time (NVRTC, Triton), and its kernels.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use super::device::code;
use super::function;
use super::image::Image;
use crate::device;
use crate::entry::{In, Out, entry_points};
use crate::handles::Handles;
use crate::runtime::status::{FILE_NOT_FOUND, INVALID_RESOURCE_HANDLE, Status, UNKNOWN};
use crate::runtime::{checked, ready};

/// A module, or a library, which is a module here: each process has one context a device.
struct Module {
    image: Image,
    /// Handles of the kernels that were looked up, as addresses: the driver has one for each.
    functions: Mutex<HashMap<String, usize>>,
}

static MODULES: Handles<Module> = Handles::new();

impl Module {
    fn of(image: Image) -> Self {
        Self { image, functions: Mutex::default() }
    }

    /// The handle of kernel `name`.
    fn function(&self, name: &str) -> Result<*mut c_void, Status> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(name) {
            return Ok(*known as *mut c_void);
        }
        let handle = function::publish(name, &self.image.find(name)?);
        functions.insert(name.to_owned(), handle as usize);
        Ok(handle)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let functions = self.functions.get_mut().unwrap_or_else(PoisonError::into_inner);
        for handle in functions.values() {
            function::withdraw(*handle as *mut c_void);
        }
    }
}

/// Loads what `image` points at.
fn load(handle: Out<*mut c_void>, image: *const c_void) -> Status {
    code(checked(device::current() as c_int).and_then(|(_, device)| {
        // SAFETY: the driver's interface asks for nothing less, and cannot be told a length either.
        let image = unsafe { Image::at(image, device) }?;
        handle.set(MODULES.insert(Module::of(image)));
        Ok(())
    }))
}

fn load_file(handle: Out<*mut c_void>, path: In<c_char>) -> Status {
    code(checked(device::current() as c_int).and_then(|(_, device)| {
        let bytes = fs::read(path.text()).map_err(|_| FILE_NOT_FOUND)?;
        handle.set(MODULES.insert(Module::of(Image::of_file(&bytes, device)?)));
        Ok(())
    }))
}

fn module(handle: *mut c_void) -> Result<Arc<Module>, Status> {
    MODULES.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

fn unload(handle: *mut c_void) -> Status {
    code(if MODULES.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) })
}

fn find(handle: Out<*mut c_void>, of: *mut c_void, name: In<c_char>) -> Status {
    code(module(of).and_then(|module| {
        handle.set(module.function(name.text())?);
        Ok(())
    }))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Loads a module.
    fn cuModuleLoadData(handle: Out<*mut c_void>, image: *const c_void) -> Status {
        load(handle, image)
    }

    /// Loads a module.
    fn cuModuleLoadDataEx(
        handle: Out<*mut c_void>,
        image: *const c_void,
        _option_count: c_uint,
        _options: *const c_int,
        _values: *const *const c_void,
    ) -> Status {
        load(handle, image)
    }

    /// Loads a module.
    fn cuModuleLoadFatBinary(handle: Out<*mut c_void>, image: *const c_void) -> Status {
        load(handle, image)
    }

    /// Loads a module from a file.
    fn cuModuleLoad(handle: Out<*mut c_void>, path: In<c_char>) -> Status {
        load_file(handle, path)
    }

    /// Ends a module.
    fn cuModuleUnload(handle: *mut c_void) -> Status {
        unload(handle)
    }

    /// A kernel of a module by name.
    fn cuModuleGetFunction(
        handle: Out<*mut c_void>,
        module: *mut c_void,
        name: In<c_char>,
    ) -> Status {
        find(handle, module, name)
    }

    /// Whether modules are loaded when they are needed, which is the default since CUDA 12.2.
    fn cuModuleGetLoadingMode(mode: Out<c_int>) -> Status {
        mode.set(2); // CU_MODULE_LAZY_LOADING
        code(ready().map(|_| ()))
    }

    /// Loads a library.
    fn cuLibraryLoadData(
        handle: Out<*mut c_void>,
        image: *const c_void,
        _compiler_options: *const c_int,
        _compiler_values: *const *const c_void,
        _compiler_option_count: c_uint,
        _options: *const c_int,
        _values: *const *const c_void,
        _option_count: c_uint,
    ) -> Status {
        load(handle, image)
    }

    /// Loads a library from a file.
    fn cuLibraryLoadFromFile(
        handle: Out<*mut c_void>,
        path: In<c_char>,
        _compiler_options: *const c_int,
        _compiler_values: *const *const c_void,
        _compiler_option_count: c_uint,
        _options: *const c_int,
        _values: *const *const c_void,
        _option_count: c_uint,
    ) -> Status {
        load_file(handle, path)
    }

    /// Ends a library.
    fn cuLibraryUnload(handle: *mut c_void) -> Status {
        unload(handle)
    }

    /// A kernel of a library by name.
    fn cuLibraryGetKernel(
        handle: Out<*mut c_void>,
        library: *mut c_void,
        name: In<c_char>,
    ) -> Status {
        find(handle, library, name)
    }

    /// The module of a library in the current context.
    fn cuLibraryGetModule(answer: Out<*mut c_void>, library: *mut c_void) -> Status {
        code(module(library).map(|_| answer.set(library)))
    }
}
