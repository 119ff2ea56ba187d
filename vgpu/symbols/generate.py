#!/usr/bin/env python3
"""Writes the symbol lists in this folder from installed PyTorch wheels.

    python generate.py SITE_PACKAGES...

Name the site-packages of an environment for each supported PyTorch; the lists hold what any of them
wants. Needs g++ and nm. One list a NVIDIA library: each entry point that PyTorch, torchvision or
Triton wants from it, of some libraries all that they export (see COMPLETE), and what a stub must know
to refuse a call: what it returns and which arguments it must zero. The compiler tells, from NVIDIA's headers in the wheels; nothing of the headers is kept.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Library -> (how its names begin, the status that says "not supported", that status's name).
# Longer prefixes first: the first match decides. NCCL and cuRAND know no "not supported".
LIBRARIES = {
    "cudart": (r"__cuda|cuda[A-Z]", 801, "cudaErrorNotSupported"),
    "cublasLt": (r"cublasLt", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    "cublas": (r"cublas", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    "cudnn": (r"cudnn", 3000, "CUDNN_STATUS_NOT_SUPPORTED"),
    "cufft": (r"cufft", 16, "CUFFT_NOT_SUPPORTED"),
    "curand": (r"curand", 204, "CURAND_STATUS_ARCH_MISMATCH"),
    "cusparseLt": (r"cusparseLt", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    "cusparse": (r"cusparse", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    "cusolver": (r"cusolver", 9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    "nccl": (r"p?nccl[A-Z]", 5, "ncclInvalidUsage"),
    "nvshmem": (r"nvshmem", 3, "NVSHMEMX_ERROR_NOT_SUPPORTED"),
    "cupti": (r"cupti[A-Z]", 27, "CUPTI_ERROR_NOT_SUPPORTED"),
    "cufile": (r"cuFile[A-Z]", 5007, "CU_FILE_PLATFORM_NOT_SUPPORTED"),
    "nvjpeg": (r"nvjpeg[A-Z]", 9, "NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED"),
    "nvml": (r"nvml[A-Z]", 3, "NVML_ERROR_NOT_SUPPORTED"),
    "cuda": (r"cu[A-Z]", 801, "CUDA_ERROR_NOT_SUPPORTED"),
}
# Run-time compilation needs no device and stays NVIDIA's own.
REAL = re.compile(r"nvrtc|nvJitLink|nvtx")

# Of these all that is exported and declared: packages other than PyTorch's link them too, and what is
# left out here would be NVIDIA's own, called with handles that it did not make.
COMPLETE = ("cudart", "cublas", "cublasLt", "cusparse", "cusolver", "cufft", "curand")

# CUDA itself is asked alone: the other headers bring C++ overloads of its functions along.
CUDA_HEADERS = ["cuda.h", "cuda_runtime_api.h"]
LIBRARY_HEADERS = [
    "cublas_v2.h", "cublasLt.h", "cudnn.h", "cufft.h", "cufftXt.h", "curand.h", "cusparse.h",
    "cusolverDn.h", "cupti.h", "cufile.h", "nccl.h", "cusparseLt.h", "nvshmem_host.h",
]

INTROSPECTION = r"""
#include <cstdio>
#include <type_traits>
template <class T> constexpr bool scalar = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>;
template <class T> const char* kind() {
  if constexpr (std::is_void_v<T>) return "void";
  else if constexpr (std::is_same_v<T, const char*>) return "text";
  else if constexpr (std::is_pointer_v<T>) return "pointer";
  else if constexpr (std::is_floating_point_v<T>) return "float";
  else if constexpr (std::is_class_v<T>) return "struct";
  else if constexpr (sizeof(T) == 8) return "size";
  else return "status";
}
struct Registers { int used = 0; bool known = true; char text[256]; int length = 0; };
template <class T> void argument(Registers& r) {
  if constexpr (std::is_floating_point_v<T>) return;
  else if constexpr (std::is_class_v<T>) {
    // A larger structure lies on the stack; a small one may take integer registers or others.
    if (sizeof(T) <= 16) r.known = false;
  } else {
    if constexpr (std::is_pointer_v<T>) {
      using P = std::remove_pointer_t<T>;
      if constexpr (!std::is_const_v<P> && scalar<P>)
        if (r.known && r.used < 6)
          r.length += std::snprintf(r.text + r.length, sizeof r.text - r.length, " %d:%zu", r.used, sizeof(P));
    }
    r.used++;
  }
}
template <class R, class... A> void describe(const char* name, R (*)(A...)) {
  Registers r;
  r.text[0] = 0;
  (argument<A>(r), ...);
  std::printf("%s %s%s\n", name, kind<R>(), r.text);
}
"""


def run(*command, text=None):
    return subprocess.run(
        command, input=text, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def undefined(path):
    names = run("nm", "-D", "--undefined-only", str(path)).split("\n")
    return {line.split()[-1].split("@")[0] for line in names if line.strip()}


def library_of(name):
    if REAL.match(name):
        return None
    return next((lib for lib, (prefix, *_) in LIBRARIES.items() if re.match(prefix, name)), None)


class Wheels:
    """The packages of one environment."""

    def __init__(self, site):
        self.site = Path(site)
        version = (self.site / "torch/version.py").read_text()
        self.torch = re.search(r"__version__ = '([^']+)'", version)[1]
        self.includes = sorted(self.site.glob("nvidia/*/include"))
        present = [h for h in LIBRARY_HEADERS if any((i / h).exists() for i in self.includes)]
        of_cuda = self.declared_in(CUDA_HEADERS)
        self.by_name = self.requested_by_name(of_cuda)
        self.needed = self.by_name | self.newest_versions(self.by_name)
        for path in self.shared_objects():
            self.needed |= {name for name in undefined(path) if library_of(name)}
        self.needed |= self.exported() & (of_cuda | self.declared_in(present))
        cuda = {name for name in self.needed if library_of(name) in ("cuda", "cudart")}
        self.lines = self.describe(cuda & of_cuda, CUDA_HEADERS)
        self.lines |= self.describe((self.needed - cuda) & self.declared_in(present), present)

    def shared_objects(self):
        for package in ("torch", "torchvision", "triton"):
            for path in sorted((self.site / package).rglob("*.so*")):
                # Triton brings CUPTI along; it is NVIDIA's, not a user of NVIDIA's.
                if path.is_file() and "backends/nvidia/lib" not in str(path):
                    yield path

    def exported(self):
        """Functions of the libraries of which all is wanted."""
        names = set()
        for library in COMPLETE:
            for path in sorted(self.site.glob(f"nvidia/*/lib/lib{library}.so.*")):
                lines = run("nm", "-D", "--defined-only", str(path)).splitlines()
                found = (line.split()[-1].split("@")[0] for line in lines if " T " in line)
                names |= {name for name in found if library_of(name) in COMPLETE}
        return names

    def compile_flags(self):
        # The wheels of CUDA leave out crt/, which Triton's copy has.
        crt = f"-idirafter{self.site / 'triton/backends/nvidia/include'}"
        folders = [f"-I{folder}" for folder in self.includes]
        return ["g++", "-std=c++17", "-w", "-x", "c++", *folders, crt]

    def preamble(self, headers):
        # The headers of small floating types need more than the wheels hold; sizes are all that matters.
        text = "#include <cstddef>\n"
        if headers is CUDA_HEADERS:
            text += "#define __CUDA_API_VERSION_INTERNAL\n"  # every version of a function, by its own name
        text += "".join(f"#define __CUDA_{kind}_H__\n" for kind in ("FP4", "FP6", "FP8", "FP16", "BF16"))
        text += "struct __half { short bits; };\nstruct __nv_bfloat16 { short bits; };\ntypedef __half half;\n"
        return text + "".join(f"#include <{header}>\n" for header in headers)

    def declared_in(self, headers):
        text = run(*self.compile_flags(), "-E", "-P", "-", text=self.preamble(headers))
        # An inline C++ overload beside the C function would make its name ambiguous.
        return set(re.findall(r"\b(\w+)\s*\(", text)) - set(re.findall(r"\binline \w+ (\w+)\(", text))

    def requested_by_name(self, declared):
        """Driver and NVML entry points whose names stand as text in PyTorch, Triton or cuDNN.

        cuDNN complains on stderr about each driver function it does not find, called or not.
        """
        names = set()
        files = [self.site / "torch/lib/libc10_cuda.so", self.site / "torch/lib/libtorch_cuda.so"]
        for path in [*files, *sorted((self.site / "nvidia/cudnn/lib").glob("*.so*"))]:
            found = re.findall(rb"\0((?:cu|nvml)[A-Z]\w{4,60})(?=\0)", path.read_bytes())
            names |= {name.decode() for name in found}
        for path in sorted((self.site / "triton/backends/nvidia").glob("driver.*")):
            names |= set(re.findall(r"\bcu[A-Z]\w+", path.read_text()))
        return {n for n in names if n.startswith("nvml") or n in declared}

    def newest_versions(self, names):
        """The names that cuda.h's macros turn `names` into, e.g. cuMemAlloc into cuMemAlloc_v2."""
        macros = run(*self.compile_flags(), "-E", "-dM", "-", text="#include <cuda.h>\n")
        pairs = re.findall(r"#define (cu\w+) (cu\w+)$", macros, re.M)
        return {new for old, new in pairs if old in names}

    def describe(self, names, headers):
        """Name -> the words of its line in a list."""
        source = self.preamble(headers) + INTROSPECTION + "int main() {\n"
        source += "".join(f'describe("{name}", &::{name});\n' for name in sorted(names)) + "}\n"
        with tempfile.TemporaryDirectory() as folder:
            # Only types are asked for; the addresses of functions that exist nowhere stay unresolved.
            program = Path(folder) / "describe"
            link = ["-o", str(program), "-", "-no-pie", "-Wl,--unresolved-symbols=ignore-all"]
            subprocess.run([*self.compile_flags(), *link], input=source, text=True, check=True)
            return {line.split()[0]: line.split() for line in run(str(program)).splitlines()}


