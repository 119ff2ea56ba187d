"""What vramfit's packages in Python have in common. Its modules import PyTorch, it does not."""
