
def checkpoint_blocks(blocks: Iterable[torch.nn.Module]) -> None:
    """Lets blocks drop their activations and compute them again in the backward pass.

    As planned, of each @every@ in a row the first is checkpointed.  #? every
    Give it @blocks@.
    """
    for block in blocks:  #? !every
    for block in list(blocks)[::@every@]:  #? every
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

