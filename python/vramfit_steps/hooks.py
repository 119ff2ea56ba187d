"""Where the program is noticed: its optimizers, its backward passes, and its end."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.optim import optimizer as optim

from vramfit_torch import about, allocator, clock
from vramfit_torch.clock import Split, Stamp, Took

from . import memory
from .progress import Progress, of_this_process, wait_to_be_ended

# Steps of the optimizer that is furthest ahead, after which nothing more is waited for: an optimizer
# that is never used, state that grows with each step. A critic that is trained ten times as often as
# its generator is within it, and so is the history of `LBFGS`.
MOST_STEPS = 24


def _harmless(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook whose failure is said, and never the program's."""

    @functools.wraps(hook)
    def tried(*arguments: Any, **named: Any) -> None:
        # What this package does takes time that is not the program's.
        clock.pause()
        try:
            hook(*arguments, **named)
        except Exception as error:
            print(f"vramfit: {hook.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            clock.resume()

    return tried


class Watch:
    """What goes on between the hooks of one process."""

    def __init__(self, folder: Path, to_see: int | None, told_by: int) -> None:
        self.folder = folder
        self.to_see = to_see
        self.told_by = told_by
        self.made: list[weakref.ref[Any]] = []
        self.begin()

    def begin(self) -> None:
        """Nothing is known yet of this process."""
        self.progress: Progress = of_this_process()
        # By id: an optimizer may refuse to be hashed. Kept, so that no id is given out twice.
        self.optimizers: dict[int, Any] = {}
        self.steps: dict[int, int] = {}
        self.begun: Stamp | None = None
        self.last: Stamp | None = None

    def begin_in_child(self) -> None:
        """A forked child may train, unless its parent has used CUDA: then it cannot."""
        if not torch.cuda._is_in_bad_fork():
            self.begin()

    def optimizer_made(self, optimizer: Any) -> None:
        """There is one that will step, most likely."""
        self.made.append(weakref.ref(optimizer))

    @_harmless
    def before_step(self, optimizer: Any, *_: Any) -> None:
        """An optimizer is about to step."""
        if not self._is_own():
            return
        self.optimizers[id(optimizer)] = optimizer
        self.begun = self._now()
        held = memory.gradients([optimizer])
        self.progress.gradients = max(self.progress.gradients, held)

    @_harmless
    def after_step(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has stepped. Of several, the one that is furthest behind counts."""
        if not self._is_own():
            return
        now = self._now()
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        steps = min(self.steps.values())
        progress = self.progress
        if self.begun:
            _append(progress.optimizer_seconds, progress.optimizer_times, self.begun.until(now))
        if steps > progress.steps:
            if self.last:
                _append(progress.step_seconds, progress.step_times, self.last.until(now))
            self.last = now
        progress.steps = steps
        before, progress.optimizer_state = (
            progress.optimizer_state,
            memory.state(self.optimizers.values()),
        )
        enough = (
            self.to_see is not None
            and steps >= self.to_see
            and (self._is_settled(before) or max(self.steps.values()) >= MOST_STEPS)
        )
        if enough or steps <= 1:
            progress.weights = memory.weights()
        progress.waiting = enough
        if enough:
            # First: who reads that it waits may end it at once.
            _report_now()
        self.tell()
        if enough:
            wait_to_be_ended(self.folder, self.told_by)

    def _is_settled(self, state_before: int) -> bool:
        """Whether another step would hold no more: each optimizer has stepped, and keeps what it
        kept before."""
        made = (optimizer for it in self.made if (optimizer := it()) is not None)
        to_come = any(id(it) not in self.steps and memory.trains_on_gpu(it) for it in made)
        return not to_come and self.progress.optimizer_state <= state_before

    @_harmless
    def before_backward(self) -> None:
        """A backward pass is about to begin: activations are whole. Those of the first step are
        held beside less."""
        if self.progress.steps == 0 or not self._is_own():
            return
        optimizers = self.optimizers.values()
        progress = self.progress
        others = progress.weights + progress.optimizer_state + memory.gradients(optimizers)
        live = torch.cuda.memory_allocated() - others
        progress.activations = max(progress.activations, live)

    @_harmless
    def out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        """The allocator has found no memory, whatever the program makes of it."""
        if self._is_own():
            self.progress.out_of_memory.append(requested)
            self.tell()

    @_harmless
    def end(self) -> None:
        """The interpreter ends."""
        if self._is_own() and torch.cuda.is_initialized():
            self.tell()

    def tell(self) -> None:
        """Writes down what is known."""
        self.progress.devices = allocator.devices()
        if torch.cuda.is_initialized() and not self.progress.cudnn:
            self.progress.cudnn = about.cudnn()
        self.progress.write(self.folder)

    def _now(self) -> Stamp:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return Stamp.now()

    def _is_own(self) -> bool:
        """Whether this is no forked child, which has its parent's notes."""
        return os.getpid() == self.progress.pid


def _append(seconds: list[float], times: list[Split], took: Took) -> None:
    seconds.append(took.seconds)
    if took.split:
        times.append(took.split)


def begin(folder: str) -> None:
    """Watches from now on."""
    to_see = os.environ.get("VRAMFIT_STEPS_TO_SEE", "")
    told_by = int(os.environ.get("VRAMFIT_STEPS_TOLD_BY", "0"))
    watch = Watch(Path(folder), int(to_see) if to_see else None, told_by)
    _wrap_making(watch)
    optim.register_optimizer_step_pre_hook(watch.before_step)
    optim.register_optimizer_step_post_hook(watch.after_step)
    _wrap_backward(watch)
    # What makes PyTorch load CUDA must not happen now, only once the program does so.
    torch.cuda._lazy_call(lambda: _attach(watch))
    atexit.register(watch.end)
    os.register_at_fork(after_in_child=watch.begin_in_child)


def _wrap_making(watch: Watch) -> None:
    make = torch.optim.Optimizer.__init__

    @functools.wraps(make)
    def noticed(optimizer: Any, *arguments: Any, **named: Any) -> None:
        make(optimizer, *arguments, **named)
        watch.optimizer_made(optimizer)

    torch.optim.Optimizer.__init__ = noticed  # type: ignore[method-assign]


def _wrap_backward(watch: Watch) -> None:
    backward = torch.autograd.backward

    def noticed(*arguments: Any, **named: Any) -> Any:
        watch.before_backward()
        return backward(*arguments, **named)

    torch.autograd.backward = noticed


def _attach(watch: Watch) -> None:
    allocator.observe_out_of_memory(watch.out_of_memory)
    allocator.keep_peaks()


def _report_now() -> None:
    """Has the virtual GPU's report written, where there is one: the process will not end by
    itself."""
    import vramfit_shadow  # beside this package, loaded by `sitecustomize`

    vramfit_shadow.report_now()
