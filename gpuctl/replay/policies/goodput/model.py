"""Goodput: examples a second worth as much as those of the initial batch, of an application on GPUs of some type.

Step time and statistical efficiency are Pollux' (OSDI 2021, sections 3.1 and 3.2); the grid of batches is ours.
"""

from __future__ import annotations

import csv
import io
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Floats, Workload

TENTHS = 10
APP_COLUMNS = (
    "alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma", "init_batch", "max_batch", "min_local",
    "max_local",
)  # fmt: skip
NOISE_COLUMNS = ("restart_s", "penalty_s", *(f"n{tenth}" for tenth in range(TENTHS)))
MOST_NODES = 16
"""Of one job."""

_GRID = np.arange(16)[:, None] / 15
_STEPS = np.array([[0.0, 1.0, 3.0, 7.0, 15.0]])
"""Steps of accumulation before each step that communicates."""


@dataclass(frozen=True)
class Speeds:
    """An application on one type of GPU: seconds of computing and communicating, and batches that it allows."""

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float
    init_batch: float
    max_batch: float
    min_local: float
    max_local: float

    def goodput(self, gpus: int, nodes: int, noise: Floats) -> Floats:
        """Goodput on so many GPUs of so many nodes, examples a second, for each noise scale; 0: not on so many."""
        local = np.floor(self.min_local * (self.max_local / self.min_local) ** _GRID + 0.5)
        compute = self.alpha_c + self.beta_c * local
        more = max(gpus - 2, 0)
        if nodes > 1:
            network = self.alpha_n + self.beta_n * more
        else:
            network = self.alpha_r + self.beta_r * more if gpus > 1 else 0.0
        step = (compute**self.gamma + network**self.gamma) ** (1 / self.gamma)
        batch = gpus * local * (_STEPS + 1)
        allowed = (batch >= self.init_batch) & (batch <= self.max_batch)
        if gpus == 1:
            allowed &= (batch <= self.init_batch) | (_STEPS >= 1)
        if not allowed.any():
            return np.zeros(noise.size)
        rate, some = (batch / (_STEPS * compute + step))[allowed], batch[allowed]
        return np.array([(rate * ((phi + self.init_batch) / (phi + some))).max() for phi in noise.tolist()])


@dataclass(frozen=True)
class App:
    """An application.

    Attributes:
        restart_s: seconds that a start or change holds GPUs without progress, under sia.
        penalty_s: the same as Sia's factor of a change counts them.
        noise: noise scale of its gradients in each tenth of its work.
        on: how fast it is on each GPU type, by name.
    """

    restart_s: float
    penalty_s: float
    noise: Floats
    on: dict[str, Speeds]


def read_apps(apps: str = "", noise: str = "") -> dict[str, App]:
    """Read the applications from two CSVs; "": those that gpuctl brings.

    Args:
        apps: columns ``app``, ``gpu_type`` and `APP_COLUMNS`, one row for each application and GPU type.
        noise: columns ``app`` and `NOISE_COLUMNS`, one row an application.

    Raises:
        InputError: one of them cannot be read, or the two do not have the same applications.
    """
    here = Path(__file__).parent
    apps_path, noise_path = Path(apps or here / "apps.csv"), Path(noise or here / "noise.csv")
    on: dict[str, dict[str, Speeds]] = {}
    for (name, gpu_type), numbers in _table(apps_path, ("app", "gpu_type"), APP_COLUMNS).items():
        on.setdefault(name, {})[gpu_type] = Speeds(*numbers)
    rows = {name: numbers for (name,), numbers in _table(noise_path, ("app",), NOISE_COLUMNS).items()}
    if odd := sorted(on.keys() ^ rows.keys()):
        raise InputError(f"app {odd[0]!r} is in one table only", path=str(noise_path), hint=f"the other: {apps_path}")
    types = next(iter(on.values())).keys()
    for name, speeds in on.items():
        if missing := sorted(types - speeds.keys()):
            raise InputError(f"app {name!r} has no row for GPU type {missing[0]!r}", path=str(apps_path))
    return {
        name: App(row[0], row[1], np.array(row[2:], np.float64), {kind: on[name][kind] for kind in types})
        for name, row in rows.items()
    }


