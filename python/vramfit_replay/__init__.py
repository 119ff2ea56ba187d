"""Asks PyTorch's allocator what a script says, and tells what it held.

`vramfit replay` runs it on a virtual GPU: `python path/to/vramfit_replay`, with jobs as JSON on
standard input. Each job is a script, a file of 64-bit numbers, and a setting of the allocator. It is
done by a fork of this process, since a process has its setting for life, and PyTorch takes long to
import. The other side is `src/replay/`.
"""
