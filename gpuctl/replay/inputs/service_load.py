"""Idle nodes of an inference cluster over time, from the requests recorded in a trace of services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import note
from gpuctl.replay.models.inference import DAY_S, HEADROOM, STEP_S, WEEK_S, steps
from gpuctl.replay.models.records import Inference
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Floats, Ints

PEAK = 0.99
"""Quantile of five-minute means that defines the load of all nodes."""

MOST_STEPS = 2_000_000
"""Nineteen years; more means a clock that jumps."""

FIRST_MONDAY_S = 4 * DAY_S
"""1970 began on a Thursday."""

_HOLDERS = "SELECT cluster, count(DISTINCT service) AS services FROM service_load GROUP BY cluster ORDER BY cluster"
_STEPS = f"""
    SELECT floor(epoch(timezone($zone, ts)) / {STEP_S})::BIGINT + part AS step,
        sum(requests / parts) AS requests, sum((prompt_tokens + output_tokens) / parts) AS tokens,
        count(*) FILTER (prompt_tokens IS NULL OR output_tokens IS NULL) AS untold
    FROM (
        SELECT *, greatest(1, ceil(span_s / {STEP_S})) AS parts,
            unnest(range(greatest(1, ceil(span_s / {STEP_S}))::BIGINT)) AS part
        FROM service_load WHERE cluster = $cluster
    ) GROUP BY step ORDER BY step
"""  # noqa: S608 - a number of this module
"""A span longer than a step is divided evenly over as many steps."""


def read_service_load(path: Path, gpus: Ints) -> Inference:
    """Read when nodes are idle from the table ``service_load`` of a trace store.

    The load is prompt and output tokens if all requests record them, else requests, of all services together, in means
    over five minutes (0 if none). Its 99th percentile takes all nodes; need is proportional to load, and inference
    keeps 2 % more. All assumed here: no trace records how many GPUs served it.

    Args:
        path: the store.
        gpus: of each node of the inference cluster.

    Raises:
        InputError: the store has no requests, those of less than a day, or of more than nineteen years.
        UsageError: it has requests of several traces.
    """
    with Store(path) as store:
        holders = store.frame(_HOLDERS).rows()
        if not holders:
            hint = "gpuctl ingest reads traces of requests to services; or give a CSV time_s,nodes_free"
            raise InputError("has no requests to services", path=str(path), hint=hint)
        if len(holders) > 1:
            named = ", ".join(name for name, _ in holders[:5])
            raise UsageError(
                f"--inference-load {path}: requests of {len(holders)} traces: {named}",
                hint="ingest the intended trace into its own store",
            )
        [(name, services)] = holders
        about = store.frame("SELECT * FROM clusters WHERE cluster = $cluster", {"cluster": name}).row(0, named=True)
        found = store.frame(_STEPS, {"cluster": name, "zone": about["timezone"]})
    step = found["step"].to_numpy()
    if step[-1] - step[0] >= MOST_STEPS:
        days = (step[-1] - step[0]) * STEP_S / DAY_S
        raise InputError(f"has requests over {days:,.0f} days", path=str(path), hint="one of its clocks is wrong")
    by = "requests" if found["untold"].sum() else "tokens"
    load = np.zeros(int(step[-1] - step[0]) + 1)
    load[step - step[0]] = found[by].to_numpy()
    first = float(step[0] * STEP_S)
    # a trace with relative times has no weekdays: its first day counts as a Monday
    monday = 0.0 if about["epoch"] == "relative" else FIRST_MONDAY_S
    lent = idle_nodes(load, first - monday, gpus, str(path))
    days = round(lent.period_s / DAY_S)
    text = note(
        "the load of inference is that of {services:,} service{services||s} in {days:,} day{days||s} of a trace, "
        "repeated by hour and "
        "weekday; assumed: the 99th percentile of {by} in five minutes takes all nodes",
        services=services, days=days, by=note("requests") if by == "requests" else note("tokens"),
    )  # fmt: skip
    return Inference(lent.gpus, lent.time_s, lent.free, lent.period_s, notes=(text,))


def idle_nodes(load: Floats, first: float, gpus: Ints, path: str) -> Inference:
    """Return idle nodes by a load.

    Args:
        load: of each five minutes, in any unit.
        first: second of the first interval, from a Monday's 0:00 on.
        gpus: of each node.
        path: of the store, for errors.

    Returns:
        Whole weeks from a Monday's 0:00 on, or whole days from a day's 0:00 on if shorter than a week. If the load
            begins later, its first hours are moved to the period's end.

    Raises:
        InputError: it is less than a day long, or there is none.
    """
    a_day, a_week = DAY_S // STEP_S, WEEK_S // STEP_S
    unit = a_week if load.size >= a_week else a_day
    size = load.size // unit * unit
    if not size:
        raise InputError(
            f"has requests of {load.size * STEP_S / 3600:.1f} hours", path=path,
            hint="at least a day is needed, as it is repeated day by day",
        )  # fmt: skip
    load = np.roll(load[:size], int(first // STEP_S) % unit)
    peak = float(np.quantile(load, PEAK))
    if peak <= 0:
        raise InputError("has hardly any requests", path=path, hint="more than one five-minute step in a hundred")
    count = len(gpus)
    need = np.minimum(count, np.ceil(HEADROOM * count * load / peak - 1e-9))
    return steps(gpus, count - need.astype(np.int64), float(size * STEP_S))
