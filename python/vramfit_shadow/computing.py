"""One operator: its CUDA kernel, and then its small results, really computed.

The CUDA kernel makes the allocations that it makes on a real GPU, chosen by the same dispatcher.
What comes after is a computation on the CPU over the same memory. PyTorch above sees no difference;
with a dispatch mode instead, autograd would decide otherwise in places, and the peak would be
another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from . import operators
from .finite import finite_so_far, keep_finite
from .host import alias, fill, one_thread, write
from .known import known
from .library import require
from .notes import notes

# Results of up to so many bytes are computed: what steers a program is small, and a larger tensor
# of floating-point numbers is an activation or a weight.
MOST_BYTES = 1 << 20
MOST_FLOAT_BYTES = 1 << 16

NUMBERS = (bool, int, float, complex)
CPU = torch.device("cpu")

# The program's own generators must give what they give without us.
_generator = torch.Generator()
_generator.manual_seed(0)

Kernel = Callable[..., Any]
# The clock stands still while this package is at work.
_pause, _resume = require().pause, require().resume
is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing


def is_small(tensor: Tensor) -> bool:
    """Whether a tensor is one that is computed."""
    try:
        size = tensor.nbytes
    except RuntimeError:
        return False  # Sparse.
    if size <= MOST_FLOAT_BYTES:
        return True
    return size <= MOST_BYTES and not (tensor.is_floating_point() or tensor.is_complex())


def tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """All tensors in arguments or results."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


