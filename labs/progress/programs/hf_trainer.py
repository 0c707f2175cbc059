"""Hugging Face's Trainer on a small network of our own; losses every 8 steps, an evaluation an epoch."""

from __future__ import annotations

import os

os.environ.update(WANDB_DISABLED="true", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from truth import record_truth, write

torch.manual_seed(1)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, x, labels=None):  # noqa: ANN001, ANN201
        out = self.net(x)[:, 0]
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class Told(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):  # noqa: ANN001, ANN003, ANN201
        if "train_runtime" not in logs:
            for key in ("loss", "eval_loss"):
                if key in logs:
                    record_truth(logs.get("epoch", state.epoch), key, logs[key])


x = torch.randn(512, 16)
data = [{"x": a, "labels": a[0] * a[1]} for a in x]
trainer = Trainer(
    Net(),
    TrainingArguments(
        "/tmp/gpuctl-progress-hf", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=0.01,
        logging_steps=8,
        evaluation_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True,
    ),
    train_dataset=data,
    eval_dataset=data[:128],
    callbacks=[Told()],
)  # fmt: skip
trainer.train()
write()
