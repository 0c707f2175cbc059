"""Checks files that a command line names as a table of one kind, and reports the columns that a file lacks."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.formats import profile_jobs, suspensions, traffic_csv
from gpuctl.ingest.pipeline.detect import HEAD, survey
from gpuctl.ingest.read.files import Candidate, NotRead, Opener, clean, walk
from gpuctl.ingest.traffic.csv_table import CsvTable, header_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.read.streams import LogStream


class Kind(NamedTuple):
    """A kind of table.

    Attributes:
        what: name of such a file, for messages.
        needed: columns that its header must have.
    """

    what: str
    needed: tuple[str, ...]


TRAFFIC = Kind("a CSV of traffic", traffic_csv.NEEDED)
TRAINING = Kind("a CSV that describes training jobs", profile_jobs.NEEDED)
SUSPENSIONS = Kind("a CSV of suspensions", suspensions.NEEDED)
QUEUED = Kind("a CSV of jobs", ("job_id", "submit_time", "num_gpus", "duration"))


def check_formats(paths: Sequence[Path], formats: Sequence[Format], kinds: Sequence[Kind]) -> None:
    """Check that each file among `paths` is in a known format; directories and archives may hold other files.

    Args:
        paths: as named on the command line.
        formats: that will read them.
        kinds: expected kinds of tables, the usual one first; the nearest one determines the columns reported as
            missing.

    Raises:
        InputError: a file is empty, junk, or a table without a column that it needs.
    """
    with closing(Opener()) as opener:
        for path in paths:
            if not path.is_file():
                continue
            for found in survey([path], formats, opener, sizes=set()):
                if isinstance(found, NotRead) and found.shown == clean(path):
                    raise InputError(_lack(path, found.why, kinds), path=found.shown, hint=_hint(kinds))


def check_training(path: Path, *, epochs: bool) -> None:
    """Check that a file describes training jobs, before it is read into a store.

    Args:
        path: the file.
        epochs: whether the column ``epochs`` is also required.

    Raises:
        InputError: it is not such a table, lacks a column, or has no row that can be read.
    """
    needed = (*TRAINING.needed, "epochs") if epochs else TRAINING.needed
    columns = profile_jobs.COLUMNS
    with _stream(path) as stream:
        head = stream.peek(HEAD)[:HEAD]
        if epochs and header_of(head) >= set(TRAINING.needed) and "epochs" not in header_of(head):
            raise InputError(
                f"line 1 has no column epochs; found {listed(sorted(header_of(head)))}", path=clean(path), line=1,
                hint="add the column, or give --epochs N for all jobs whose number of epochs is unknown",
            )  # fmt: skip
        try:
            table = CsvTable(stream, needed, [c.name for c in columns], what=TRAINING.what, others=False)
        except InputError as error:
            raise InputError(error.message, hint=_hint([TRAINING])) from None
        first: tuple[int, str] | None = None
        for line in table.rows():
            try:
                cells = table.cells(line)
                for column in columns:
                    column.read(cells.get(column.name, ""))
            except RowError as bad:
                first = first or (line.line_no, str(bad))
            else:
                return
    if first is None:
        raise InputError("has a header and no rows: no job is described", path=clean(path), hint=_hint([TRAINING]))
    raise InputError(
        f"no row describes a job; this one: {first[1]}", path=clean(path), line=first[0], hint=_hint([TRAINING])
    )


def describes_training(path: Path) -> bool:
    """Return whether a CSV of jobs has models and batches, rather than a queue's columns.

    Raises:
        InputError: it does not exist, is not a file, or cannot be read.
    """
    with _stream(path) as stream:
        return profile_jobs.sniff(path.name, stream.peek(HEAD)[:HEAD]) is not None


def _stream(path: Path) -> LogStream:
    with closing(Opener()) as opener:
        found = next(_files(path, opener))
        if isinstance(found, NotRead):
            raise InputError(found.why, path=found.shown, hint=_hint([TRAINING]))
        return opener.open(found)


def _files(path: Path, opener: Opener) -> Iterator[Candidate | NotRead]:
    if path.is_dir():
        raise InputError("is a directory, expected a file", path=clean(path), hint=_hint([TRAINING]))
    yield from walk([path], opener)
    yield NotRead(clean(path), "an empty archive")


def _lack(path: Path, why: str, kinds: Sequence[Kind]) -> str:
    """Return the columns that an unrecognised file lacks to be a table of the nearest kind."""
    try:
        with _stream(path) as stream:
            names = header_of(stream.peek(HEAD)[:HEAD])
    except InputError:
        return why
    nearest = max(kinds, key=lambda kind: len(names & set(kind.needed)))
    absent = [name for name in nearest.needed if name not in names]
    if not absent or len(absent) == len(nearest.needed):
        return why
    return f"line 1 is not the header of {nearest.what}: no column {', '.join(absent)}; found {listed(sorted(names))}"


def _hint(kinds: Sequence[Kind]) -> str:
    return "expected " + "; or ".join(f"{kind.what} ({','.join(kind.needed)})" for kind in kinds)
