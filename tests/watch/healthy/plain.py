"""A language model, trained as in a tutorial."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 512)
        layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(512, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embedding(tokens)))


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randint(0, 1000, (320, 256)))
for epoch in range(2):
    running = 0.0
    for (tokens,) in DataLoader(data, batch_size=8, shuffle=True, pin_memory=True):
        tokens = tokens.cuda(non_blocking=True)
        out = model(tokens)
        loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(epoch, running / 40)
