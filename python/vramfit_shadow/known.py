"""Which tensors on the virtual GPU hold what a real one would hold."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, UntypedStorage

# Entries below which nothing is swept.
FEW = 1024


class Known:
    """The storages whose bytes were really computed, each with the version it was computed at.

    A storage stands here by its address. A weak reference keeps that address from being used again
    while the entry is there, and a kernel that this package does not watch shows by a new version.
    One bit a storage: a known value written into a part of unknown memory does not make it known.
    """

    def __init__(self) -> None:
        self._versions: dict[int, tuple[int, int]] = {}
        self._sweep_at = FEW

    def holds(self, tensor: Tensor) -> bool:
        """Whether the tensor's bytes are the true ones."""
        if not tensor.is_cuda:
            return True
        versions = self._versions.get(tensor.untyped_storage()._cdata)
        return versions is not None and versions[0] <= _version(tensor) <= versions[1]

    def learn(self, tensor: Tensor, in_place: bool) -> None:
        """The tensor's bytes were computed just now."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if in_place and tensor.numel() * tensor.element_size() < storage.nbytes():
            if not self.holds(tensor):
                return
        elif key not in self._versions:
            if len(self._versions) >= self._sweep_at:
                self._sweep()
            storage._weak_ref()
        version = _version(tensor)
        # PyTorch counts a write in place only after its kernel, and not at all inside itself.
        self._versions[key] = (version, version + 1 if in_place else version)

    def forget(self, tensor: Tensor) -> None:
        """The tensor's bytes are stand-ins now."""
        key = tensor.untyped_storage()._cdata
        if self._versions.pop(key, None) is not None:
            UntypedStorage._free_weak_ref(key)

    def _sweep(self) -> None:
        for key in [key for key in self._versions if UntypedStorage._expired(key)]:
            del self._versions[key]
            UntypedStorage._free_weak_ref(key)
        self._sweep_at = max(FEW, 2 * len(self._versions))


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


known = Known()
"""Those of this process."""


def alias(tensor: Tensor) -> Tensor:
    """A tensor of the CPU over the memory of one of the virtual GPU, which the host can read."""
    return _over(tensor.data_ptr(), tensor.dtype, tensor.size(), tensor.stride())


# It owns nothing, so one over memory that is gone does no harm; a training step uses the same again.
@functools.lru_cache(4096)
def _over(
    address: int, dtype: torch.dtype, size: tuple[int, ...], stride: tuple[int, ...]
) -> Tensor:
    over = torch.empty(0, dtype=dtype, device="cpu")
    if 0 in size:
        return over.new_empty(size)
    span = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    storage = torch._C._construct_storage_from_data_pointer(
        address, over.device, span * dtype.itemsize
    )
    return over.set_(storage, 0, size, stride)
