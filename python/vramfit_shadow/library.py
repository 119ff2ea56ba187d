"""The virtual GPU's entry points for Python (vgpu/src/python.rs)."""

from __future__ import annotations

import ctypes
import functools


class Library:
    """The functions, as the process has them."""

    def __init__(self, process: ctypes.PyDLL) -> None:
        self.expect_count = process.vramfit_vgpu_expect_count
        self.expect_count.argtypes = [ctypes.c_int64]
        self.expect_count.restype = None
        self.drop_count = process.vramfit_vgpu_drop_count
        self.drop_count.argtypes = []
        self.drop_count.restype = ctypes.c_int
        self.expect_bytes = process.vramfit_vgpu_expect_bytes
        self.expect_bytes.argtypes = [ctypes.c_uint64]
        self.expect_bytes.restype = None
        self.account = process.vramfit_vgpu_account
        self.account.argtypes = [ctypes.c_int]
        self.account.restype = None
        self.is_known = process.vramfit_vgpu_is_known
        self.is_known.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        self.is_known.restype = ctypes.c_int
        self.hand_over = process.vramfit_vgpu_notes
        self.hand_over.argtypes = [ctypes.c_char_p]
        self.hand_over.restype = ctypes.c_int
        self.pause = process.vramfit_vgpu_pause
        self.pause.argtypes = []
        self.pause.restype = None
        self.resume = process.vramfit_vgpu_resume
        self.resume.argtypes = []
        self.resume.restype = None
        self.report = process.vramfit_vgpu_report
        self.report.argtypes = []
        self.report.restype = None


@functools.cache
def find() -> Library | None:
    """The virtual GPU of this process; none if it runs on no virtual GPU."""
    try:
        # Calls that keep the interpreter's lock: they are short, and what they set is the thread's.
        return Library(ctypes.PyDLL(None))
    except AttributeError:
        return None


def require() -> Library:
    """The virtual GPU of this process, which must run on one."""
    found = find()
    if found is None:
        raise RuntimeError("this process runs on no virtual GPU")
    return found
