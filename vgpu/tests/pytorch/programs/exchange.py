"""What collectives and messages between two ranks carry, as JSON lines.

usage: exchange.py all|die|disagree
"""

import json
import os
import sys

import torch
import torch.distributed as dist

mode = sys.argv[1]
rank = int(os.environ["LOCAL_RANK"])
other = 1 - rank
torch.cuda.set_device(rank)
dist.init_process_group("nccl")


def say(**facts):
    os.write(1, (json.dumps({"rank": rank, **facts}) + "\n").encode())


def on_device(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).cuda()


def reduced(values, operation=dist.ReduceOp.SUM, dtype=torch.float32, group=None):
    tensor = on_device(values, dtype)
    dist.all_reduce(tensor, operation, group=group)
    return tensor.tolist()


def failure(call):
    try:
        call()
    except dist.DistBackendError as error:
        return str(error)
    return None


dist.barrier()
if mode == "die":
    if rank == 1:
        os._exit(0)
    say(error=failure(lambda: reduced([1.0])))
    os._exit(0)
if mode == "disagree":
    say(error=failure(lambda: reduced([1.0] * (1 + rank))))
    os._exit(0)

facts = {
    "sum": reduced([rank + 1.0, 0.5]),
    "maximum": reduced([rank, -rank], dist.ReduceOp.MAX, torch.int64),
    "average": reduced([1.0, rank], dist.ReduceOp.AVG, torch.bfloat16),
    "product": reduced([rank + 2.0], dist.ReduceOp.PRODUCT, torch.float16),
}
broadcast = on_device([rank + 5.0])
dist.broadcast(broadcast, 1)
facts["broadcast"] = broadcast.tolist()
gathered = torch.empty(4, device="cuda")
dist.all_gather_into_tensor(gathered, on_device([rank, rank + 10]))
facts["gathered"] = gathered.tolist()
scattered = torch.empty(1, device="cuda")
dist.reduce_scatter_tensor(scattered, on_device([rank + 1.0, rank + 10.0]))
facts["scattered"] = scattered.tolist()
exchanged = torch.empty(2, device="cuda")
dist.all_to_all_single(exchanged, on_device([10.0 * rank, 10.0 * rank + 1]))
facts["exchanged"] = exchanged.tolist()
# More messages at once than a mailbox holds, both ways.
received = [torch.empty(1, device="cuda") for _ in range(20)]
batch = [dist.P2POp(dist.isend, on_device([100.0 * rank + n]), other) for n in range(20)]
batch += [dist.P2POp(dist.irecv, tensor, other) for tensor in received]
for work in dist.batch_isend_irecv(batch):
    work.wait()
facts["received"] = [tensor.item() for tensor in received]
facts["alone"] = reduced([rank + 1.0], group=[dist.new_group([0]), dist.new_group([1])][rank])
# Too large to be exchanged; the ranks only meet.
large = torch.empty(1 << 20, device="cuda")
dist.all_reduce(large)
say(**facts)
dist.destroy_process_group()
