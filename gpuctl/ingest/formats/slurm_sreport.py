"""``sreport cluster Utilization`` and its reports by account and user: GPU time as Slurm totals it itself.

With ``-P`` or as a table of fixed width, with ``-t seconds``, ``minutes`` (sreport's default) or ``hours``. What a
report states is compared with what the accounting of the same period gives (``source_totals``); no figure is made of
it. A row of the ledger is one line after the header of columns; lines of other TRES than ``gres/gpu`` fill no table.
Times are local to where sreport ran; the period that it prints ends a second early. A report by account has a line for
each account, with all that is below it, and one for each user of an account: the latter are compared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.slurm.delimited import Layout, cells_of, layout_of
from gpuctl.slurm.timestamps import LocalClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.core.line_reader import Line

_TITLE = re.compile(
    r"(Cluster Utilization|Cluster/(?:Account/User|User/Account) Utilization) (\S{1,40}) - (\S{1,40})(?: \(\d+ secs\))?"
)
_USAGE = re.compile(r"Usage reported in (?:(\w{1,20}) )?(.{1,60})")
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600}
_RULE = re.compile(r"-{3,}(?: +-{3,})* *")
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_GPUS = "gres/gpu"
_HOW = "sreport -P -t hours -T gres/gpu cluster AccountUtilizationByUser Start=2026-10-01 End=2026-11-01"
_KINDS = {
    **dict.fromkeys(("report", "account", "login", "tres"), "text"),
    **dict.fromkeys(("from_ts", "to_ts"), "s"),
    **dict.fromkeys(("gpu_s", "rounding_s"), "real"),
}


class Head(NamedTuple):
    """What stands before the columns: whose time, of which period (UTC seconds), and seconds of a unit."""

    report: str
    begin: int
    end: int
    unit_s: int


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``stated_usage``; seconds, with half a unit for what the report rounds off.

    Raises:
        InputError: it is not such a report, in per cent, not of GPUs, or of several clusters.
    """
    lines = (line for line in numbered_lines(stream) if line.data.strip())
    head = _head(lines, LocalClock(sink.timezone))
    rows, clusters = Rows(sink, "stated_usage", _KINDS), set[str]()
    for line, cells in _cells(lines, sink):
        try:
            used = cells.get("allocated" if head.report == "cluster" else "used", "")
            tres = cells["tresname"]
            if not _NUMBER.fullmatch(used):
                raise RowError("usage is not a whole number of units")
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        clusters.add(cells.get("cluster", ""))
        if tres == _GPUS or tres.startswith(f"{_GPUS}:"):
            # a report in seconds is exact
            rounding = head.unit_s / 2 if head.unit_s > 1 else 0.0
            who = (cells.get("account") or None, cells.get("login") or None)
            rows.add(head.report, *who, tres, head.begin, head.end, float(int(used) * head.unit_s), rounding)
        sink.loaded()
    rows.flush()
    if len(clusters) > 1:
        raise InputError(
            f"usage of {len(clusters)} clusters ({', '.join(sorted(clusters)[:3])})",
            hint="report one cluster at a time: sreport cluster … Clusters=NAME, and give each its own --cluster",
        )


def _head(lines: Iterator[Line], clock: LocalClock) -> Head:
    """Read the title, the period and the unit."""
    found = [next(lines, None) for _ in range(4)]
    texts = [line.data[:10_000].decode("utf-8", "replace").strip() if line else "" for line in found]
    title, usage = _TITLE.fullmatch(texts[1]), _USAGE.fullmatch(texts[2])
    if title is None or usage is None or not (_RULE.fullmatch(texts[0]) and _RULE.fullmatch(texts[3])):
        raise InputError(
            "lines 1 to 4 are not the title that sreport prints, with its period", hint=f"write it with: {_HOW}"
        )
    unit_s = _UNITS.get(usage[2].lower())
    if unit_s is None:
        raise InputError(
            f"usage is in {usage[2]!r}: a share of a total that the report does not state",
            hint=f"write it with -t hours, minutes or seconds: {_HOW}",
        )
    try:
        begin, last = clock.read(title[2]), clock.read(title[3])
    except ValueError as bad:
        raise InputError(f"line 2: {bad}", hint=f"write it with: {_HOW}") from None
    return Head("cluster" if title[1] == "Cluster Utilization" else "user", begin, last + 1, unit_s)


def _cells(lines: Iterator[Line], sink: Sink) -> Iterator[tuple[Line, dict[str, str]]]:
    """Yield the cells of each row by their columns, in lower case without blanks; bad rows are rejected."""
    first = next(lines, None)
    text = first.data[:10_000].decode("utf-8", "replace") if first else ""
    layout, spans = layout_of(text), None
    if layout is None:
        rule = next(lines, None)
        dashes = rule.data[:10_000].decode("utf-8", "replace").rstrip() if rule else ""
        if not _RULE.fullmatch(dashes):
            raise InputError("line 5 is not the header of columns that sreport prints", hint=f"write it with: {_HOW}")
        spans = [(m.start(), m.end()) for m in re.finditer("-+", dashes)]
        layout = Layout("", tuple(text[a:b].strip().lower().replace(" ", "") for a, b in spans))
    if "tresname" not in layout.columns or not {"allocated", "used"} & set(layout.columns):
        raise InputError("the report is not by TRES, so that it states no GPU time", hint=f"write it with: {_HOW}")
    for line in lines:
        sink.seen()
        try:
            if spans is None:
                yield line, cells_of(line.text(), layout, "propername")
            else:
                yield line, _fixed(line.text(), layout.columns, spans)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)


def _fixed(text: str, columns: tuple[str, ...], spans: list[tuple[int, int]]) -> dict[str, str]:
    cells = [text[a:b].strip() for a, b in spans]
    if len(text.rstrip()) > spans[-1][1] or any(text[b : b + 1].strip() for _, b in spans):
        raise RowError("not as wide as the columns of the header")
    if any(cell.endswith("+") for cell in cells):
        raise RowError("a name or a number is cut off (+): write the report with -P")
    return dict(zip(columns, cells, strict=True))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the title of a report of utilization between two rules."""
    del name
    lines = [line.strip() for line in head[:1000].decode("utf-8", "replace").removeprefix("\ufeff").split("\n")]
    some = [line for line in lines if line][:3]
    if len(some) < 3 or not _RULE.fullmatch(some[0]) or not _TITLE.fullmatch(some[1]) or not _USAGE.fullmatch(some[2]):
        return None
    return "title of a report of sreport"


FORMAT = Format(
    name="slurm-sreport",
    title="Slurm: GPU time as sreport totals it (cluster Utilization, AccountUtilizationByUser)",
    fills=("stated_usage",),
    file_names=("sreport.txt",),
    order=62,
    sniff=sniff,
    load=load,
)
