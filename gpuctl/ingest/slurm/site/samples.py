"""Samples of squeue and sinfo: a time in seconds since 1970, and then what the command printed, line by line.

The files of `gpuctl sample` name their columns; the sampler of others may have other columns, in another order, or,
for sinfo, none named at all. A header may stand again within a file, where the sampler was started anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, Generic, NamedTuple, TypeVar

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.slurm.delimited import Layout, cells_of, layout_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.core.line_reader import Line
    from gpuctl.ingest.core.format import Sink

T = TypeVar("T")

SQUEUE = ("EPOCH", "JOBID", "ARRAY", "STATE", "REASON", "PARTITION", "NODELIST")
"""What `gpuctl sample` writes of squeue."""
SINFO = ("EPOCH", "NODE", "STATE", "GRES", "GRES_USED", "REASON")
"""What `gpuctl sample` writes of sinfo."""
DELIMITER = "\x1f"

EPOCH_NAMES = frozenset({"epoch", "sampleepoch"})
ALIASES = {
    "sampleepoch": "epoch",
    "arrayid": "array",
    "jobarrayid": "array",
    "statelong": "state",
    "nodelist(reason)": "where",
    "nodehost": "node",
    "hostnames": "node",
}
_EPOCH = re.compile(r"(\d{9,10})(?:\.(\d{1,9}))?", re.ASCII)
_ARRAY = re.compile(r"(\d{1,10})_(?:(\d{1,10})|\[([\d,:-]+)(?:%\d+)?\])", re.ASCII)
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)
_CUT = re.compile(r"\d{1,10}_\[[\d,:%-]*\.\.\.\]?", re.ASCII)
_MOST_TASKS = 65_536
_MOST_CELL = 4096
_MOST_REMEMBERED = 20_000


class Table(Generic[T]):
    """Reads the lines of a file of samples.

    From one sample to the next most lines differ in their time alone, so what was made of a line is remembered.

    Args:
        default: what rows are like until the first header; None if a header must come first.
        make: makes of the cells after the time what the caller wants of them. Raises RowError.
    """

    def __init__(self, default: Layout | None, make: Callable[[dict[str, str]], T]) -> None:
        self._layout = default
        self._make = make
        self._made: dict[str, T] = {}

    def read(self, line: Line) -> tuple[int, T] | None:
        """Return the time of a sample, milliseconds since 1970, and what was made of it; None if it is a header.

        Raises:
            RowError: it is neither, or cannot be read.
        """
        text = line.text()
        if text[:1].isalpha():
            header = layout_of(text)
            if header is None or header.columns[0] not in EPOCH_NAMES:
                raise RowError("neither a sample nor a header")
            self._layout = header._replace(columns=tuple(ALIASES.get(name, name) for name in header.columns[1:]))
            self._made.clear()
            return None
        if self._layout is None:
            raise RowError("a sample before any header")
        time, _, rest = text.partition(self._layout.delimiter)
        if rest not in self._made:
            made = self._make(cells_of(rest, self._layout, "reason"))
            if len(self._made) >= _MOST_REMEMBERED:
                self._made.clear()
            self._made[rest] = made
        return epoch_ms(time), self._made[rest]

    def samples(self, stream: BinaryIO, sink: Sink) -> Iterator[tuple[int, T]]:
        """Yield what `read` makes of the samples of a file; every line but blank ones is counted, headers as loaded."""
        for line in numbered_lines(stream):
            if not line.data.strip():
                continue
            sink.seen()
            try:
                sample = self.read(line)
            except RowError as bad:
                sink.reject(line.line_no, str(bad), line.data)
                continue
            sink.loaded()
            if sample is not None:
                yield sample


class Job(NamedTuple):
    """One job of a squeue sample: its id, and array and task if it is a task of one."""

    job: str
    array_job: str | None
    array_task: str | None


def epoch_ms(text: str) -> int:
    """Milliseconds since 1970 of ``1795208678.8``.

    Raises:
        RowError: it is not such a time.
    """
    match = _EPOCH.fullmatch(text)
    if match is None:
        raise RowError("time is not a number of seconds since 1970")
    return int(match[1]) * 1000 + int((match[2] or "0").ljust(3, "0")[:3])


def jobs_of(job: str, array: str) -> list[Job]:
    """The jobs that one line of squeue stands for: every task of ``11_[3,7-9%2]``, or the one job.

    Of a task list that squeue cut off (``...``) only the array itself is known: a `Job` without a task.

    Args:
        job: the JOBID column.
        array: the column with array and task, e.g. ``11_4``; empty if there is none.

    Raises:
        RowError: no job id.
    """
    if not re.fullmatch(r"\d{1,10}", job, re.ASCII):
        match = re.match(r"(\d{1,10})(?:_|$)", job, re.ASCII)
        if match is None:
            raise RowError("no job id")
        array, job = array or job, match[1]
    if _CUT.fullmatch(array):
        return [Job(job, array.partition("_")[0], None)]
    found = _ARRAY.fullmatch(array)
    if found is None:
        return [Job(job, None, None)]
    if found[2] is not None:
        return [Job(job, found[1], found[2])]
    return [Job(job, found[1], task) for task in _tasks(found[3])]


def _tasks(text: str) -> list[str]:
    tasks: list[str] = []
    for piece in text.split(","):
        span = _SPAN.fullmatch(piece)
        if span is None:
            raise RowError("array tasks cannot be read")
        numbers = range(int(span[1]), int(span[2] or span[1]) + 1, int(span[3] or 1) or 1)
        if len(tasks) + len(numbers) > _MOST_TASKS:
            raise RowError(f"more than {_MOST_TASKS} array tasks in one line")
        tasks += map(str, numbers)
    return tasks


def reason_of(text: str) -> tuple[str, str | None]:
    """Split a reason into its code and what Slurm states after it: ``ReqNodeNotAvail, UnavailableNodes:gpu001``.

    A reason that is a sentence is stored whole.

    Raises:
        RowError: it is absurdly long.
    """
    if len(text) > _MOST_CELL:
        raise RowError(f"reason of more than {_MOST_CELL} characters")
    text = text.strip().removeprefix("(").removesuffix(")") if text.startswith("(") else text.strip()
    code, comma, rest = text.partition(",")
    return (code, rest.strip() or None) if comma and " " not in code else (text, None)
