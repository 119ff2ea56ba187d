"""Why rows differ that differ: the names that the published rows give, and what they mean."""

CAUSES = {
    "cudnn": (
        "`cudnn`: the workspaces of convolutions are cuDNN's, and change with its version, which the source "
        "does not state (GPUMemNet, Liger-Kernel) or which cannot be asked without a device (9.1 of PyTorch "
        "2.6, xMem; a rule stands in). The same convolution network took up to 50 % more or less reserved "
        "memory here with PyTorch 2.6 and 2.8"
    ),
    "too-small": (
        "`too-small`: cuDNN again; the run did not fit the virtual 8 GB card, though it fitted the real one, "
        "and was run on one of 16 GB"
    ),
    "transformers": (
        "`transformers`: the source's version of transformers is not stated, and models and losses have "
        "changed since; it is run with the 5.24 of the test environment and PyTorch 2.11, not 2.6. NVML's figure "
        "has the context of the card in it, here the profile's. Not separated further"
    ),
    "segments": (
        "`segments`: one or two segments of the allocator (2 to 28 MiB) more or fewer than the real one took; "
        "the source's PyTorch is not stated"
    ),
    "addresses": (
        "`addresses`: requested bytes are equal, reserved are not: which cached block is taken depends on the "
        "addresses of segments, and on frees whose order is a hash's"
    ),
    "lit-gpt": (
        "`lit-gpt`: up to 0.01 GB in 10. The source used PyTorch 2.1, and samples of other lengths beside the longest "
        "in a batch. Not explained further"
    ),
    "rope": (
        "`rope`: half of one tensor, 4 to 7 % of the peak. When the autograd thread drops the gradients of "
        "the step before is up to the scheduler, and moves this peak by as much on the virtual GPU too; the source's "
        "PyTorch is older than those tried. Not explained further"
    ),
    "jsd": "`jsd`: less than 11 MiB at four shapes, one of which is equal. Not explained",
    "cosine": "`cosine`: 1 MiB at two of four shapes, the others are equal. Not explained",
    "half-workspace": "`half-workspace`: less than 1 MiB at small shapes. Not explained",
    "unexplained": "`unexplained`: not explained",
}
