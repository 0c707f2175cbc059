"""Linear regression with NumPy; a bar of tqdm an epoch, as many training loops have it."""

from __future__ import annotations

import time

import numpy as np
from tqdm import tqdm
from truth import record_truth, write

rng = np.random.default_rng(0)
x = rng.normal(size=(640, 8))
y = x @ rng.normal(size=8) + 0.1 * rng.normal(size=640)
w = np.zeros(8)
for epoch in range(1, 7):
    bar = tqdm(range(20), desc=f"Epoch {epoch}/6", mininterval=0.05)
    for batch in bar:
        rows = slice(32 * batch, 32 * batch + 32)
        error = x[rows] @ w - y[rows]
        w -= 0.02 * 2 * x[rows].T @ error / 32
        loss = float(np.mean(error**2))
        bar.set_postfix(loss=loss, lr=0.02)
        time.sleep(0.02)
    record_truth(epoch, "loss", loss)
write()
