"""Which jobs the lab runs: flat lists, nothing is computed here but names."""

from __future__ import annotations

from typing import NamedTuple

SHARD_SAMPLES = {"cnn": 160, "mlp": 1600, "recurrent": 160, "transformer": 64, "boosting": 16384}
"""Samples in a shard: a fraction of a second's work, so that a second of traffic tells of a second of computing."""
VALID_SHARDS = {"cnn": 20, "mlp": 14, "recurrent": 16, "transformer": 16, "boosting": 10}
"""Of a recorded job's validation: a bit less than a second's work."""
VALID_BATCH = {"cnn": 32, "mlp": 160, "recurrent": 32, "transformer": 16, "boosting": 16384}
WIDTH = {"cnn": 128, "mlp": 1024, "recurrent": 256, "transformer": 64, "boosting": 63}
"""Of the models that are recorded; what it is the width of, :mod:`models` and :mod:`trees` say."""
FAMILIES = tuple(WIDTH)


class Job(NamedTuple):
    """A job that is recorded from start to end.

    Attributes:
        batch: samples of a step and worker.
        shards: that an epoch reads; with :data:`SHARD_SAMPLES` its samples.
        gpus: workers, 1 or 2.
        valid: shards of a validation.
        every: epochs from one checkpoint to the next; the last epoch always writes one.
    """

    name: str
    family: str
    width: int
    batch: int
    shards: int
    gpus: int
    epochs: int
    valid: int
    cached: bool = False
    every: int = 2
    quick: bool = False

    @property
    def model(self) -> str:
        """What shares a row of the profile database: the family and its width."""
        return f"{self.family}-{self.width}"

    @property
    def samples(self) -> int:
        """Samples of an epoch."""
        return self.shards * SHARD_SAMPLES[self.family]


class Chain(NamedTuple):
    """A job that is suspended and resumed again and again.

    Attributes:
        stops: how, and at which part of an epoch: ("epoch", 0.3) lets it finish the epoch, ("abort", 0.3) kills it.
    """

    name: str
    family: str
    width: int
    batch: int
    shards: int
    gpus: int
    stops: tuple[tuple[str, float], ...]
    valid: int = 2
    quick: bool = False


# batch, shards, workers, epochs: for each family several fours of them tell the four unknowns of the epoch formula
SHAPES = {
    "cnn": (
        (8, 80, 1, 5), (16, 112, 1, 4), (32, 80, 1, 5), (32, 128, 1, 4),
        (8, 96, 2, 4), (32, 160, 2, 4), (16, 128, 2, 4),
    ),
    "mlp": (
        (40, 22, 1, 5), (80, 44, 1, 4), (160, 48, 1, 5), (160, 72, 1, 4),
        (40, 36, 2, 4), (160, 88, 2, 4), (80, 64, 2, 4),
    ),
    "recurrent": (
        (8, 40, 1, 5), (16, 72, 1, 4), (32, 80, 1, 5), (32, 112, 1, 4),
        (8, 80, 2, 4), (32, 144, 2, 4), (16, 112, 2, 4),
    ),
    "transformer": (
        (4, 48, 1, 5), (8, 64, 1, 4), (16, 48, 1, 5), (16, 72, 1, 4),
        (4, 96, 2, 4), (16, 112, 2, 4), (8, 96, 2, 4),
    ),
    "boosting": (
        (4096, 32, 1, 5), (8192, 56, 1, 4), (16384, 60, 1, 5), (16384, 84, 1, 4),
        (4096, 60, 2, 4), (16384, 112, 2, 4), (8192, 84, 2, 4),
    ),
}  # fmt: skip
CACHED = {"cnn": ((16, 80, 1, 4), (32, 112, 1, 4)), "mlp": ((80, 44, 1, 4), (160, 72, 1, 4))}
QUICK = {"mlp": ((160, 12, 1, 3),), "boosting": ((16384, 12, 2, 3),)}

EARLY_LATE = (("epoch", 0.3), ("abort", 0.6), ("epoch", 0.7))
LATE_EARLY = (("abort", 0.3), ("epoch", 0.5), ("abort", 0.8))
# family, width, batch, shards, workers: checkpoints of 1 MB to 190 MB
SUSPENDED = (
    ("cnn", 128, 16, 24, 1, EARLY_LATE),
    ("cnn", 4096, 32, 8, 1, LATE_EARLY),
    ("cnn", 128, 16, 32, 2, EARLY_LATE),
    ("mlp", 256, 160, 14, 1, LATE_EARLY),
    ("mlp", 2048, 160, 5, 1, EARLY_LATE),
    ("mlp", 3600, 160, 2, 1, EARLY_LATE),
    ("mlp", 1024, 160, 16, 2, LATE_EARLY),
    ("recurrent", 128, 32, 40, 1, LATE_EARLY),
    ("recurrent", 1024, 32, 4, 1, EARLY_LATE),
    ("recurrent", 256, 32, 28, 2, EARLY_LATE),
    ("transformer", 64, 16, 14, 1, EARLY_LATE),
    ("transformer", 512, 16, 1, 1, LATE_EARLY),
    ("transformer", 64, 16, 24, 2, LATE_EARLY),
    ("boosting", 31, 8192, 16, 1, LATE_EARLY),
    ("boosting", 255, 8192, 14, 1, EARLY_LATE),
    ("boosting", 63, 8192, 24, 2, EARLY_LATE),
)


def jobs() -> list[Job]:
    """All jobs that are recorded, family by family."""
    return [
        _job(family, shape, cached=cached, quick=quick)
        for table, cached, quick in ((SHAPES, False, False), (CACHED, True, False), (QUICK, False, True))
        for family, shapes in table.items()
        for shape in shapes
    ]


def chains() -> list[Chain]:
    """All jobs that are suspended."""
    whole = [
        Chain(f"suspend-{family}-{width}-g{gpus}", family, width, batch, shards, gpus, stops)
        for family, width, batch, shards, gpus, stops in SUSPENDED
    ]
    stops = (("epoch", 0.4), ("abort", 0.4))
    return [*whole, Chain("quick-suspend-mlp-512", "mlp", 512, 160, 12, 1, stops, quick=True)]


def everything() -> list[Job | Chain]:
    """Jobs, then chains."""
    return [*jobs(), *chains()]


def _job(family: str, shape: tuple[int, int, int, int], *, cached: bool, quick: bool) -> Job:
    batch, shards, gpus, epochs = shape
    samples = shards * SHARD_SAMPLES[family]
    name = f"{'quick-' * quick}{family}-b{batch}-n{samples}-g{gpus}{'-cached' * cached}"
    valid = 2 if quick else VALID_SHARDS[family]
    return Job(name, family, WIDTH[family], batch, shards, gpus, epochs, valid, cached, quick=quick)