class Operator:
    """An overload with what its schema says of its arguments."""

    def __init__(self, op: OpOverload, base: str, original: Any) -> None:
        schema = op._schema
        self.op = op
        self.base = base
        self.original = original
        self.writes = tuple(
            (index, it.name)
            for index, it in enumerate(schema.arguments)
            if it.alias_info and it.alias_info.is_write
        )
        self.in_place = bool(self.writes) and self.writes[0][0] == 0
        self.on_lists = self.in_place and base.startswith("_foreach")
        # One result, not written into an argument: the common case, which must be fast.
        self.returns_one = (
            not self.writes
            and len(schema.returns) == 1
            and isinstance(schema.returns[0].type, torch._C.TensorType)
        )
        self.tensor_at = tuple(
            index
            for index, it in enumerate(schema.arguments)
            if isinstance(it.type, torch._C.TensorType)
        )
        self.is_random = base in operators.RANDOM
        # What it overwrites need not have been known before.
        overwrites = not self.in_place or self.is_random or base in ("fill", "zero")
        self._unread = {it for write in self.writes for it in write} if overwrites else set()
        # Programs ask it of what should hold: a mask masks nothing, arguments are valid, a sum that
        # they divide by is positive.
        self._asks = base == "all" or base in operators.SMALLEST and self.returns_one
        self._stand_in = 1 if self._asks or base in operators.LOSSES else 0
        # Whether a matrix could be factorized.
        self._outcomes = [at for at, it in enumerate(schema.returns) if it.name == "info"]

    def call(self, keys: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls the CUDA kernel, whose time is the program's."""
        known.catch_up()
        _resume()
        try:
            return self.original.call_boxed(keys, *args, **kwargs)
        finally:
            _pause()

    def boxed(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """The arguments as a boxed call takes them: where the schema says tensor, PyTorch hands us
        the plain number that the program wrote, and wants a tensor without dimensions."""
        for index in self.tensor_at:
            if index < len(args) and args[index].__class__ in NUMBERS:
                return self._with_tensors(args)
        return args

    def _with_tensors(self, args: tuple[Any, ...]) -> list[Any]:
        places = [index for index in self.tensor_at if index < len(args)]
        # The condition of `where` has no say in the type of the result.
        typed = places[1:] if self.base == "where" else places
        other = next((args[index] for index in typed if isinstance(args[index], Tensor)), None)
        boxed = list(args)
        for index in places:
            if args[index].__class__ in NUMBERS:
                boxed[index] = _as_tensor(args[index], other)
        return boxed

    def results(self, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> list[Tensor]:
        """What it computed that is small and on the device."""
        found = out if isinstance(out, (list, tuple)) else (out,)
        if self.writes:
            found = [_argument(it, args, kwargs) for it in self.writes]
        return [it for it in tensors(found) if it.is_cuda and is_small(it)]

    def complete(
        self, args: Sequence[Any], kwargs: dict[str, Any], out: Any, results: list[Tensor]
    ) -> None:
        """Computes `results`, or puts stand-ins there."""
        if is_capturing():
            # On a real GPU nothing would be computed now either.
            self.settle(results, is_known=False)
            return
        is_known = True
        for it in self._inputs(args, kwargs):
            if not is_small(it):
                self._put_stand_ins(results)
                return
            is_known = is_known and known.holds(it)
        if self._asks and not is_known:
            self._put_stand_ins(results)
            return
        finite = not is_known and finite_so_far(args, kwargs, results)
        problem = self._compute(args, kwargs, out)
        if problem is None:
            notes.computed += 1
            if finite:
                keep_finite(results, self._stand_in)
            if not is_known:
                # A matrix that nobody knows is one that it works with.
                for index in self._outcomes:
                    fill(out[index], 0)
            self.settle(results, is_known)
            return
        if is_known:
            notes.failed(self.op.name(), problem)
        self._put_stand_ins(results)

    def _put_stand_ins(self, results: list[Tensor]) -> None:
        notes.stand_ins += 1
        self.settle(results, is_known=False)
        # What is changed in place by something unknown stays as it is.
        if self.in_place:
            return
        for result in results:
            fill(result, self._stand_in)

    def settle(self, results: Iterable[Tensor], is_known: bool) -> None:
        """Remembers whether `results` are true now."""
        for result in results:
            if is_known:
                known.learn(result, in_place=bool(self.writes))
            elif self.writes:
                # A result of its own was never known.
                known.forget(result)

    def _inputs(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Tensor]:
        if self._unread:
            args = [it for index, it in enumerate(args) if index not in self._unread]
            kwargs = {name: it for name, it in kwargs.items() if name not in self._unread}
        yield from tensors(args)
        yield from tensors(kwargs.values())

    def _compute(self, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> str | None:
        """Computes it on the CPU; what went wrong if something did."""
        try:
            with torch.no_grad(), one_thread():
                value = self.on_host(args, kwargs)
                return None if self.writes else _write(out, value)
        except Exception as error:
            return str(error)

    def on_host(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The operator's value by its CPU kernel, over the same memory."""
        host = {name: _host(value) for name, value in kwargs.items()}
        if self.is_random:
            host["generator"] = _generator
        return self.op(*map(_host, args), **host)


def _host(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _read(value) if value.is_cuda else value
    if isinstance(value, (list, tuple)):
        return [_host(it) for it in value]
    return CPU if isinstance(value, torch.device) else value


def _read(tensor: Tensor) -> Tensor:
    over = alias(tensor)
    # Products take conjugates as they are, which says a bit of the tensor, not its memory.
    if tensor.is_conj():
        over = over.conj()
    return torch._neg_view(over) if tensor.is_neg() else over


def _write(out: Any, value: Any) -> str | None:
    """Writes computed values where the CUDA kernel put its results; what does not match if they
    do not fit there."""
    for index, (result, true) in enumerate(_pairs(out, value)):
        # Further results that nobody asked for may be there on one side alone.
        unasked = index > 0 and 0 in (result.numel(), true.numel())
        if result.shape == true.shape:
            if result.is_cuda:
                write(result, true)
        elif not unasked:
            return f"{tuple(result.shape)} by CUDA, {tuple(true.shape)} by the CPU"
    return None


def _pairs(out: Any, value: Any) -> Iterator[tuple[Tensor, Tensor]]:
    if isinstance(out, Tensor) and isinstance(value, Tensor):
        yield out, value
    elif isinstance(out, (list, tuple)) and isinstance(value, (list, tuple)):
        for pair in zip(out, value, strict=True):
            yield from _pairs(*pair)


def _as_tensor(number: Any, other: Tensor | None) -> Tensor:
    """A number beside a tensor, of the type in which PyTorch computes with both."""
    if other is None:
        return torch.scalar_tensor(number, dtype=torch.get_default_dtype(), device=CPU)
    if other.is_floating_point() and number.__class__ is not complex and number != 0:
        return _number(number.__class__, number, other.dtype)
    return torch.scalar_tensor(number, dtype=torch.result_type(other, number), device=CPU)


# A training step uses the same numbers again. Zero is left out: it has two signs, which are equal.
@functools.lru_cache(1024)
def _number(kind: type, number: Any, dtype: torch.dtype) -> Tensor:
    return torch.scalar_tensor(number, dtype=dtype, device=CPU)


def aside(kernel: Kernel) -> Kernel:
    """`kernel`, whose own time is not the program's."""

    def paused(*args: Any, **kwargs: Any) -> Any:
        _pause()
        try:
            return kernel(*args, **kwargs)
        finally:
            _resume()

    return paused


def computed(operator: Operator) -> Kernel:
    """The kernel of an operator that is computed after its CUDA kernel."""

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        notes.calls += 1
        values = operator.boxed(args)
        # PyTorch counts what is written to lists before their kernel, not after it.
        held = [it for it in tensors(values[0]) if known.holds(it)] if operator.on_lists else ()
        try:
            out = operator.call(keys, values, kwargs)
        except Exception as error:
            # The frames of this package would keep the arguments while the program handles it.
            args, values, kwargs, held = (), (), {}, ()
            raise error.with_traceback(None)
        for tensor in held:
            known.learn(tensor, in_place=True)
        if operator.returns_one:
            if not out.is_cuda or not is_small(out):
                return out
            results = [out]
        else:
            results = operator.results(values, kwargs, out)
        if results:
            operator.complete(values, kwargs, out, results)
        return out

    return kernel


def unscaled(operator: Operator) -> Kernel:
    """A gradient scaler's look for infinities: gradients that were not computed count as finite."""

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        found_infinite = args[1]
        was_known = known.holds(found_infinite)
        out = operator.call(keys, args, kwargs)
        if was_known:
            known.learn(found_infinite, in_place=True)
        for gradient in args[0]:
            known.forget(gradient)
        return out

    return kernel


def forgotten(operator: Operator) -> Kernel:
    """The kernel of an operator that is not computed, and writes into tensors that may be known."""
    arguments = operator.op._schema.arguments
    # Running statistics are written without the schema's saying so.
    writes = operator.writes + tuple(
        (index, it.name) for index, it in enumerate(arguments) if it.name in operators.STATISTICS
    )
    trains = [(at, it.name) for at, it in enumerate(arguments) if it.name in ("train", "training")]

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        notes.calls += 1
        values = operator.boxed(args)
        try:
            out = operator.call(keys, values, kwargs)
        except Exception as error:
            args, values, kwargs = (), (), {}
            raise error.with_traceback(None)
        if all(_argument(it, values, kwargs) for it in trains):
            for tensor in tensors(_argument(it, values, kwargs) for it in writes):
                known.forget(tensor)
        return out

    return kernel


def _argument(it: tuple[int, str], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    index, name = it
    return args[index] if index < len(args) else kwargs.get(name)
