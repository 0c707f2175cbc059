"""MMEngine's runner with its own log format."""

from __future__ import annotations

import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import TensorDataset
from truth import record_truth, write

torch.manual_seed(1)


class Model(BaseModel):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.steps = 0

    def forward(self, x, y, mode="loss"):  # noqa: ANN001, ANN201
        loss = torch.nn.functional.mse_loss(self.net(x)[:, 0], y)
        self.steps += 1
        if self.steps % 32 == 0:
            record_truth(self.steps // 32, "loss", float(loss))
        return {"loss": loss}


x = torch.randn(1024, 16)
Runner(
    Model(),
    work_dir="/tmp/gpuctl-progress-mmengine",
    train_dataloader={
        "dataset": TensorDataset(x, x[:, 0] * x[:, 1]),
        "batch_size": 32,
        "collate_fn": {"type": "default_collate"},
        "sampler": {"type": "DefaultSampler", "shuffle": True},
    },
    train_cfg={"by_epoch": True, "max_epochs": 4},
    optim_wrapper={"optimizer": {"type": "Adam", "lr": 0.01}},
    default_hooks={"logger": {"type": "LoggerHook", "interval": 32}, "checkpoint": None},
    log_processor={"window_size": 1},
).train()  # fmt: skip
write()
