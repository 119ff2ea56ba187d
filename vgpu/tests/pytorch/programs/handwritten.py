"""Kernels written by hand: what the driver says of each, beside what NVIDIA's own tool reads in its
machine code, as lines of name, measured and expected.
"""

import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
import triton.language as tl

driver = ctypes.CDLL("libcuda.so.1")
CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
SHARED, LOCAL, REGISTERS, DYNAMIC = 1, 3, 4, 8
INVALID_VALUE, INVALID_HANDLE, NOT_FOUND, INVALID_IMAGE, NO_BINARY = 1, 400, 500, 200, 209


@triton.jit
def add(a, b, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def product(a, b, out, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inner = tl.arange(0, STEP)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for k in range(0, K, STEP):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        total += tl.dot(left, tl.load(b + (k + inner)[:, None] * N + columns[None, :]))
    tl.store(out + rows[:, None] * N + columns[None, :], total)


def say(name, measured, expected):
    print(name, measured, expected, sep="\t")


def attribute(kernel, which):
    value = ctypes.c_int()
    assert driver.cuFuncGetAttribute(ctypes.byref(value), which, ctypes.c_void_p(kernel.function)) == 0
    return value.value


def stated(kernel):
    """What NVIDIA's tool reads."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        text = subprocess.run([CUOBJDUMP, "-res-usage", file.name], capture_output=True, text=True, check=True)
    return {name: int(number) for name, number in re.findall(r"([A-Z]+):(\d+)", text.stdout)}


def compare(name, kernel):
    facts = stated(kernel)
    say(f"{name}: registers", attribute(kernel, REGISTERS), facts["REG"])
    say(f"{name}: local memory", attribute(kernel, LOCAL), facts["STACK"])
    # Part of what the tool says since compute capability 9.0, and of no kernel's doing.
    kept = 1024 if torch.cuda.get_device_capability()[0] >= 9 and facts["SHARED"] else 0
    say(f"{name}: shared memory", attribute(kernel, SHARED), facts["SHARED"] - kept)
    return facts


x = torch.rand(1000, device="cuda")
out = torch.empty_like(x)
small = add[(8,)](x, x, out, 1000, BLOCK=128)
compare("add", small)
say("add: threads", small.n_max_threads, 128)

a = torch.empty(512, 512, device="cuda", dtype=torch.float16)
c = torch.empty(512, 512, device="cuda")
free = torch.cuda.mem_get_info()[0]
tiles = {"fits": (64, 64, 32, 4), "spills": (128, 256, 64, 4)}
for name, (rows, columns, step, warps) in tiles.items():
    grid = (512 // rows, 512 // columns)
    kernel = product[grid](a, a, c, 512, 512, rows, columns, step, num_warps=warps)
    facts = compare(name, kernel)
    say(f"{name}: spilled registers", kernel.n_spills, facts["STACK"] // 4)
    properties = torch.cuda.get_device_properties(0)
    threads = properties.max_threads_per_multi_processor * properties.multi_processor_count
    # In units of 256 bytes a thread, beyond the 1 KiB of the context, in whole units of 2 MiB.
    beyond = max(-facts["STACK"] // 256 * -256 - 1024, 0) * threads
    taken = free - torch.cuda.mem_get_info()[0]
    say(f"{name}: memory taken", taken, -beyond // (2 << 20) * -(2 << 20))

too_large = None
try:
    product[(1, 1)](a, a, c, 512, 512, 256, 256, 256, num_warps=8, num_stages=2)
except triton.runtime.errors.OutOfResources as error:
    too_large = error.name
say("too much shared memory", too_large, "shared memory")

clusters = ctypes.c_int(7)
if torch.cuda.get_device_capability()[0] >= 9:
    from triton.runtime import driver as triton_driver

    found = triton_driver.active.utils.cuOccupancyMaxActiveClusters(small.function, 0, 2)
    say("clusters", found > 0, True)
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def copy(source, target, ROWS: tl.constexpr):
        at = tl.program_id(0) * ROWS
        target.store([at, 0], source.load([at, 0]))

    rows = torch.empty(128, 64, device="cuda", dtype=torch.float16)
    described = TensorDescriptor.from_tensor(rows, [32, 64])
    compare("copy", copy[(4,)](described, described, 32))
    compare("clustered", add[(8,)](x, x, out, 1000, BLOCK=128, num_ctas=2))


def launch(function, threads, shared=0):
    none = ctypes.c_void_p()
    grid = [ctypes.c_uint(1)] * 3
    block = [ctypes.c_uint(threads), ctypes.c_uint(1), ctypes.c_uint(1)]
    return driver.cuLaunchKernel(
        ctypes.c_void_p(function), *grid, *block, ctypes.c_uint(shared), none, none, none
    )


def load(image):
    module = ctypes.c_void_p()
    return driver.cuModuleLoadData(ctypes.byref(module), image), module


say("launch", launch(small.function, 128), 0)
say("launch of too many threads", launch(small.function, 256), INVALID_VALUE)
say("launch with too much shared memory", launch(small.function, 128, 49153), INVALID_VALUE)
say("launch with 3 GiB of it", launch(small.function, 128, 3 << 30), INVALID_VALUE)
optin = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
room = optin - attribute(small, SHARED)
handle = ctypes.c_void_p(small.function)
say("more than there is", driver.cuFuncSetAttribute(handle, DYNAMIC, room + 1), INVALID_VALUE)
say("all that there is", driver.cuFuncSetAttribute(handle, DYNAMIC, room), 0)
say("launch with all", launch(small.function, 128, room), 0)
say("no code", load(b"no code at all\0")[0], INVALID_IMAGE)
status, module = load(small.asm["cubin"])
say("code", status, 0)
function = ctypes.c_void_p()
say("no such kernel", driver.cuModuleGetFunction(ctypes.byref(function), module, b"other"), NOT_FOUND)
first, second = ctypes.c_void_p(), ctypes.c_void_p()
for found in (first, second):
    driver.cuModuleGetFunction(ctypes.byref(found), module, small.name.encode())
say("looked up twice", second.value, first.value)
say("and allowed more", driver.cuFuncSetAttribute(first, DYNAMIC, room), 0)
say("launch with that", launch(second.value, 128, room), 0)
say("unload", driver.cuModuleUnload(module), 0)
say("launch of what is gone", launch(first.value, 128), INVALID_HANDLE)
if len(sys.argv) > 1:
    foreign = triton.compile(
        triton.compiler.ASTSource(
            add,
            {"a": "*fp32", "b": "*fp32", "out": "*fp32", "count": "i32", "BLOCK": "constexpr"},
            {(4,): 128},
        ),
        target=triton.backends.compiler.GPUTarget("cuda", int(sys.argv[1]), 32),
    )
    say("code for another generation", load(foreign.asm["cubin"])[0], NO_BINARY)
