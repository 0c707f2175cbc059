"""The models that the lab trains with JAX: a loss, and its gradient, on one flat vector of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = Any  # of NumPy and of JAX alike; JAX is no dependency of the project
    Params = dict[str, Any]

CLASSES = 10
VOCABULARY = 256
HEADS = 4
LAYERS = 2


class Data(NamedTuple):
    """What one sample of a family's data is."""

    x_shape: tuple[int, ...]
    x_type: str
    y_shape: tuple[int, ...]
    y_type: str

    @property
    def row(self) -> tuple[int, int]:
        """Bytes of a sample's input and of its label."""
        x, y = np.prod(self.x_shape, dtype=int), np.prod(self.y_shape, dtype=int)
        return int(x) * np.dtype(self.x_type).itemsize, int(y) * np.dtype(self.y_type).itemsize


DATA = {
    "cnn": Data((32, 32, 3), "uint8", (1,), "uint8"),
    "mlp": Data((784,), "uint8", (1,), "uint8"),
    "recurrent": Data((50, 32), "float16", (1,), "uint8"),
    "transformer": Data((128,), "uint16", (128,), "uint16"),
    "boosting": Data((28,), "float32", (1,), "float32"),
}


def initial(family: str, width: int) -> Params:
    """Random parameters of a model; ``width`` is that of its widest layer."""
    rng = np.random.default_rng(1)

    def matrix(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(np.prod(shape[:-1]) ** -0.5)

    def zeros(size: int) -> Array:
        return np.zeros(size, np.float32)

    if family == "cnn":
        kernels = {"c1": matrix(3, 3, 3, 32), "c2": matrix(3, 3, 32, 64), "c3": matrix(3, 3, 64, 128)}
        return {**kernels, "d1": matrix(2048, width), "b1": zeros(width), "d2": matrix(width, CLASSES)}
    if family == "mlp":
        hidden = {"d1": matrix(784, width), "b1": zeros(width), "d2": matrix(width, width), "b2": zeros(width)}
        return {**hidden, "d3": matrix(width, CLASSES)}
    if family == "recurrent":
        gates = {"wx": matrix(32, 3 * width), "wh": matrix(width, 3 * width), "b": zeros(3 * width)}
        return {**gates, "d": matrix(width, CLASSES)}
    params = {"embed": matrix(VOCABULARY, width), "place": matrix(128, width), "out": matrix(width, VOCABULARY)}
    for layer in range(LAYERS):
        params |= {f"qkv{layer}": matrix(width, 3 * width), f"proj{layer}": matrix(width, width)}
        params |= {f"up{layer}": matrix(width, 4 * width), f"down{layer}": matrix(4 * width, width)}
    return params


def functions(family: str, width: int) -> tuple[Array, Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the first parameters as one vector, and three compiled functions.

    ``gradient(vector, x, y)`` -> (loss, vector); ``update(vector, m, v, gradient, step)`` is one step of Adam ->
    (vector, m, v); ``loss(vector, x, y)`` -> loss.
    """
    import jax  # type: ignore[import-not-found]  # in the lab's own environment
    import jax.numpy as jnp  # type: ignore[import-not-found]
    from jax.flatten_util import ravel_pytree  # type: ignore[import-not-found]

    vector, unravel = ravel_pytree({name: jnp.asarray(value) for name, value in initial(family, width).items()})
    forward = {"cnn": _cnn, "mlp": _mlp, "recurrent": _recurrent, "transformer": _transformer}[family]

    def loss(flat: Array, x: Array, y: Array) -> Array:
        scores = jax.nn.log_softmax(forward(unravel(flat), x))
        # one-hot products instead of look-ups: XLA's scatter, their gradient, takes most of a step on a CPU
        return -(scores * jax.nn.one_hot(y.astype(jnp.int32), scores.shape[-1])).sum(-1).mean()

    def update(flat: Array, m: Array, v: Array, gradient: Array, step: Array) -> tuple[Array, Array, Array]:
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = 1e-3 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        return flat - rate * m / (jnp.sqrt(v) + 1e-8), m, v

    return vector, jax.jit(jax.value_and_grad(loss)), jax.jit(update, donate_argnums=(0, 1, 2)), jax.jit(loss)


def _cnn(p: Params, x: Array) -> Array:
    import jax
    import jax.numpy as jnp

    x = x.astype(jnp.float32) / 255 - 0.5
    for name in ("c1", "c2", "c3"):
        x = jax.lax.conv_general_dilated(x, p[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        n, h, w, c = x.shape
        x = jax.nn.relu(x).reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))
    return (jax.nn.relu(x.reshape(len(x), -1) @ p["d1"] + p["b1"]) @ p["d2"])[:, None]


def _mlp(p: Params, x: Array) -> Array:
    import jax
    import jax.numpy as jnp

    x = x.astype(jnp.float32) / 255 - 0.5
    x = jax.nn.relu(x @ p["d1"] + p["b1"])
    return (jax.nn.relu(x @ p["d2"] + p["b2"]) @ p["d3"])[:, None]


def _recurrent(p: Params, x: Array) -> Array:
    import jax
    import jax.numpy as jnp

    def cell(state: Array, at: Array) -> tuple[Array, None]:
        zi, ri, ni = jnp.split(at, 3, axis=-1)
        zh, rh, nh = jnp.split(state @ p["wh"], 3, axis=-1)
        z, r = jax.nn.sigmoid(zi + zh), jax.nn.sigmoid(ri + rh)
        return (1 - z) * jnp.tanh(ni + r * nh) + z * state, None

    start = jnp.zeros((x.shape[0], p["wh"].shape[0]), jnp.float32)
    state, _ = jax.lax.scan(cell, start, jnp.swapaxes(x.astype(jnp.float32) @ p["wx"] + p["b"], 0, 1))
    return (state @ p["d"])[:, None]


def _transformer(p: Params, tokens: Array) -> Array:
    import jax
    import jax.numpy as jnp

    x = jax.nn.one_hot(tokens.astype(jnp.int32), VOCABULARY) @ p["embed"] + p["place"]
    n, length, width = x.shape
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(LAYERS):
        qkv = (_normed(x) @ p[f"qkv{layer}"]).reshape(n, length, 3, HEADS, width // HEADS)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        weights = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (width // HEADS) ** -0.5
        weights = jax.nn.softmax(jnp.where(mask, weights, -1e9))
        x = x + jnp.einsum("nhqk,nkhd->nqhd", weights, v).reshape(n, length, width) @ p[f"proj{layer}"]
        x = x + jax.nn.gelu(_normed(x) @ p[f"up{layer}"]) @ p[f"down{layer}"]
    return _normed(x) @ p["out"]


def _normed(x: Array) -> Array:
    import jax.numpy as jnp

    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
