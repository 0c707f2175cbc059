"""LightGBM with two metrics and a validation set, printed every five rounds."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
from truth import record_truth, write

rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 8))
y = x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=2000)
train = lgb.Dataset(x[:1500], y[:1500])
valid = train.create_valid(x[1500:], y[1500:])
record: dict[str, dict[str, list[float]]] = {}
lgb.train(
    {"objective": "regression", "metric": ["l2", "l1"], "seed": 1, "num_threads": 1},
    train,
    60,
    valid_sets=[train, valid],
    callbacks=[lgb.log_evaluation(5), lgb.record_evaluation(record)],
)
for step in range(5, 61, 5):
    record_truth(step, "training's l2", record["training"]["l2"][step - 1])
    record_truth(step, "valid_1's l2", record["valid_1"]["l2"][step - 1])
write()
