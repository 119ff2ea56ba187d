"""The driver's memory calls by themselves: virtual memory, pools, sharing; by the numbers of `CUresult`.

Each line of the output is one check: name, measured, expected.
"""

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import torch

MIB = 1 << 20
driver = ctypes.CDLL(None)
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, NOT_SUPPORTED = 1, 2, 201, 801


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


class Properties(ctypes.Structure):
    """`CUmemAllocationProp`: pinned memory of device 0."""

    _fields_ = [(it, c_int) for it in ("type", "handles", "location", "id")]
    _fields_ += [("windows", c_void_p), ("flags", c_uint64)]


def properties(handles=1):
    return byref(Properties(1, handles, 1, 0, None, 0))


def used():
    """MiB in use beside the context."""
    free, total = torch.cuda.mem_get_info()
    return (total - free - CONTEXT) // MIB


def create(mib):
    handle = c_uint64()
    return driver.cuMemCreate(byref(handle), c_size_t(mib * MIB), properties(), c_uint64(0)), handle


def reserve(mib):
    address = c_uint64()
    status = driver.cuMemAddressReserve(
        byref(address), c_size_t(mib * MIB), c_size_t(0), c_uint64(0), c_uint64(0)
    )
    return status, address.value


def mapped(address, mib, handle):
    return driver.cuMemMap(c_uint64(address), c_size_t(mib * MIB), c_size_t(0), handle, c_uint64(0))


def unmapped(address, mib):
    return driver.cuMemUnmap(c_uint64(address), c_size_t(mib * MIB))


def set_bytes(address, count):
    return driver.cuMemsetD8_v2(c_uint64(address), 7, c_size_t(count))


def virtual_memory():
    unit = c_size_t()
    check("a unit", driver.cuMemGetAllocationGranularity(byref(unit), properties(), 0), 0)
    check("of 2 MiB", unit.value, 2 * MIB)
    status, start = reserve(20_000)
    check("addresses cost nothing", (status, used()), (0, 0))
    check("memory does", (create(3)[0], used()), (INVALID_VALUE, 0))
    _, first = create(4)
    _, second = create(2)
    check("when it is created", used(), 6)
    check("more than there is", create(4000)[0], OUT_OF_MEMORY)
    check("leaves nothing", used(), 6)
    fabric = driver.cuMemCreate(byref(c_uint64()), c_size_t(2 * MIB), properties(8), c_uint64(0))
    check("handles that cross machines", fabric, NOT_SUPPORTED)
    check("nothing there yet", set_bytes(start, 1), INVALID_VALUE)
    check("mapped", (mapped(start, 4, first), mapped(start + 4 * MIB, 2, second)), (0, 0))
    check("not twice", mapped(start + 2 * MIB, 2, second), INVALID_VALUE)
    check("not a part", mapped(start + 8 * MIB, 2, first), INVALID_VALUE)
    check("across both", set_bytes(start + 4 * MIB - 8, 16), 0)
    check("not beyond", set_bytes(start + 6 * MIB - 8, 16), INVALID_VALUE)
    base, length = c_uint64(), c_size_t()
    at = c_uint64(start + 5 * MIB)
    check("the range", driver.cuMemGetAddressRange_v2(byref(base), byref(length), at), 0)
    check("is the mapping", (base.value, length.value), (start + 4 * MIB, 2 * MIB))
    check("the same memory elsewhere", mapped(start + 8 * MIB, 4, first), 0)
    check("holds the same", reading(start + 12 * MIB - 8), b"\7" * 8)
    held = c_uint64()
    check("held once more", driver.cuMemRetainAllocationHandle(byref(held), c_void_p(start)), 0)
    check("by the same handle", held.value, first.value)
    check("let go", [driver.cuMemRelease(it) for it in (first, held, second)], [0, 0, 0])
    check("and once too often", driver.cuMemRelease(first), INVALID_VALUE)
    check("mappings keep it", used(), 6)
    check("part of a mapping", unmapped(start, 2), INVALID_VALUE)
    check("addresses in use", driver.cuMemAddressFree(c_uint64(start), c_size_t(20_000 * MIB)), 1)
    check("unmapped", (unmapped(start, 6), used()), (0, 4))
    check("the last one", (unmapped(start + 8 * MIB, 4), used()), (0, 0))
    check("addresses free", driver.cuMemAddressFree(c_uint64(start), c_size_t(20_000 * MIB)), 0)


def reading(address):
    target = ctypes.create_string_buffer(8)
    driver.cuMemcpyDtoH_v2(target, c_uint64(address), c_size_t(8))
    return target.raw


