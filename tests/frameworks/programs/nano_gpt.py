"""Trains a GPT of its own in the manner of nanoGPT: scaler, clipping, accumulation, fused AdamW."""

import argparse
import inspect
import json
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--accum", type=int, default=2)
parser.add_argument("--dtype", default="float16", choices=["float32", "bfloat16", "float16"])
parser.add_argument("--attention", default="sdpa", choices=["sdpa", "manual"])
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()


@dataclass
class GPTConfig:
    block_size: int = 256
    vocab_size: int = 8192
    n_layer: int = 6
    n_head: int = 6
    n_embd: int = 384
    dropout: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.dropout = config.dropout
        ones = torch.ones(config.block_size, config.block_size)
        self.register_buffer("bias", torch.tril(ones).view(1, 1, *ones.shape), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        heads = (
            it.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for it in self.c_attn(x).split(C, dim=2)
        )
        q, k, v = heads
        if args.attention == "sdpa":
            dropout = self.dropout if self.training else 0
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = F.dropout(F.softmax(att, dim=-1), self.dropout, self.training)
            y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd, bias=False),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd, bias=False),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self) -> torch.optim.AdamW:
        decay = [p for p in self.parameters() if p.dim() >= 2]
        nodecay = [p for p in self.parameters() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": 0.1},
            {"params": nodecay, "weight_decay": 0.0},
        ]
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
        return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=fused)


torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
device = "cuda"
dtype = getattr(torch, args.dtype)
ctx = nullcontext() if dtype == torch.float32 else torch.autocast(device, dtype=dtype)

config = GPTConfig()
data = torch.randint(config.vocab_size, (100_000,))


def get_batch() -> tuple[Tensor, Tensor]:
    ix = torch.randint(len(data) - config.block_size, (args.batch_size,)).tolist()
    x = torch.stack([data[i : i + config.block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + config.block_size] for i in ix])
    return (
        x.pin_memory().to(device, non_blocking=True),
        y.pin_memory().to(device, non_blocking=True),
    )


@torch.no_grad()
def estimate_loss() -> float:
    model.eval()
    losses = torch.zeros(2)
    for k in range(2):
        X, Y = get_batch()
        with ctx:
            _, loss = model(X, Y)
        losses[k] = loss.item()
    model.train()
    return losses.mean().item()


model = GPT(config).to(device)
scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)
optimizer = model.configure_optimizers()

best_val_loss = 1e9
micro_batches = 0
X, Y = get_batch()
for iter_num in range(args.steps):
    t0 = time.time()
    if iter_num == 0:
        best_val_loss = min(best_val_loss, estimate_loss())
    for _ in range(args.accum):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / args.accum
        X, Y = get_batch()
        scaler.scale(loss).backward()
        micro_batches += 1
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {iter_num}: loss {loss.item() * args.accum:.4f}, {time.time() - t0:.2f} s")

state = optimizer.state[model.lm_head.weight]
print(
    json.dumps(
        {
            "steps": int(state["step"].item()),
            "micro_batches": micro_batches,
            "scale": scaler.get_scale(),
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