def _table(path: Path, keys: tuple[str, ...], columns: tuple[str, ...]) -> dict[tuple[str, ...], list[float]]:
    """Rows of numbers by their names, in the order of the file."""
    hint = f"expected a header line {','.join((*keys, *columns))} and finite numbers from 0 on"
    try:
        rows = csv.DictReader(io.StringIO(read_whole(path, hint=hint).decode("utf-8-sig")))
        if missing := [name for name in (*keys, *columns) if name not in (rows.fieldnames or ())]:
            raise InputError(f"lacks the columns {', '.join(missing)}", path=str(path), line=1, hint=hint)
        found: dict[tuple[str, ...], list[float]] = {}
        for row in rows:
            name = tuple((row[key] or "").strip() for key in keys)
            numbers = [_number(row[column], column, path, rows.line_num, hint) for column in columns]
            if name in found:
                raise InputError(f"has {', '.join(name)} twice", path=str(path), line=rows.line_num, hint=hint)
            found[name] = numbers
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a valid CSV: {error}", path=str(path), hint=hint) from error
    if not found:
        raise InputError("has no rows", path=str(path), hint=hint)
    return found


def _number(text: str | None, column: str, path: Path, line: int, hint: str) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    least = 1.0 if column in {"gamma", "init_batch", "max_batch", "min_local", "max_local"} else 0.0
    if not least <= number < math.inf:
        raise InputError(f"{column} is {(text or '')[:60]!r}", path=str(path), line=line, hint=hint)
    return number


def counts(size: int, nodes: int) -> list[int]:
    """Numbers of GPUs that a job may have on so many nodes of one size: each divides the next up to a whole node."""
    powers = [2**k for k in range(size.bit_length()) if size % 2**k == 0 and 2**k < size]
    return [*powers, *(size * k for k in range(1, min(nodes, MOST_NODES) + 1))]


def nodes_of(gpus: int, size: int) -> int:
    """The fewest nodes of a size that can hold so many GPUs."""
    return -(-gpus // size)


def reference(app: App, kind: str, gang: int, size: int, total: int) -> Floats:
    """Goodput at each tenth on the gang, or the most GPUs below it on which there is some; shape (10,).

    Args:
        app: the application.
        kind: GPU type.
        gang: GPUs that the job asks for.
        size: GPUs of a node.
        total: GPUs of the type.
    """
    for gpus in range(min(gang, total), 0, -1):
        found = app.on[kind].goodput(gpus, nodes_of(gpus, size), app.noise)
        if found[0] > 0:
            return found
    return np.zeros(TENTHS)


def apps_of(workload: Workload, known: dict[str, App]) -> tuple[list[str], int]:
    """The application of each job, and for how many it is derived from GPU-hours since they name no known class.

    As in the generator of Pollux' authors: under 1 GPU-hour cifar10, under 10 deepspeech2 or bert by a hash of the
    job's name, under 100 yolov3, else imagenet; with tables that lack these, the first application.
    """
    hours = workload.true_run_time * workload.gpus / 3600
    names = (*workload.job_classes, "")
    found: list[str] = []
    derived = 0
    number = np.full(workload.size, -1) if workload.job_class is None else workload.job_class
    for job, code in enumerate(number.tolist()):
        name = names[code]
        if name not in known:
            derived += 1
            name = _derived(workload.ids[job], float(hours[job]))
        found.append(name if name in known else next(iter(known)))
    return found, derived


def _derived(job: str, hours: float) -> str:
    if hours < 1:
        return "cifar10"
    if hours < 10:
        return "deepspeech2" if zlib.crc32(f"{job}:goodput".encode()) % 2 else "bert"
    return "yolov3" if hours < 100 else "imagenet"
