"""Names in the list of computed operators that PyTorch does not have, one a line. There should be none."""

import torch
import vramfit_shadow  # It is here by `import torch`.
from vramfit_shadow import operators, overriding

torch.zeros(1, device="cuda")
assert vramfit_shadow.notes.absent is None, vramfit_shadow.notes.absent
for base in operators.ALL:
    if not list(overriding._overloads(base)):
        print(base)
