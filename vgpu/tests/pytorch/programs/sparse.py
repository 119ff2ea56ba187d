"""Sparse tensors: products, sums, solves, coalescing, sparse gradients."""

import torch
from attempt import Attempts, backward
from torch import nn

CUDA = "cuda"


def coordinates(rows=100, columns=80, entries=500, dtype=torch.float32):
    where = torch.stack([torch.randint(0, rows, (entries,)), torch.randint(0, columns, (entries,))])
    sparse = torch.sparse_coo_tensor(where, torch.randn(entries, dtype=dtype), (rows, columns))
    return sparse.to(CUDA).coalesce()


def dense(*shape, dtype=torch.float32):
    return torch.randn(shape, device=CUDA, dtype=dtype, requires_grad=True)


def sparse_gradient(layer, optimizer):
    optimizer = optimizer(list(layer.parameters()))
    layer(torch.randint(0, 1000, (16, 10), device=CUDA)).sum().backward()
    optimizer.step()


attempt = Attempts()
for dtype in torch.float32, torch.float64, torch.complex64:
    a = coordinates(dtype=dtype)
    rows = a.to_sparse_csr()
    square = coordinates(64, 64, dtype=dtype)
    other = coordinates(dtype=dtype)
    for name, sparse, second in ("COO", a, other), ("CSR", rows, other.to_sparse_csr()):
        attempt(f"{name} {dtype} by a matrix", lambda: backward(sparse @ dense(80, 32, dtype=dtype)))
        attempt(f"{name} {dtype} by a vector", lambda: sparse @ dense(80, dtype=dtype).detach())
        attempt(f"{name} {dtype} by a sparse one", lambda: sparse @ sparse.t())
        attempt(f"{name} {dtype} sum", lambda: sparse + second)
        attempt(f"{name} {dtype} to dense", lambda: sparse.to_dense())
        attempt(
            f"{name} {dtype} addmm",
            lambda: torch.sparse.addmm(dense(100, 32, dtype=dtype), sparse, dense(80, 32, dtype=dtype)),
        )
    attempt(f"COO {dtype} to CSR and back", lambda: a.to_sparse_csr().to_sparse_coo())
    attempt(f"sampled product {dtype}", lambda: torch.sparse.sampled_addmm(
        rows, dense(100, 16, dtype=dtype).detach(), dense(16, 80, dtype=dtype).detach()))
    attempt(f"triangular solve {dtype}", lambda: torch.triangular_solve(
        dense(64, 4, dtype=dtype).detach(), square.to_sparse_csr()))
    blocks = square.to_dense().to_sparse_bsr((8, 8))
    attempt(f"BSR {dtype} by a matrix", lambda: blocks @ dense(64, 4, dtype=dtype).detach())
    attempt(f"BSR {dtype} solve", lambda: torch.triangular_solve(dense(64, 4, dtype=dtype).detach(), blocks))
    attempt(f"sparse sum {dtype}", lambda: torch.sparse.sum(a, 1))
attempt("sparse softmax", lambda: torch.sparse.softmax(coordinates(), 1))
attempt("gradient of a sparse product", lambda: backward(torch.sparse.mm(
    coordinates().requires_grad_(), dense(80, 8))))
embedding = nn.Embedding(1000, 64, sparse=True, device=CUDA)
attempt("sparse embedding", lambda: sparse_gradient(embedding, torch.optim.SparseAdam))
bag = nn.EmbeddingBag(1000, 64, mode="mean", sparse=True, device=CUDA)
attempt("sparse bag", lambda: sparse_gradient(bag, lambda it: torch.optim.SGD(it, 0.1)))
attempt.finish()
