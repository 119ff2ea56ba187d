"""What the workloads measure with: the counters of PyTorch's allocator."""

import time

import torch


def peak_of(step, times=10, rest=0.0):
    """The median of the highest allocated bytes of so many steps, as the sources take it.

    `rest` seconds before each step let the autograd thread drop what it holds of the step before.
    """
    peaks = []
    for _ in range(times):
        time.sleep(rest)
        torch.cuda.reset_peak_memory_stats()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    return {"allocated peak": sorted(peaks)[times // 2]}


def by_mode(forward, mode, parameters):
    """`peak_of` a forward pass, of backward passes through one graph, or of both together.

    The sources measure both together first; what the backward pass leaves behind, the workspace of
    its thread, is there when they measure the forward pass.
    """
    if mode == "backward":
        output = forward()
        gradient = torch.randn_like(output)
        return peak_of(lambda: output.backward(gradient, retain_graph=True))

    def full():
        output = forward()
        output.backward(torch.randn_like(output), retain_graph=True)

    figures = peak_of(full)
    if mode == "full":
        return figures
    for parameter in parameters:
        parameter.grad = None
    return peak_of(forward)

