"""Overwrites known values by kernels that are not computed, and reads them back; then
runs out of memory in a compiled function."""

import torch
import triton
import triton.language as tl


@triton.jit
def store_seven(out, source, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(source + at) * 0 + 7.0)


@torch.library.custom_op("overwritten::store_two", mutates_args=("out",))
def store_two(out: torch.Tensor) -> None:
    """In the place of a library's own kernel, of which PyTorch knows what its schema says."""
    torch.cos(out)


@torch.compile
def tripled_in_place(x):
    x.mul_(3.0)
    return x


def ones():
    return torch.ones(16, device="cuda")


def known():
    """What follows reads nothing unknown."""
    twice = ones() * 2
    assert twice.sum().item() == 32.0
    twice += 1
    assert twice[0].item() == 3.0
    twice[1] = 5
    assert twice[1].item() == 5.0 and twice[0].item() == 3.0
    norm = torch.nn.BatchNorm2d(3, device="cuda").eval()
    norm(torch.empty(2, 3, 64, 64, device="cuda"))
    assert norm.running_mean[0].item() == 0.0


def unknown():
    """What a real GPU would print is 0.5, 0.0, 1.0, 2.0, 7.0, 7.0, 3.0, the mean and 2.0."""
    filled = torch.full((4,), 0.25, device="cuda")
    torch._foreach_mul_([filled], 2.0)
    print(filled[0].item())
    zeroed = ones()
    torch._foreach_zero_([zeroed])
    print(bool(zeroed.any()))
    copied = torch.zeros(16, device="cuda")
    torch._foreach_copy_([copied], [ones()])
    print(copied[0].item())
    weight = torch.nn.Parameter(ones())
    weight.grad = torch.full((16,), 100.0, device="cuda")
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    print(weight.grad[0].item())
    fresh = torch.zeros(16, device="cuda")
    store_seven[(1,)](fresh, ones(), SIZE=16)
    print(fresh[0].item())
    computed = ones()
    computed += 1
    store_seven[(1,)](out=computed, source=ones(), SIZE=16)
    print(computed[0].item())
    compiled = ones()
    tripled_in_place(compiled)
    print(compiled[0].item())
    norm = torch.nn.BatchNorm2d(3, device="cuda")
    norm(torch.empty(2, 3, 64, 64, device="cuda"))
    print(norm.running_mean[0].item())
    counted = ones()
    store_two(counted)
    print(counted[0].item())


@torch.compile
def grown(x):
    return (x + 1).repeat(1 << 20).cos()


known()
unknown()
try:
    grown(torch.empty(1 << 14, device="cuda"))
except torch.OutOfMemoryError:
    print("none left")
