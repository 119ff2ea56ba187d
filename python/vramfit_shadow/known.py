"""Which tensors on the virtual GPU hold what a real one would hold."""

from __future__ import annotations

import weakref

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
        # Written in place by the kernels that have ended last.
        self._written: list[tuple[weakref.ref[Tensor], int]] = []

    def holds(self, tensor: Tensor) -> bool:
        """Whether the tensor's bytes are the true ones."""
        if not tensor.is_cuda:
            return True
        self.catch_up()
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
        if in_place:
            # A view is gone soon; what it looks at has the same version.
            base = tensor._base
            self._written.append((weakref.ref(tensor if base is None else base), version))

    def catch_up(self) -> None:
        """Another operator begins, or a value is read: by now PyTorch has counted the last writes
        in place, or it never will. Whatever it counts from here on is not theirs."""
        if not self._written:
            return
        written, self._written = self._written, []
        for reference, before in written:
            tensor = reference()
            if tensor is None:
                continue
            key = tensor.untyped_storage()._cdata
            version = _version(tensor)
            if self._versions.get(key) == (before, before + 1) and before <= version <= before + 1:
                self._versions[key] = (version, version)

    def forget(self, tensor: Tensor) -> None:
        """The tensor's bytes are stand-ins now."""
        try:
            key = tensor.untyped_storage()._cdata
        except NotImplementedError:
            return  # Sparse: its parts have storages.
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
