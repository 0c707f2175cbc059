"""``sacctmgr show event``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from tests.philly_log import load_into
from tests.slurm_site_files import EVENTS, Loose, real, site_format

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = site_format("events")
HEADER, *ROWS = EVENTS.splitlines()


def loaded(lines: Sequence[str], **settings: Any) -> Loose:
    sink = Loose(**settings)
    load_into(sink, FORMAT, "\n".join(lines) + "\n")
    return sink


def node_events(sink: Loose) -> list[tuple[str, str, str | None, str, str | None]]:
    def shown(time: Any) -> str | None:
        return time and time.strftime("%H:%M:%S")

    rows = sink.tables.get("machine_events", [])
    return [(r["machine"], shown(r["from_ts"]), shown(r["to_ts"]), r["state"], r["reason"]) for r in rows]


EXPECTED = [
    ("c1-1", "21:04:24", "21:04:37", "UNK", "cold-start"),
    ("gpu003", "21:06:50", "21:07:07", "DRAIN", "ECC errors | row remap pending"),
    ("gpu001", "21:08:00", None, "DOWN*", "Not responding"),
]


def test_rows_with_a_delimiter_in_the_reason() -> None:
    sink = loaded([HEADER, *ROWS])
    assert node_events(sink) == EXPECTED
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (4, 4, [])
    assert [row["name"] for row in sink.tables["settings"]] == ["slurm.registered"]


def test_with_a_delimiter_at_the_end_of_every_row() -> None:
    assert node_events(loaded([line + "|" for line in (HEADER, *ROWS)])) == EXPECTED


def test_other_columns_in_another_order() -> None:
    header = "State\x1fNodeName\x1fTimeStart\x1fTimeEnd\x1fDuration"
    row = "DOWN\x1fgpu[001-002]\x1f2026-11-20T21:04:24\x1f2026-11-20T21:04:37\x1f00:00:13"
    assert FORMAT.sniff("x", header.encode())
    sink = loaded([header, row])
    assert [(row[0], row[3], row[4]) for row in node_events(sink)] == [
        ("gpu001", "DOWN", None),
        ("gpu002", "DOWN", None),
    ]


def test_times_are_local() -> None:
    first = node_events(loaded([HEADER, *ROWS], timezone="America/New_York"))[0]
    assert first[1:3] == ("02:04:24", "02:04:37")


def test_times_in_seconds_since_1970() -> None:
    sink = loaded([HEADER, "lab|n1|1795208664|1795208677|DOWN|x|root(0)"])
    assert node_events(sink) == [("n1", "21:04:24", "21:04:37", "DOWN", "x")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("lab|gpu001|2026-11-20T21:04:24", "not 7 columns as in the header"),
        ("lab|gpu001|yesterday|Unknown|DOWN|x|root(0)", "time is neither"),
        ("lab|gpu001|Unknown|Unknown|DOWN|x|root(0)", "an event without a start"),
        ("lab|gpu001|2026-11-20T21:04:24|2026-11-20T21:04:23|DOWN|x|r", "ends before it starts"),
        ("lab|gpu[1-999999999999]|2026-11-20T21:04:24|Unknown|DOWN|x|r", "more than 65536 names"),
        ("lab|gpu001|2026-11-20T21:04:24|Unknown||x|r", "no printable state"),
        ("row remap pending|root(0)", "not 7 columns as in the header"),
    ],
)
def test_rows_that_cannot_be_read(row: str, reason: str) -> None:
    sink = loaded([HEADER, row, ROWS[1]])
    assert [number for number, _, _ in sink.rejects] == [2]
    assert reason in sink.reasons[0]
    assert len(node_events(sink)) == 1


def test_without_the_header_nothing_can_be_loaded() -> None:
    with pytest.raises(InputError, match="header"):
        loaded(ROWS)


@pytest.mark.parametrize(
    ("folder", "name", "rows", "events"),
    [
        ("22.05.8", "sacctmgr_event.txt", 15, 14),
        ("ci-smoke-22.05.8", "events.txt", 7, 6),
        ("ci-smoke-24.11.5", "events.txt", 7, 6),
    ],
)
def test_the_real_events(folder: str, name: str, rows: int, events: int) -> None:
    sink = Loose()
    load_into(sink, FORMAT, real(folder, name).read_bytes())
    assert (sink.rows_in, sink.rejects, len(node_events(sink))) == (rows, [], events)
    assert [row for row in node_events(sink) if row[4] == "XID 79: GPU has fallen off the bus"]
