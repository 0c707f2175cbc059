"""A trace store of a few jobs that failed, small enough to work its tables out on paper."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gpuctl.store.database import Store
from gpuctl.store.schema import STORED
from tests.signatures import site_table

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

SIGNATURES = site_table("id = 't_licence'\nreason = 'storage_error'")


def at(minute: float) -> datetime:
    """So many minutes after noon."""
    return NOON + timedelta(minutes=minute)


class Site:
    """Rows for a store, one job at a time; times in minutes after noon, and every job is submitted at noon."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._insert(
            "clusters", cluster="c", source_format="slurm-sacct", timezone="UTC", clock="utc", last_ts=at(10_000)
        )

    def _insert(self, table: str, **values: Any) -> None:
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join(f"${name}" for name in values)
        self.store.execute(f"INSERT INTO {STORED.get(table, table)} ({names}) VALUES ({marks})", values)

    def machine(self, name: str, gpus: int = 8) -> None:
        """A machine."""
        self._insert("machines", cluster="c", machine=name, gpus_labelled=gpus)

    def job(
        self, job: str, *attempts: tuple[str, float, float], gpus: float = 1, user: str | None = "ann",
        queue: str = "q", on: tuple[str, ...] = ("m1",), state: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """A job of attempts (state, start, end)."""
        first, last = attempts[0], attempts[-1]
        common = {"cluster": "c", "job": job, "source": 1}
        self._insert(
            "jobs", **common, queue=queue, user=user, submit_ts=at(0), start_ts=at(first[1]), end_ts=at(last[2]),
            state=state or last[0], gpus=gpus, attempts=len(attempts), quirks=[], wait_s=first[1] * 60,
            run_sum_s=60 * sum(end - start for _, start, end in attempts), run_span_s=60 * (last[2] - first[1]),
            run_last_s=60 * (last[2] - last[1]), **more,
        )  # fmt: skip
        for number, (how, start, end) in enumerate(attempts):
            queued = attempts[number - 1][2] if number else 0
            self._insert(
                "attempts", **common, attempt=number, queued_ts=at(queued), start_ts=at(start), end_ts=at(end),
                released_ts=at(end), state=how, gpus=gpus, servers=len(on), wait_s=60 * (start - queued),
                run_s=60 * (end - start), quirks=[],
            )  # fmt: skip
            for machine in on:
                self._insert("placements", **common, attempt=number, machine=machine, gpus=gpus / len(on))

    def log(
        self, job: str, attempt: int | None, *lines: tuple[str | None, int, str], stream: str = "stderr",
        minutes: dict[int, float] | None = None,
    ) -> None:  # fmt: skip
        """A log with kept lines (signature, line number, text); of some, the minute of their stamp."""
        common = {"cluster": "c", "job": job, "attempt": attempt, "stream": stream, "source": 1}
        self._insert(
            "job_outputs", **common, path=f"{job}.{stream}", bytes=100, lines=10, long_lines=0, steps=0, signatures="t"
        )
        for signature, number, text in lines:
            self._insert(
                "job_logs", **common, line_no=number, text=text, signature=signature, ordinary_after=0,
                work_after=False, count=1, ts=at(minutes[number]) if minutes and number in minutes else None,
            )  # fmt: skip

    def event(self, machine: str, start: float, end: float, reason: str) -> None:
        """A machine was drained."""
        self._insert(
            "machine_events", cluster="c", machine=machine, from_ts=at(start), to_ts=at(end), state="drain",
            reason=reason, source=1,
        )  # fmt: skip

    def insert(self, table: str, **values: Any) -> None:
        """Any other row."""
        self._insert(table, cluster="c", source=1, **values)


def example(path: Path) -> Path:
    """Write the store that the tests work out: seven failed attempts of six jobs."""
    with Store(path, write=True) as store:
        site = Site(store)
        for name in ("m1", "m2", "m3"):
            site.machine(name)
        site.job("twice", ("failed", 0, 10), ("failed", 10, 20))
        for attempt in (0, 1):
            site.log("twice", attempt, ("t_syntax", 3, "SyntaxError: invalid syntax"))
        site.job("gang", ("failed", 0, 20), ("completed", 20, 140), gpus=8, on=("m2",))
        site.log("gang", 0, ("t_gpu_oom", 90, "RuntimeError: CUDA out of memory. <b>"))
        site.log("gang", 1)
        site.job("oom", ("out_of_memory", 0, 60), gpus=4, user="bob")
        site.job("odd-1", ("failed", 0, 30), user="bob", queue="r")
        site.log("odd-1", None, (None, 7, "foo 12 broke at last"))
        site.job("odd-2", ("failed", 0, 30), user="cem", queue="r")
        site.log("odd-2", 0, (None, 9, "foo 77 broke at last"))
        site.job("xid", ("failed", 0, 40), gpus=2, user="cem", on=("m3",), exit_code=1)
        site.event("m3", 38, 500, "XID 79: GPU has fallen off the bus")
        site.event("m3", 60, 500, "much later: CUDA out of memory")
        site.job("killed", ("killed", 0, 5), user="cem")
        site.job("fine", ("completed", 0, 100), user="cem")
    return path
