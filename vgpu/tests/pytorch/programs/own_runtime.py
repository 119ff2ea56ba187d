"""A library with NVIDIA's CUDA runtime linked into it."""

from cuda.bindings import runtime

print(int(runtime.cudaGetDeviceCount()[0]), int(runtime.cudaMalloc(1 << 20)[0]))
