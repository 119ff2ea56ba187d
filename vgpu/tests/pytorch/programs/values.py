"""Values and sizes that small tensors decide, with shadow execution.

Each line of the output is one check: name, measured, expected.
"""

import torch
import torch.nn.functional as F
from torch import distributions, nn
from torch.nn.utils import rnn

CUDA = "cuda"


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def tensor(values, **how):
    return torch.tensor(values, device=CUDA, **how)


def decisions():
    mask = torch.ones(2, 64, dtype=torch.long, device=CUDA)
    check("a mask that masks nothing", bool((mask == 1).all()), True)
    mask[1, 60:] = 0
    check("a mask that masks something", bool((mask == 1).all()), False)
    check("lengths of a mask", mask.sum(-1).tolist(), [64, 60])
    check("equal tensors", torch.equal(mask, mask.clone()), True)
    check("different tensors", torch.equal(mask, mask + 1), False)
    check("a large integer tensor", torch.arange(100_000, device=CUDA).sum().item(), 4_999_950_000)
    check("a large integer tensor's end", torch.arange(100_000, device=CUDA).cpu()[-1].item(), 99_999)
    check("not a number", tensor([1.0, float("nan")]).isnan().tolist(), [False, True])
    check("half precision", (tensor([1.0, 2.0], dtype=torch.half) * 2).sum().item(), 6.0)
    check("a number beside integers", (tensor([1, 2]) + 1.5).tolist(), [2.5, 3.5])
    check("a power of a number", (2.0 ** tensor([1.0, 3.0])).tolist(), [2.0, 8.0])
    check("running maximum", torch.cummax(tensor([1, 3, 2]), 0).values.tolist(), [1, 3, 3])


def sizes():
    x = tensor([0, 3, 0, 5, 7])
    check("nonzero", torch.nonzero(x).tolist(), [[1], [3], [4]])
    check("where", torch.where(x > 3)[0].tolist(), [3, 4])
    check("boolean mask", x[x > 2].tolist(), [3, 5, 7])
    check("masked_select", x.masked_select(x > 2).tolist(), [3, 5, 7])
    check("nonzero of nothing", torch.nonzero(x > 9).shape[0], 0)
    unique, inverse, counts = torch.unique(tensor([3, 1, 3, 2, 1]), return_inverse=True, return_counts=True)
    check("unique", unique.tolist(), [1, 2, 3])
    check("unique's inverse", inverse.tolist(), [2, 0, 2, 1, 0])
    check("unique's counts", counts.tolist(), [2, 1, 2])
    check("unique of flags", torch.unique(tensor([True, False, True])).tolist(), [False, True])
    check("unique rows", torch.unique(tensor([[1, 2], [1, 2], [3, 4]]), dim=0).tolist(), [[1, 2], [3, 4]])
    check("runs", torch.unique_consecutive(tensor([1, 1, 2, 2, 1])).tolist(), [1, 2, 1])
    repeated = torch.repeat_interleave(tensor([1, 2, 3]), tensor([2, 0, 3]))
    check("repeat_interleave", repeated.tolist(), [1, 1, 3, 3, 3])
    check("one_hot", tuple(F.one_hot(tensor([0, 4, 2])).shape), (3, 5))
    check("bincount", torch.bincount(tensor([0, 4, 2, 4])).tolist(), [1, 0, 1, 0, 2])
    sparse = torch.sparse_coo_tensor(tensor([[0, 0, 1], [1, 1, 0]]), tensor([1.0, 1.0, 1.0]), (2, 2), check_invariants=False)
    check("entries of a sparse tensor", sparse.coalesce()._nnz(), 2)


def sequences():
    packed = rnn.pack_padded_sequence(torch.zeros(3, 5, 2, device=CUDA), tensor([5, 3, 2]).cpu(), batch_first=True)
    check("a packed batch", tuple(packed.data.shape), (10, 2))
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    check("a padded batch", tuple(padded.shape), (3, 5, 2))
    check("its lengths", lengths.tolist(), [5, 3, 2])


def random_numbers():
    cpu = torch.get_rng_state()
    cuda = torch.cuda.get_rng_state()
    check("a permutation", sorted(torch.randperm(7, device=CUDA).tolist()), list(range(7)))
    check("samples without replacement", sorted(torch.multinomial(torch.ones(5, device=CUDA), 5).tolist()), list(range(5)))
    draws = torch.randint(3, 5, (100,), device=CUDA)
    check("a range of integers", (draws.min().item(), draws.max().item()), (3, 4))
    uniform = torch.rand(1000, device=CUDA).mean().item()
    check("a uniform mean", 0.4 < uniform < 0.6, True)
    check("the program's own generator was not asked", bool((torch.get_rng_state() == cpu).all()), True)
    check("the device's own generator was", bool((torch.cuda.get_rng_state() == cuda).all()), False)


def distribution_arguments():
    normal = distributions.Normal(torch.zeros(3, device=CUDA), torch.ones(3, device=CUDA))
    check("a sample of a distribution", tuple(normal.sample((2,)).shape), (2, 3))
    try:
        distributions.Normal(torch.zeros(1, device=CUDA), -torch.ones(1, device=CUDA))
        refused = False
    except ValueError:
        refused = True
    check("a negative scale is refused", refused, True)
    categorical = distributions.Categorical(probs=tensor([0.25, 0.75]))
    check("a probability", round(categorical.log_prob(tensor(0)).exp().item(), 6), 0.25)


def scaler():
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", growth_interval=2)
    # What an earlier tensor left where the scaler's flag will be.
    tensor([1.0])
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(4096, 64, device=CUDA)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    check("no step was skipped", len(optimizer.state), 2)
    check("the scale grew", scaler.get_scale(), 2.0**17)


def inference():
    with torch.inference_mode():
        count = torch.arange(4, device=CUDA)
        count += 1
        check("in-place without versions", count.tolist(), [1, 2, 3, 4])


for checks in (decisions, sizes, sequences, random_numbers, distribution_arguments, scaler, inference):
    checks()
