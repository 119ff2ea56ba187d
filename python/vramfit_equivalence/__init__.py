"""Trains small things, to show what accumulating gradients and computing in fewer bits change.

`vramfit equivalence` runs it: `python path/to/vramfit_equivalence`, with a request as JSON on standard
input. It answers in lines of JSON: how far it is, and at the end what was measured. It draws no
conclusions; these are drawn by the other side, `src/equivalence/`.
"""
