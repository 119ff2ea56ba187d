"""Fourier transforms: all of `torch.fft`, short-time transforms, forward and backward."""

import torch
from attempt import Attempts, backward

CUDA = "cuda"


def real(*shape, dtype=torch.float32):
    return torch.randn(shape, device=CUDA, dtype=dtype, requires_grad=True)


attempt = Attempts()
for dtype in torch.float32, torch.float64:
    wide = torch.complex64 if dtype is torch.float32 else torch.complex128
    for length in 64, 60, 1009, 4096:
        for name in "fft", "ifft", "hfft", "irfft":
            function = getattr(torch.fft, name)
            attempt(f"{name} {length} {wide}", lambda: backward(function(real(4, length, dtype=wide))))
        for name in "rfft", "ihfft", "fft":
            function = getattr(torch.fft, name)
            attempt(f"{name} {length} {dtype}", lambda: backward(function(real(4, length, dtype=dtype))))
    for name in "fft2", "ifft2", "irfft2", "hfft2", "fftn", "ifftn", "irfftn":
        function = getattr(torch.fft, name)
        attempt(f"{name} {wide}", lambda: backward(function(real(3, 16, 24, 20, dtype=wide))))
    for name in "rfft2", "rfftn", "ihfft2", "ihfftn":
        function = getattr(torch.fft, name)
        attempt(f"{name} {dtype}", lambda: backward(function(real(3, 16, 24, 20, dtype=dtype))))
    x = real(2, 16_000, dtype=dtype)
    window = torch.hann_window(400, device=CUDA, dtype=dtype)
    attempt("stft", lambda: backward(torch.stft(x, 400, 160, window=window, return_complex=True)))
    spectrum = torch.stft(x.detach(), 400, 160, window=window, return_complex=True).requires_grad_()
    attempt("istft", lambda: backward(torch.istft(spectrum, 400, 160, window=window)))
half = torch.randn(4, 64, device=CUDA, dtype=torch.float16)
attempt("rfft in half precision", lambda: torch.fft.rfft(half))
attempt.finish()
