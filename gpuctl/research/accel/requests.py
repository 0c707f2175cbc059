"""Requests: tenant, model, arrival and deadline; read, written, and generated."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.research.accel.recorded import scaled
from gpuctl.research.accel.rows import name, number, read_rows
from gpuctl.research.learn.repeated_runs import u

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.recorded import Arrivals

    Floats = NDArray[np.float64]
    Row = tuple[str, str, str, int, float, float]

COLUMNS = ("request", "tenant", "model", "qos", "arrival_us", "deadline_us")
_HINT = "expected a CSV with the columns request, tenant, model, arrival_us, deadline_us, and perhaps qos"
QOS = {"high": 2, "medium": 4, "low": 8}
"""How many times its least time a request may take, by its quality of service."""
TENANTS = 4
QUIET, BUSY = 40, 20
"""Mean arrivals in a quiet and in a busy spell of ``burst``."""


@dataclass(frozen=True)
class Requests:
    """Requests, in the order of their file.

    Attributes:
        names: of each.
        tenants: of each.
        qos: of each; empty: it has none.
        model: number of its model in the machine [requests].
        arrival: microseconds [requests].
        deadline: microseconds [requests].
    """

    names: tuple[str, ...]
    tenants: tuple[str, ...]
    qos: tuple[str, ...]
    model: NDArray[np.int64]
    arrival: Floats
    deadline: Floats

    def __len__(self) -> int:
        return len(self.names)


def read_requests(path: Path, machine: Machine) -> Requests:
    """Read requests.

    Raises:
        InputError: it is not such a table; a request appears twice, or its model has no costs on this system.
    """
    known: set[str] = set()

    def row_of(row: dict[str, str], _: int) -> Row:
        found, model = name(row, "request"), name(row, "model")
        if found in known:
            raise ValueError(f"request {found[:40]!r} appears twice")
        known.add(found)
        try:
            place = machine.model(model)
        except KeyError:
            raise ValueError(
                f"model {model[:40]!r} has no costs on this system; {meant(model, machine.models)}"
            ) from None
        arrival = number(row, "arrival_us", least=0)
        qos = (row.get("qos") or "").strip()
        return found, name(row, "tenant"), qos, place, arrival, number(row, "deadline_us")

    rows = read_rows(path, [c for c in COLUMNS if c != "qos"], row_of, _HINT)
    return requests_of(rows)


def requests_of(rows: Iterable[Row]) -> Requests:
    """Build requests from rows: name, tenant, quality of service, number of the model, arrival and deadline."""
    names, tenants, qos, model, arrival, deadline = zip(*rows, strict=True)
    return Requests(
        names, tenants, qos, np.array(model, np.int64), np.array(arrival, np.float64), np.array(deadline, np.float64)
    )


def csv_of(requests: Requests, machine: Machine) -> str:
    """Return requests as CSV text."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    models = [machine.models[k] for k in requests.model.tolist()]
    rows.writerows(
        zip(requests.names, requests.tenants, models, requests.qos, requests.arrival.tolist(),
            requests.deadline.tolist(), strict=True)
    )  # fmt: skip
    return text.getvalue()


def models_of(text: str, machine: Machine) -> list[int]:
    """Return the numbers of models in a comma-separated list, in its order; ``all``: all of them.

    Raises:
        UsageError: one has no costs on this system.
    """
    if text.strip() == "all":
        return list(range(len(machine.models)))
    found = []
    for word in filter(None, (each.strip() for each in text.replace(",", " ").split())):
        if word not in machine.models:
            raise UsageError(f"--models: no model {word[:40]!r} has costs here", hint=meant(word, machine.models))
        found.append(machine.model(word))
    if not found:
        raise UsageError("--models names none", hint=f"known: {', '.join(machine.models)}")
    return found


def capacity_us(machine: Machine, models: Sequence[int]) -> float:
    """Return the mean time for which a request of these models occupies the system, by computing or by memory.

    By computing: 1 / sum over sub-accelerators of 1 / its time there; by memory: the least bytes of its layers /
    bandwidth.
    """
    found: list[float] = []
    for k in models:
        some = slice(machine.first[k], machine.first[k] + machine.count[k])
        computing = 1 / sum(1 / each for each in machine.alone[some].sum(axis=0).tolist())
        found.append(max(computing, float(machine.dram[some].min(axis=1).sum()) / machine.system.bandwidth))
    return sum(found) / len(found)


def generate(
    machine: Machine, models: Sequence[int], count: int, load: float, seed: int, *, burst: bool = False,
    recorded: Arrivals | None = None,
) -> Requests:  # fmt: skip
    """Generate requests by `u`: the same on every machine, but similar for different seeds, see `stream`.

    Args:
        machine: the system and its costs.
        models: numbers of the models.
        count: number of requests.
        load: 1: as many as the system can just serve at perfect use.
        seed: random seed.
        burst: alternate periods of half and of double the rate.
        recorded: recorded arrivals to use instead of random ones, stretched to that load; several services become the
            tenants.
    """
    return _generate(machine, models, count, load, lambda i, tag: u(seed, i, tag), burst=burst, recorded=recorded)


def stream(machine: Machine, models: Sequence[int], count: int, load: float, seed: int) -> Requests:
    """Generate requests as `generate` does, but from NumPy's random numbers, for learning and scoring.

    A CRC is linear: the hashed numbers of two seeds differ by one mask, the same for all requests, so a policy trained
    on some such streams knows the others.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    drawn = {tag: np.maximum(draw.random(count), 1e-12).tolist() for tag in ("gap", "model", "qos", "tenant")}
    return _generate(machine, models, count, load, lambda i, tag: drawn[tag][i])


def _generate(
    machine: Machine, models: Sequence[int], count: int, load: float, number_of: Callable[[int, str], float], *,
    burst: bool = False, recorded: Arrivals | None = None,
) -> Requests:  # fmt: skip
    """Generate requests at exponential intervals; model, quality of service and tenant (of four) are drawn evenly."""
    rate = load / capacity_us(machine, models)
    whole = machine.whole_us().tolist()
    rows = []
    t, until, busy = 0.0, 0.0, 0
    times = [] if recorded is None else scaled(recorded, rate)
    several = recorded is not None and len(set(recorded.services)) > 1
    for i in range(count):
        now = rate
        if burst:
            while t >= until:
                busy = 1 - busy
                until += -np.log(number_of(int(until), "sojourn")) * (BUSY if busy else QUIET) / rate
            now = rate * (2 if busy else 0.5)
        t += float(-np.log(number_of(i, "gap"))) / now
        model = models[int(number_of(i, "model") * len(models))]
        qos = list(QOS)[int(number_of(i, "qos") * len(QOS))]
        tenant = f"t{int(number_of(i, 'tenant') * TENANTS)}"
        if recorded is not None:
            t, tenant = times[i], recorded.services[i] if several else tenant
        arrival = round(t, 3)
        rows.append((f"r{i}", tenant, qos, model, arrival, round(arrival + QOS[qos] * whole[model], 3)))
    return requests_of(rows)
