"""Linear algebra, forward and backward, in each type, for one matrix and for batches."""

import torch
from attempt import Attempts, backward
from torch import linalg

CUDA = "cuda"
TYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
SQUARE = (5, 5), (200, 200), (4, 5, 5), (3, 64, 64), (64, 8, 8)
TALL = (200, 40), (4, 70, 5)
WIDE = ((40, 200),)


def hermitian(a):
    return a + a.mH


def positive(a):
    return a @ a.mH


EVERY = {
    "cholesky": (lambda a: linalg.cholesky(positive(a)), SQUARE),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(linalg.cholesky(positive(a))), SQUARE),
    "cholesky_solve": (lambda a: torch.cholesky_solve(a, linalg.cholesky(positive(a))), SQUARE),
    "cond": (linalg.cond, SQUARE),
    "det": (linalg.det, SQUARE),
    "eig": (lambda a: linalg.eig(a)[0], SQUARE),
    "eigh": (lambda a: linalg.eigh(hermitian(a))[0], SQUARE),
    "eigvals": (linalg.eigvals, SQUARE),
    "eigvalsh": (lambda a: linalg.eigvalsh(hermitian(a)), SQUARE),
    "householder_product": (lambda a: linalg.householder_product(a, a[..., 0, :]), SQUARE[::2]),
    "inv": (linalg.inv, SQUARE),
    "ldl_factor": (lambda a: linalg.ldl_factor(hermitian(a.detach()))[0], SQUARE),
    "ldl_solve": (lambda a: linalg.ldl_solve(*linalg.ldl_factor(hermitian(a.detach())), a.detach()), SQUARE),
    "lstsq": (lambda a: linalg.lstsq(a, a)[0], SQUARE + TALL),
    "lu": (lambda a: linalg.lu(a)[1:], SQUARE + TALL),
    "lu_factor": (lambda a: linalg.lu_factor(a)[0], SQUARE),
    "lu_solve": (lambda a: linalg.lu_solve(*linalg.lu_factor(a), a), SQUARE),
    "matrix_exp": (linalg.matrix_exp, SQUARE),
    "matrix_norm": (lambda a: linalg.matrix_norm(a, 2), SQUARE),
    "matrix_power": (lambda a: linalg.matrix_power(a, 3), SQUARE),
    "matrix_rank": (lambda a: linalg.matrix_rank(a.detach()), SQUARE),
    "ormqr": (lambda a: torch.ormqr(a, a[0], a), SQUARE[:1]),
    "pinv": (linalg.pinv, SQUARE + TALL),
    "qr": (linalg.qr, SQUARE + TALL),
    "slogdet": (lambda a: linalg.slogdet(a)[1], SQUARE),
    "solve": (lambda a: linalg.solve(a, a), SQUARE),
    "solve_triangular": (lambda a: linalg.solve_triangular(a, a, upper=True), SQUARE),
    "svd": (lambda a: linalg.svd(a, full_matrices=False)[1], SQUARE + TALL + WIDE),
    "svd by gesvd": (lambda a: linalg.svd(a, full_matrices=False, driver="gesvd")[1], SQUARE + TALL),
    "svd by gesvda": (lambda a: linalg.svd(a, full_matrices=False, driver="gesvda")[1], TALL),
    "svd by gesvdj": (lambda a: linalg.svd(a, full_matrices=False, driver="gesvdj")[1], SQUARE + TALL),
    "svdvals": (linalg.svdvals, SQUARE + TALL),
}

attempt = Attempts()
for name, (function, shapes) in EVERY.items():
    for dtype in TYPES:
        for shape in shapes:
            a = torch.randn(shape, device=CUDA, dtype=dtype, requires_grad=True)
            attempt(f"{name} {shape} {dtype}", lambda: backward(function(a)))
attempt.finish()
