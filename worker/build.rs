//! Compiles the shim against the libtorch that torch-sys found, and lets the binary find that
//! libtorch by itself when it runs.

use std::env;
use std::path::PathBuf;

const SHIM: [&str; 4] = ["device", "autocast", "foreach", "checkpoint"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/shim/shim.h");

    // Set by torch-sys (`links = "tch"`), which asks the Python environment.
    let lib = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from);
    let Some(lib) = lib else {
        println!("cargo:error=torch-sys does not say where libtorch is");
        return;
    };
    let Some(root) = lib.parent() else {
        println!("cargo:error={} has no parent folder", lib.display());
        return;
    };

    let mut shim = cc::Build::new();
    shim.cpp(true)
        .std("c++17")
        // Since 2.6 each build of PyTorch for Linux has the C++11 ABI.
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        // Warnings of libtorch's own headers are not ours.
        .flag("-isystem")
        .flag(root.join("include"))
        .flag("-isystem")
        .flag(root.join("include/torch/csrc/api/include"))
        .flag("-Wno-unused-parameter");
    for unit in SHIM {
        let file = format!("src/shim/{unit}.cpp");
        println!("cargo:rerun-if-changed={file}");
        shim.file(file);
    }
    shim.compile("vramfit_shim");

    // libtorch's libraries carry the way to NVIDIA's themselves.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
}
