"""What a ResourceManager's log reports about nodes, and of its own restarts.

It is stored in ``yarn_facts`` as well, since its times, too, are of a clock that other sources may show more of. It
stands under `MANAGER` in place of an application: ``submit_ts`` is when it happened; ``origin`` is ``manager`` if the
ResourceManager became active (a start, or the other one of a pair taking over), and ``node`` where ``machine`` went
into ``state``, or where it was stated why it was about to (``reason``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from gpuctl.ingest.core.format import Sink

MANAGER = "ResourceManager"
"""What stands for the ResourceManager itself where else an application's id stands."""
UP = frozenset({"NEW", "RUNNING"})
NODE_STATES = UP | {"UNHEALTHY", "DECOMMISSIONING", "DECOMMISSIONED", "LOST", "REBOOTED", "SHUTDOWN"}
"""States of a node in YARN's own words; it gets containers in those of `UP` alone."""
_REASON_FOR_S = 5
_FLUSH_AT = 50_000


class Change(NamedTuple):
    """A node went into a state, or (state None) a reason was given why it soon would."""

    ts: datetime
    machine: str
    state: str | None
    reason: str | None
    source: int


class Event(NamedTuple):
    """A span of time in which a node was not to be had; without an end if none is stated."""

    machine: str
    from_ts: datetime
    to_ts: datetime | None
    state: str
    reason: str | None
    source: int


class Happenings:
    """Gathers such facts of one log.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rows: list[tuple[str, int, str | None, str | None, str | None]] = []

    def active(self, millis: int) -> None:
        """Note that the ResourceManager became active."""
        self._add("manager", millis, None, "ACTIVE", None)

    def went(self, machine: str, state: str, millis: int) -> None:
        """Note that a node went into a state."""
        self._add("node", millis, machine, state, None)

    def ails(self, machine: str, reason: str, millis: int) -> None:
        """Note why a node is about to be taken for unhealthy."""
        self._add("node", millis, machine, None, reason)

    def flush(self) -> None:
        """Write what has been gathered."""
        import polars as pl

        if self._rows:
            schema = {
                "origin": pl.String,
                "ts": pl.Int64,
                "machine": pl.String,
                "state": pl.String,
                "reason": pl.String,
            }
            frame = pl.DataFrame(self._rows, schema, orient="row")
            self._sink.insert(
                "yarn_facts",
                frame.select(
                    "origin", "machine", "state", "reason", submit_ts=pl.col("ts").cast(pl.Datetime("ms"))
                ).with_columns(job=pl.lit(MANAGER), local=pl.lit(value=True)),
            )
            self._rows.clear()

    def _add(self, origin: str, millis: int, machine: str | None, state: str | None, reason: str | None) -> None:
        self._rows.append((origin, millis, machine, state, reason))
        if len(self._rows) >= _FLUSH_AT:
            self.flush()


def machine_events(changes: Iterable[Change]) -> list[Event]:
    """Make spans of the changes of state that logs show, in any order and any of them several times.

    A span ends where the node goes into another state. What was never seen to end lasts on.

    Returns:
        spans, sorted by node and time.
    """
    events: list[Event] = []
    reasons: dict[str, Change] = {}
    # in the same millisecond the reason comes first, and a node that is up again last
    ordered = sorted(
        changes, key=lambda c: (c.machine, c.ts, c.state is not None, c.state in UP, c.state or c.reason, c.source)
    )
    for change in ordered:
        if change.state is None:
            reasons[change.machine] = change
            continue
        last = events[-1] if events and events[-1].machine == change.machine and events[-1].to_ts is None else None
        if last is not None and last.state == change.state:
            continue
        if last is not None:
            events[-1] = last._replace(to_ts=change.ts)
        if change.state not in UP:
            reason = _reason(reasons.get(change.machine), change)
            events.append(Event(change.machine, change.ts, None, change.state, reason, change.source))
    return events


def _reason(earlier: Change | None, change: Change) -> str | None:
    near = earlier is not None and (change.ts - earlier.ts).total_seconds() <= _REASON_FOR_S
    return earlier.reason if earlier is not None and near and change.state == "UNHEALTHY" else None
