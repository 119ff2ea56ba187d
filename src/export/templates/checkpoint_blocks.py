
def checkpoint_blocks(blocks: Iterable[torch.nn.Module]) -> None:
    """Lets blocks drop their activations and compute them again in the backward pass.

    As planned, of each @every@ in a row the first is checkpointed.  #? every
    As planned, these are checkpointed, counted from 0 in the order of the forward pass.  #? some
    Give it @blocks@.
    """
    for block in blocks:  #? full
    for block in list(blocks)[::@every@]:  #? every
    all_blocks = list(blocks)  #? some
    for block in [all_blocks[index] for index in @chosen@]:  #? some
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

