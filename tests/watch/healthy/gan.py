"""Two networks with an optimizer each, which learn by turns; samples are drawn now and then."""

import torch
from torch import nn


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, outputs))


generator, critic = network(64, 784).cuda(), network(784, 1).cuda()
by_generator = torch.optim.Adam(generator.parameters(), lr=2e-4)
by_critic = torch.optim.Adam(critic.parameters(), lr=2e-4)
score = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(128, 1, device="cuda"), torch.zeros(128, 1, device="cuda")
for step in range(60):
    real = torch.randn(128, 784, device="cuda")
    fake = generator(torch.randn(128, 64, device="cuda"))
    by_critic.zero_grad()
    score(critic(real), ones).backward()
    score(critic(fake.detach()), zeros).backward()
    by_critic.step()
    by_generator.zero_grad()
    score(critic(fake), ones).backward()
    by_generator.step()
    if step % 20 == 0:
        generator.eval()
        with torch.no_grad():
            generator(torch.randn(16, 64, device="cuda"))
        generator.train()