def shared():
    _, start = reserve(2)
    _, handle = create(2)
    mapped(start, 2, handle)
    set_bytes(start, 8)
    file = c_int()
    check("exported", driver.cuMemExportToShareableHandle(byref(file), handle, 1, c_uint64(0)), 0)
    imported = c_uint64()
    by = c_void_p(file.value)
    check("imported", driver.cuMemImportFromShareableHandle(byref(imported), by, 1), 0)
    os.close(file.value)
    _, other = reserve(2)
    check("mapped", mapped(other, 2, imported), 0)
    check("holds the same", reading(other), b"\7" * 8)
    check("is charged once", used(), 2)
    x = torch.zeros(8, device="cuda")
    name = ctypes.create_string_buffer(64)
    check("a name", driver.cudaIpcGetMemHandle(name, c_void_p(x.data_ptr())), 0)
    check("not of mapped memory", driver.cudaIpcGetMemHandle(name, c_void_p(start)), INVALID_VALUE)
    opened = (c_void_p(), type("Name", (ctypes.Structure,), {"_fields_": [("bytes", c_uint64 * 8)]}))
    own = opened[1].from_buffer(name)
    check("one's own", driver.cudaIpcOpenMemHandle(byref(opened[0]), own, 1), INVALID_CONTEXT)
    driver.cudaGetLastError()
    for address in (start, other):
        unmapped(address, 2)
    for it in (handle, imported):
        driver.cuMemRelease(it)
    del x
    torch.cuda.empty_cache()
    check("all is given back", used(), 0)


def pools():
    pool = c_void_p()
    check("a pool", driver.cuDeviceGetDefaultMemPool(byref(pool), 0), 0)
    pointer = c_uint64()
    allocated = driver.cuMemAllocAsync(byref(pointer), c_size_t(1000), None)
    check("a block", (allocated, used()), (0, 32))
    check("of the pool", attribute(pool, 7), 1024)
    check("freed", driver.cuMemFreeAsync(pointer, None), 0)
    check("twice", driver.cuMemFreeAsync(pointer, None), INVALID_VALUE)
    check("is kept", (attribute(pool, 5), used()), (32 * MIB, 32))
    torch.cuda.synchronize()
    check("until the host waits", (attribute(pool, 5), used()), (0, 0))
    check("the most", attribute(pool, 6), 32 * MIB)
    check("reset", driver.cuMemPoolSetAttribute(pool, 6, byref(c_uint64(0))), 0)
    check("to now", attribute(pool, 6), 0)
    driver.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(32 * MIB)))
    driver.cuMemAllocAsync(byref(pointer), c_size_t(40 * MIB), None)
    check("cudaFree frees it too", driver.cudaFree(c_void_p(pointer.value)), 0)
    torch.cuda.synchronize()
    check("more than the threshold goes", used(), 0)
    driver.cuMemAllocAsync(byref(pointer), c_size_t(MIB), None)
    driver.cuMemFreeAsync(pointer, None)
    torch.cuda.synchronize()
    check("as much as it stays", used(), 32)
    check("trimmed", (driver.cuMemPoolTrimTo(pool, c_size_t(0)), used()), (0, 0))


class PoolProperties(ctypes.Structure):
    """`CUmemPoolProps`: pinned memory of device 0, for this process alone."""

    _fields_ = [(it, c_int) for it in ("type", "handles", "location", "id")]
    _fields_ += [("reserved", ctypes.c_byte * 72)]


def ended_pools():
    pool, pointer = c_void_p(), c_uint64()
    check("one's own", driver.cuMemPoolCreate(byref(pool), byref(PoolProperties(1, 0, 1, 0))), 0)
    driver.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(MIB), pool, None)
    check("ends", (driver.cuMemPoolDestroy(pool), used()), (0, 32))
    check("with its last block", (driver.cuMemFreeAsync(pointer, None), used()), (0, 0))
    check("which is gone", driver.cuMemFreeAsync(pointer, None), INVALID_VALUE)


def managed():
    pointer, answer = c_uint64(), ctypes.c_uint()

    def is_managed():
        return driver.cuPointerGetAttribute(byref(answer), 8, pointer)

    check("managed", driver.cuMemAllocManaged(byref(pointer), c_size_t(4096), 1), 0)
    check("known as such", (is_managed(), answer.value), (0, 1))
    check("no answer wanted", driver.cuPointerGetAttribute(None, 8, pointer), INVALID_VALUE)
    check("freed as the host's", driver.cuMemFreeHost(c_void_p(pointer.value)), 0)
    check("registered there", driver.cudaHostRegister(c_void_p(pointer.value), c_size_t(4096), 0), 0)
    check("is not managed", (is_managed(), answer.value), (0, 0))
    driver.cudaHostUnregister(c_void_p(pointer.value))


def limits():
    """One set of limits, whichever interface names it."""
    bytes_ = c_size_t()
    check("a heap", driver.cudaDeviceSetLimit(2, c_size_t(5 * MIB)), 0)
    check("told", (driver.cuCtxGetLimit(byref(bytes_), 2), bytes_.value), (0, 5 * MIB))
    check("a stack", (driver.cuCtxSetLimit(0, c_size_t(2048)), used()), (0, 24))
    check("told too", (driver.cudaDeviceGetLimit(byref(bytes_), 0), bytes_.value), (0, 2048))
    check("no such limit", driver.cudaDeviceGetLimit(byref(bytes_), 99), 215)
    driver.cudaGetLastError()


def attribute(pool, which):
    value = c_uint64()
    driver.cuMemPoolGetAttribute(pool, which, byref(value))
    return value.value


at_start = torch.cuda.mem_get_info()
CONTEXT = at_start[1] - at_start[0]
virtual_memory()
shared()
pools()
ended_pools()
managed()
limits()
