"""Trying many things and telling all that failed, for programs beside this one."""

import sys
import traceback


class Attempts:
    """Attempts by name; a program ends by `finish`."""

    def __init__(self):
        self.failed = []
        self.count = 0

    def __call__(self, name, attempt):
        self.count += 1
        try:
            attempt()
        except Exception as error:
            self.failed.append(f"{name}: {type(error).__name__}: {error}".split("\n")[0])
            if len(self.failed) == 1:
                traceback.print_exc()

    def finish(self):
        print(self.count)
        if self.failed:
            sys.exit("\n".join(self.failed))


def backward(result):
    """Goes back through everything in a result that has a gradient."""
    results = result if isinstance(result, (tuple, list)) else [result]
    total = 0
    for tensor in results:
        if tensor.is_floating_point() or tensor.is_complex():
            real = tensor.abs() if tensor.is_complex() else tensor
            total = total + real.sum()
    if getattr(total, "requires_grad", False):
        total.backward()