def merged(lines):
    """One line for what several wheels say of a name. An argument that only some of them have as an
    output is not zeroed: a caller built for the others passes something else there."""
    first, *others = lines
    for other in others:
        if other[1] != first[1]:
            sys.exit(f"{first[0]} returns {first[1]} in one version and {other[1]} in another")
    return [word for word in first if all(word in other for other in others)]


def main(sites):
    environments = [Wheels(site) for site in sites]
    versions = ", ".join(environment.torch for environment in environments)
    needed = set().union(*(environment.needed for environment in environments))
    for library, (_, status, status_name) in LIBRARIES.items():
        of_library = sorted(name for name in needed if library_of(name) == library)
        if not of_library:
            continue
        text = f"# {library}: entry points wanted by PyTorch {versions}. Written by generate.py.\n"
        text += "# name, kind of result, then index:bytes of each integer argument to zero\n"
        text += f"refuse {status} {status_name}\n"
        for name in of_library:
            lines = [it.lines[name] for it in environments if name in it.lines]
            # What no public header declares is taken to return a status, and nothing of it is zeroed.
            text += " ".join(merged(lines or [[name, "status"]])) + "\n"
        (HERE / f"{library}.txt").write_text(text)
        print(f"{library}: {len(of_library)}")
    by_name = set().union(*(environment.by_name for environment in environments))
    text = f"# Entry points that PyTorch {versions}, Triton or cuDNN may look up by name.\n"
    (HERE / "by_name.list").write_text(text + "".join(n + "\n" for n in sorted(by_name)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
