"""Keras 3 on JAX; the default bars, with validation data."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras
import numpy as np
from truth import record_truth, write

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
x = rng.normal(size=(1024, 16)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("float32")
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, epochs=6, validation_split=0.25, batch_size=32)
model.evaluate(x[:128], y[:128])
model.fit(x, y, epochs=1, verbose=2)
for epoch, (loss, val_loss) in enumerate(zip(history.history["loss"], history.history["val_loss"], strict=True), 1):
    record_truth(epoch, "loss", loss)
    record_truth(epoch, "val_loss", val_loss)
write()
