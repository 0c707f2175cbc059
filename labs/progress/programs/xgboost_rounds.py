"""XGBoost with a validation set, printed every round."""

from __future__ import annotations

import numpy as np
import xgboost as xgb
from truth import record_truth, write

rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 8))
y = (x[:, 0] * x[:, 1] > 0).astype(float)
train, valid = xgb.DMatrix(x[:1500], y[:1500]), xgb.DMatrix(x[1500:], y[1500:])
record: dict[str, dict[str, list[float]]] = {}
xgb.train(
    {"objective": "binary:logistic", "eval_metric": ["error", "logloss"], "nthread": 1, "seed": 1, "eta": 0.6},
    train,
    25,
    evals=[(train, "train"), (valid, "eval")],
    evals_result=record,
)
for step in range(25):
    for name in ("train", "eval"):
        record_truth(step, f"{name}-logloss", record[name]["logloss"][step])
write()
