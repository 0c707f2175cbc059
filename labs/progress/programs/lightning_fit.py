"""PyTorch Lightning, the bar that it shows by default, training and validation loss on it."""

from __future__ import annotations

import logging

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset
from truth import record_truth, write

logging.getLogger("pytorch_lightning").setLevel(logging.INFO)
pl.seed_everything(1)


class Model(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def loss(self, batch):  # noqa: ANN001, ANN201
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x)[:, 0], y)

    def training_step(self, batch, _):  # noqa: ANN001, ANN201
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        self.last = float(loss)
        return loss

    def validation_step(self, batch, _):  # noqa: ANN001, ANN201
        self.log("val_loss", self.loss(batch), prog_bar=True)

    def on_train_epoch_end(self) -> None:
        record_truth(self.current_epoch, "train_loss", self.last)
        record_truth(self.current_epoch, "val_loss", float(self.trainer.callback_metrics["val_loss"]))

    def configure_optimizers(self):  # noqa: ANN201
        return torch.optim.Adam(self.parameters(), 0.01)


x = torch.randn(1024, 16)
data = TensorDataset(x, x[:, 0] * x[:, 1])
trainer = pl.Trainer(
    max_epochs=5, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_model_summary=False
)
trainer.fit(Model(), DataLoader(data, 32, shuffle=True), DataLoader(data, 128))
write()
