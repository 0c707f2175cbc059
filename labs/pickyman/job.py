"""A training job: one or two of these processes, one compute thread each, on a processor of its own.

``python job.py FILE RANK``: FILE is JSON with what ``Bench.start`` puts there. Runs in the lab's own environment, with
JAX or LightGBM. Prints one line of JSON for every event, with the time on the monotonic clock. SIGTERM to the first
worker: finish the epoch, write a checkpoint to the file server, end. RANK -1: no job but a neighbour of one, that
computes the same model on numbers of its own until it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from labs.pickyman.loader import Loader, Peer, Storage, pack, shard_names, unpack
from labs.pickyman.models import DATA, functions

Array = np.ndarray[Any, np.dtype[Any]]


def say(event: str, **values: float) -> None:
    """Print an event with its time."""
    sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


class Net:
    """A neural network with Adam: parameters and two moments as flat vectors.

    Gradients are averaged over the workers, as data-parallel training does.
    """

    def __init__(self, family: str, width: int, peer: Peer | None) -> None:
        vector, self._gradient, self._update, self._loss = functions(family, width)
        self._peer, self._steps = peer, 0
        self._state = (vector, np.zeros_like(vector), np.zeros_like(vector))

    def step(self, x: Array, y: Array) -> None:
        """Train on one batch."""
        _, gradient = self._gradient(self._state[0], x, y)
        mean = np.asarray(gradient)
        if self._peer is not None:
            mean = self._peer.mean(mean)
        self._steps += 1
        self._state = self._update(*self._state, mean, float(self._steps))
        self._state[0].block_until_ready()

    def loss(self, x: Array, y: Array) -> float:
        """Mean loss of a batch."""
        return float(self._loss(self._state[0], x, y))

    def state(self, meta: dict[str, Any]) -> bytes:
        """Parameters and moments as a checkpoint."""
        return pack({**meta, "steps": self._steps}, [np.asarray(part) for part in self._state])

    def load(self, data: bytearray) -> dict[str, Any]:
        """Take the state of a checkpoint; returns what else is in it."""
        import jax.numpy as jnp  # type: ignore[import-not-found]  # in the lab's own environment

        meta, parts, _ = unpack(data)
        self._steps = meta.pop("steps")
        vector, m, v = (jnp.array(part) for part in parts)
        self._state = (vector, m, v)
        return meta


def trainer(job: dict[str, Any], peer: Peer | None) -> Any:
    """What trains the job's model; brings in the framework."""
    if job["family"] == "boosting":
        from labs.pickyman.trees import Trees

        return Trees(job["width"], peer)
    return Net(job["family"], job["width"], peer)


def arrays(job: dict[str, Any], x: memoryview, y: memoryview) -> tuple[Array, Array]:
    """Bytes of a batch as arrays."""
    data = DATA[job["family"]]
    inputs = np.frombuffer(x, data.x_type).reshape(-1, *data.x_shape)
    labels = np.frombuffer(y, data.y_type).reshape(-1, *data.y_shape)
    return inputs, labels[:, 0] if job["family"] == "boosting" else labels


def train(job: dict[str, Any], rank: int) -> None:
    """Run the job to its end, or to the end of the epoch in which it is asked to stop."""
    stop_signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop_signals.append(number))
    say("started")
    peer = Peer(rank, job["peer_port"]) if job["gpus"] == 2 else None
    model = trainer(job, peer)
    say("framework")
    control, epoch = Storage(*job["server"]), 0
    if job["resume"]:
        checkpoint = control.get(job["checkpoint"])
        epoch = model.load(checkpoint)["epoch"] + 1
        say("loaded", bytes=len(checkpoint))
    loader = Loader(Storage(*job["server"]), job["data"], DATA[job["family"]].row, cached=job["cached"])
    first = True
    while epoch < job["epochs"]:
        begun = time.monotonic()
        for x, y in loader.batches(shard_names(job["shards"], epoch, rank, job["gpus"]), job["batch"]):
            model.step(*arrays(job, x, y))
            if first:
                say("step")
                first = False
        trained = time.monotonic()
        loss = validate(job, model, loader) if rank == 0 else 0.0
        validated = time.monotonic()
        mine = b"stop" if stop_signals else b"go on"
        stop = b"stop" in {mine, bytes(peer.swap(mine)) if peer else mine}
        if rank == 0 and (stop or (epoch + 1) % job["every"] == 0 or epoch + 1 == job["epochs"]):
            body = model.state({"epoch": epoch})
            control.put(job["checkpoint"], body)
            say("saved", bytes=len(body), began=validated)
        say("epoch", epoch=epoch, start=begun, trained=trained, validated=validated, end=time.monotonic(), loss=loss)
        if stop:
            break
        epoch += 1
    say("over")


def validate(job: dict[str, Any], model: Any, loader: Loader) -> float:
    """Mean loss on the validation file, read anew over the network; the first worker does it, the other waits."""
    names = [f"valid-{number:04d}.bin" for number in range(job["valid"])]
    losses = [model.loss(*arrays(job, x, y)) for x, y in loader.batches(names, job["valid_batch"])]
    return float(np.mean(losses))


def neighbour(job: dict[str, Any]) -> None:
    """Keep a processor busy with the job's own kind of work."""
    model, data = trainer(job, None), DATA[job["family"]]
    rng = np.random.default_rng(2)
    x = rng.integers(0, 200, (job["batch"], *data.x_shape)).astype(data.x_type)
    y = rng.integers(0, 2, (job["batch"], *data.y_shape)).astype(data.y_type)
    labels = y[:, 0] if job["family"] == "boosting" else y
    model.step(x, labels)
    say("busy")
    while True:
        model.step(x, labels)


def main() -> None:
    """Take one processor, then train."""
    job, rank = json.loads(Path(sys.argv[1]).read_text("utf-8")), int(sys.argv[2])
    os.sched_setaffinity(0, {1 if rank < 0 else rank})
    if rank < 0:
        neighbour(job)
    train(job, rank)


if __name__ == "__main__":
    main()
