"""Attempts and a cluster made by hand, for tests of reliability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.reliability import facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY = 86_400.0


def attempt(number: int, end: float, state: str, **more: object) -> dict[str, object]:
    row = {
        "number": number,
        "job": str(number),
        "shown": str(number),
        "attempt": 0,
        "name": f"n{number}",
        "user": f"u{number}",
        "account": "a",
        "qos": "low",
        "state": state,
        "source_state": state.upper(),
        "gpus": 8.0,
        "gpu_type": "a100",
        "priority": None,
        "array_job": None,
        "array_task": None,
        "time_limit_s": 10 * DAY,
        "queued_s": 0.0,
        "eligible_s": 0.0,
        "start_s": 0.0,
        "end_s": end,
        "over": True,
        "has_log": False,
        "preempted_by": None,
        "reason": None,
        "user_reason": False,
    }
    return row | more


def cluster(
    attempts: list[dict[str, object]],
    events: Sequence[tuple[object, ...]] = (),
    *,
    nodes: int = 8,
    installed_s: Mapping[str, float] | None = None,
    xids: Sequence[tuple[object, ...]] = (),
    counters: Sequence[tuple[object, ...]] = (),
    **more: Any,
) -> facts.Facts:
    schema = {
        "priority": pl.Int64,
        "array_job": pl.String,
        "array_task": pl.Int64,
        "preempted_by": pl.String,
        "reason": pl.String,
    }
    return facts.gather(
        attempts=pl.DataFrame(attempts, schema_overrides=schema),
        places=pl.DataFrame(
            {
                "number": [a["number"] for a in attempts],
                "machine": [f"n{int(str(a['number'])) % nodes}" for a in attempts],
                "gpus": [8.0] * len(attempts),
            }
        ),
        nodes=pl.DataFrame(
            {
                "machine": [f"n{i}" for i in range(nodes)],
                "gpu_type": ["a100"] * nodes,
                "gpus": [8] * nodes,
                "rack": ["r0"] * nodes,
                "installed_s": [(installed_s or {}).get(f"n{i}", -100 * DAY) for i in range(nodes)],
            }
        ),
        events=pl.DataFrame(
            list(events),
            schema={
                "machine": pl.String,
                "from_s": pl.Float64,
                "to_s": pl.Float64,
                "state": pl.String,
                "reason": pl.String,
            },
            orient="row",
        ),
        xid_lines=pl.DataFrame(
            list(xids),
            orient="row",
            schema={
                "machine": pl.String,
                "ts_s": pl.Float64,
                "device": pl.String,
                "xid": pl.Int32,
                "message": pl.String,
            },
        ),
        options=pl.DataFrame(schema={"job": pl.String, "option": pl.String, "value": pl.String}),
        counters=pl.DataFrame(list(counters), schema=facts.NO_COUNTERS.schema, orient="row"),
        **more,
    )
