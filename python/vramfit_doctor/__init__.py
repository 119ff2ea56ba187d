"""What `vramfit doctor` asks a Python: which PyTorch it has, and whether that opens CUDA.

One JSON object is printed, in the last line of standard output. With the argument `open` CUDA is
opened, which wakes a GPU that sleeps; no context is made, so that no memory is taken.
"""
