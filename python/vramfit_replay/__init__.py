"""Asks PyTorch's allocator what a script says, and tells what it held.

`vramfit replay` runs it on a virtual GPU: `python path/to/vramfit_replay SCRIPT`. A script is a file
of 64-bit numbers, four an operation; its lanes stand on standard input, as JSON. One JSON object is
the answer, on standard output. The other side is `src/replay/`.
"""
