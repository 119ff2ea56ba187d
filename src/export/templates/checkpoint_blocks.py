
def checkpoint_blocks(blocks: Iterable[torch.nn.Module]) -> None:
    """Lets blocks drop their activations in the forward pass and compute them again in the backward pass.

    Give it @blocks@, the repeated layers that were checkpointed when the plan was measured.  #? !every
    Give it @blocks@; of each @every@ in a row the first is checkpointed, as planned.  #? every
    """
    for block in blocks:  #? !every
    for block in list(blocks)[::@every@]:  #? every
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

