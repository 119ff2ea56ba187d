"""The child process in which vramfit trains a user's own function.

It speaks the protocol of docs/protocol.md, as the Rust worker does, and needs nothing but PyTorch
and the standard library.

    requests -> serve -> measuring, surveying: memory at the borders of a step, and of blocks
                  |         |-> placing: the model onto the device, and off again
                  |         '-> training: zero_grad, forward, backward, clip, optimizer
                  '-> user_code: the file, the function, what it returns
"""

VERSION = "0.1.0"
PROTOCOL = 3
