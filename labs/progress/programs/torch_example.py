"""A loop of one's own with Python's logging: stamps, a line every ten batches, a validation loss an epoch."""

from __future__ import annotations

import logging
import time

import torch
from truth import record_truth, write

logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(name)s - %(message)s")
log = logging.getLogger("train")
torch.manual_seed(1)
x = torch.randn(1024, 16)
y = x[:, 0] * x[:, 1]
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(1, 6):
    for batch in range(24):
        rows = slice(32 * batch, 32 * batch + 32)
        loss = torch.nn.functional.mse_loss(net(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 10 == 0:
            log.info("Epoch [%d/5], Step [%d/24], Loss: %.4f, lr: %.1e", epoch, batch, loss.item(), 0.01)
    with torch.no_grad():
        value = torch.nn.functional.mse_loss(net(x[768:])[:, 0], y[768:]).item()
    log.info("epoch %d: val_loss %.5f", epoch, value)
    record_truth(epoch, "val_loss", value)
    time.sleep(0.3)
write()
