"""Every operator that PyTorch tests itself on a GPU, forward and backward, with its own sample inputs."""

import sys
import types
import unittest
import warnings

try:
    import expecttest  # noqa: F401  PyTorch's test helpers want it, for nothing that is used here.
except ImportError:
    expecttest = types.ModuleType("expecttest")
    expecttest.TestCase = unittest.TestCase
    sys.modules["expecttest"] = expecttest
import torch
from attempt import Attempts, backward
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

warnings.simplefilter("ignore")
CUDA = "cuda"
SAMPLES = 3

# Fail as they do on a card: one has no CUDA kernel, the samples of one mix types, the others want
# compute capability 8.9.
NOT_ON_A_GPU = {"sparse.mm", "_softmax_backward_data", "torch._scaled_mm", "torch._scaled_mm_v2"}
# Each is compiled at run time, for seconds: one stands for all.
COMPILED = {"polygamma", "logaddexp", "chalf", "sinc", "sigmoid", "i0", "lcm", "gcd"}


def is_left_out(op):
    compiled = op.name.startswith("special.") and op.name != "special.i0e"
    return op.name in NOT_ON_A_GPU or op.name in COMPILED or compiled


def run(op, sample):
    out = op(sample.input, *sample.args, **sample.kwargs)
    found = [it for it in tree_leaves(out) if isinstance(it, torch.Tensor)]
    backward([it for it in found if it.requires_grad])


torch.manual_seed(0)
attempt = Attempts()
for op in op_db:
    if is_left_out(op):
        continue
    dtypes = sorted(op.supported_dtypes(CUDA), key=str)
    if not dtypes:
        continue
    dtype = torch.float32 if torch.float32 in dtypes else dtypes[0]
    gradient = dtype.is_floating_point and op.supports_autograd
    samples = op.sample_inputs(CUDA, dtype, requires_grad=gradient)
    for sample in [sample for sample, _ in zip(samples, range(SAMPLES))]:
        attempt(f"{op.name} {op.variant_test_name}", lambda: run(op, sample))
attempt.finish()
