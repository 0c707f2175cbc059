"""What no recording of the scheduler lab may say: nodes overfull, endless containers, shares that do not add up."""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Row = dict[str, str]
_SIZES = ("mb", "vcores", "gpus")
_BEAT_MS = 1000


@dataclass
class Recording:
    """The tables of one recorded run, as text."""

    capacity: bool
    nodes: list[Row]
    workload: list[Row]
    events: list[Row]
    shares: list[Row]

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Read a fixture folder."""
        return cls(
            (folder / "capacity-scheduler.xml").exists(),
            *(table(folder / f"{name}.csv") for name in ("nodes", "workload")),
            *(table(folder / f"{name}.csv.gz") for name in ("events", "shares")),
        )


def table(file: Path) -> list[Row]:
    """The rows of a CSV file, packed or not."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return list(csv.DictReader(io.StringIO(content.decode())))


def size(row: Row, prefix: str = "") -> tuple[int, ...]:
    """Memory (MB), vcores and GPUs of a row; 0 where the scheduler said nothing."""
    return tuple(int(row[prefix + name] or 0) for name in _SIZES)


def faults(run: Recording) -> list[str]:
    """All that is wrong with a recording; none for a sound one."""
    return [*_order(run), *_containers(run), *_nodes(run), *_apps(run), *_shares(run)]


def _order(run: Recording) -> Iterator[str]:
    if [int(row["seq"]) for row in run.events] != list(range(len(run.events))):
        yield "seq is not 0, 1, 2 ..."
    times = [int(row["ms"]) for row in run.events]
    if times != sorted(times):
        yield "events go back in time"


def _containers(run: Recording) -> Iterator[str]:
    """Each is allocated once and released once (if its application finished), and runs as long as it should."""
    duration = {row["app"]: int(row["duration_ms"]) for row in run.workload}
    unfinished = {row["app"] for row in run.events if row["event"] == "unfinished"}
    live: dict[str, Row] = {}
    seen: set[str] = set()
    for row in run.events:
        name = row["container"]
        if row["event"] == "allocate":
            if name in seen:
                yield f"{name} is allocated twice"
            seen.add(name)
            live[name] = row
        elif row["event"] == "release":
            start = live.pop(name, None)
            if start is None:
                yield f"{name} is released and not there"
                continue
            if any(start[key] != row[key] for key in ("app", "queue", "user", "node", *_SIZES)):
                yield f"{name} is another one at its end"
            late = int(row["ms"]) - int(start["ms"]) - duration[row["app"]]
            if row["detail"] == "completed" and start["detail"] != "AM" and not 0 <= late < _BEAT_MS:
                yield f"{name} ends {late} ms late"
    yield from (f"{name} is never released" for name, row in live.items() if row["app"] not in unfinished)


def _nodes(run: Recording) -> Iterator[str]:
    """No node gives more than it has, and no application reserves a node twice or gives up what it has not reserved."""
    free = {row["node"]: list(size(row)) for row in run.nodes}
    reserved: dict[str, str] = {}
    for row in run.events:
        node, app = row["node"], row["app"]
        if row["event"] in ("allocate", "release"):
            sign = -1 if row["event"] == "allocate" else 1
            free[node] = [had + sign * part for had, part in zip(free[node], size(row), strict=True)]
            if min(free[node]) < 0:
                yield f"{node} has {free[node]} left at {row['ms']} ms"
        elif row["event"] == "reserve":
            if node in reserved:
                yield f"{node} is reserved for two at {row['ms']} ms"
            reserved[node] = app
        elif row["event"] == "unreserve" and reserved.pop(node, None) != app:
            yield f"{node} is given up by {app}, which does not have it, at {row['ms']} ms"


def _apps(run: Recording) -> Iterator[str]:
    """Each gets what it asked for, and once more for what it lost; none is in no state at the end."""
    got: dict[str, int] = defaultdict(int)
    completed: dict[str, int] = defaultdict(int)
    ends: dict[str, str] = {}
    masters = {row["container"] for row in run.events if row["event"] == "allocate" and row["detail"] == "AM"}
    for row in run.events:
        if row["event"] == "release" and row["container"] not in masters:
            got[row["app"]] += 1
            completed[row["app"]] += row["detail"] == "completed"
        elif row["event"] in ("finished", "failed", "refused", "unfinished"):
            ends[row["app"]] = row["event"]
    for row in run.workload:
        app = row["app"]
        if app not in ends:
            yield f"{app} has no end"
        elif ends[app] == "finished" and completed[app] != int(row["containers"]):
            yield f"{app} completed {completed[app]} of {row['containers']} containers"
        elif ends[app] in ("failed", "refused") and got[app]:
            yield f"{app} was turned away and had containers"


def _shares(run: Recording) -> Iterator[str]:
    """A queue uses what its containers (capacity: and reservations) hold, and those of the queues below it."""
    held: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    booked: dict[str, Row] = {}
    events = iter(run.events)
    event = next(events, None)
    for row in run.shares:
        # the sample of an instant is taken after all else that happens then
        while event is not None and int(event["ms"]) <= int(row["ms"]):
            kind = event["event"]
            if kind in ("allocate", "release"):
                _add(held, event, 1 if kind == "allocate" else -1)
            elif run.capacity and kind in ("reserve", "unreserve"):
                before = booked.pop(event["node"], None) if kind == "unreserve" else event
                if kind == "reserve":
                    booked[event["node"]] = event
                _add(held, before or event, 1 if kind == "reserve" else -1)
            event = next(events, None)
        if tuple(held[row["queue"]]) != size(row, "used_"):
            yield f"{row['queue']} holds {held[row['queue']]}, not {size(row, 'used_')}, at {row['ms']} ms"


def _add(held: dict[str, list[int]], event: Row, sign: int) -> None:
    parts = event["queue"].split(".")
    for depth in range(1, len(parts) + 1):
        queue = held[".".join(parts[:depth])]
        for index, part in enumerate(size(event)):
            queue[index] += sign * part
