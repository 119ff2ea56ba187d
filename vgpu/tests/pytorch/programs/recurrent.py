"""Recurrent networks and CTC loss, forward and backward, through cuDNN: [without_loss].

The loss reads lengths back that kernels have converted, so it needs small tensors to be computed.
"""

import sys

import torch
from attempt import Attempts
from torch import nn
from torch.nn.functional import ctc_loss
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

CUDA = "cuda"
STEPS, BATCH, INPUT, HIDDEN = 20, 8, 64, 128


def train(network, dtype):
    network = network.to(CUDA, dtype)
    x = torch.randn(STEPS, BATCH, INPUT, device=CUDA, dtype=dtype, requires_grad=True)
    y, _ = network(x)
    y.sum().backward()
    assert x.grad is not None and all(it.grad is not None for it in network.parameters())
    with torch.no_grad():
        network.eval()(x)


def packed(kind):
    network = kind(INPUT, HIDDEN, bidirectional=True).to(CUDA)
    lengths = torch.tensor([20, 15, 7, 3])
    x = pack_padded_sequence(torch.randn(STEPS, 4, INPUT, device=CUDA), lengths)
    y, told = pad_packed_sequence(network(x)[0])
    assert y.shape == (STEPS, 4, 2 * HIDDEN) and told.tolist() == lengths.tolist()
    y.sum().backward()


def weights_in_one_piece():
    network = nn.LSTM(INPUT, HIDDEN, 2, bidirectional=True, proj_size=32).to(CUDA)
    storages = {it.untyped_storage().data_ptr() for it in network._flat_weights}
    assert len(storages) == 1, f"{len(storages)} pieces of weights"
    # As cuDNN 9.19 states it for these sizes.
    elements = network._flat_weights[0].untyped_storage().nbytes() // 4
    assert elements == sum(it.numel() for it in network.parameters()), elements


def reserve_is_kept():
    """What cuDNN keeps for the backward pass stays beside outputs and states."""
    network = nn.LSTM(INPUT, HIDDEN, 2).to(CUDA)
    x = torch.randn(STEPS, BATCH, INPUT, device=CUDA)
    network(x)
    before = torch.cuda.memory_allocated()
    y, states = network(x)
    kept = torch.cuda.memory_allocated() - before
    # Two states go in as zeros, two come out; cuDNN 9.19 states 901,376 bytes of reserve.
    expected = y.nbytes + 2 * sum(it.nbytes for it in states) + 901_376
    assert 0 <= kept - expected < 512, f"{kept} bytes kept, {expected} expected"


def ctc(labels, lengths):
    """What cuDNN takes has 32-bit labels in one row."""
    logits = torch.randn(100, BATCH, 30, device=CUDA, requires_grad=True)
    loss = ctc_loss(logits.log_softmax(-1), labels, torch.full_like(lengths, 100), lengths)
    loss.backward()
    assert logits.grad is not None


def main():
    attempt = Attempts()
    for kind in nn.RNN, nn.LSTM, nn.GRU:
        variants = [
            {},
            {"bidirectional": True, "num_layers": 2, "dropout": 0.3},
            {"num_layers": 3, "bias": False, "batch_first": True},
        ]
        if kind is nn.LSTM:
            variants.append({"proj_size": 32, "num_layers": 2})
        for variant in variants:
            for dtype in torch.float32, torch.float64, torch.float16, torch.bfloat16:
                network = kind(INPUT, HIDDEN, **variant)
                attempt(f"{kind.__name__} {variant} {dtype}", lambda: train(network, dtype))
        attempt(f"packed {kind.__name__}", lambda: packed(kind))
        cell = {nn.RNN: nn.RNNCell, nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell}[kind](INPUT, HIDDEN)
        x = torch.randn(BATCH, INPUT, device=CUDA)
        attempt(f"{kind.__name__} cell", lambda: torch.cat([*cell.to(CUDA)(x)]).sum().backward())
    attempt("weights", weights_in_one_piece)
    attempt("reserve", reserve_is_kept)
    if "without_loss" not in sys.argv:
        row = torch.randint(1, 29, (BATCH * 20,), dtype=torch.int32, device=CUDA)
        lengths = torch.full((BATCH,), 20, dtype=torch.int32, device=CUDA)
        attempt("CTC by cuDNN", lambda: ctc(row, lengths))
        attempt("CTC by PyTorch", lambda: ctc(row.view(BATCH, 20).long(), lengths.long()))
    attempt.finish()


main()
