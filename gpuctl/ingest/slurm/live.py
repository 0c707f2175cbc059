"""Fetches the accounting of a live Slurm day by day, and stores it as files for the ordinary ingest.

One file per day (UTC) holds the job attempts that ended on it; that of the day at hand also those which run or wait
now. So every attempt stands in one file only, however many days it ran. A day that was not yet over for `SETTLE_S`
when it was requested is requested again the next time; its file takes the place of the old one, in the store too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuctl.core.errors import DependencyError, InputError
from gpuctl.ingest.read.fetched_days import FetchedDays, end_of
from gpuctl.ingest.read.programs import MOST_BYTES, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date


_MOST_RECORD = 1 << 20
_SLACK_S = 3600


@dataclass
class DayCheck:
    """Checks a day's output while it passes by.

    Attributes:
        names: the columns requested.
        delimiter: between two of them; all but the last column may hold newlines.
        window: first and last second of the day.
        what: names the day in errors.
    """

    names: Sequence[str]
    delimiter: bytes
    window: tuple[float, float]
    what: str
    _rest: bytes = b""
    _marks: int = 0
    _records: int = -1
    _ended: int = 0
    _inside: int = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            InputError: sacct does not print such bytes for these columns.
        """
        for cells in self._whole(piece):
            if self._records < 0:
                self._header(cells)
            elif len(cells) != len(self.names):
                self._fail(f"a record of {len(cells)} cells, expected {len(self.names)}: {_start(cells[0])}")
            else:
                self._when(cells)
            self._records += 1

    def end(self) -> None:
        """Check that the answer was complete.

        Raises:
            InputError: there was none, it was cut off, or it is of another day.
        """
        if self._rest and self._records < 0:
            self._header([self._rest])
        if self._rest:
            self._fail(f"the last record is cut off: {_start(self._rest)}")
        if self._records < 0:
            self._fail("not even a header")
        if self._ended and not self._inside:
            self._fail(f"{self._ended} records, of which none ended on that day (UTC)")

    def _whole(self, piece: bytes) -> Iterator[list[bytes]]:
        # by newlines only: a carriage return ends no line of sacct
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._more(line + b"\n")
            if self._marks >= len(self.names) - 1 or self._records < 0:
                cells = self._rest[:-1].split(self.delimiter)
                self._rest, self._marks = b"", 0
                yield cells
        self._more(rest)

    def _more(self, text: bytes) -> None:
        self._rest += text
        self._marks += text.count(self.delimiter)
        if len(self._rest) > _MOST_RECORD:
            self._fail(f"a record of more than {_MOST_RECORD >> 20} MiB")

    def _header(self, cells: list[bytes]) -> None:
        found = [cell.decode("utf-8", "replace").lower() for cell in cells]
        if found != [name.lower() for name in self.names]:
            self._fail(f"its first line is not a header of sacct: {_start(cells[0])}")

    def _when(self, cells: list[bytes]) -> None:
        if "End" in self.names and (text := cells[self.names.index("End")]).isdigit():
            self._ended += 1
            self._inside += self.window[0] <= int(text) <= self.window[1] + _SLACK_S

    def _fail(self, found: str) -> None:
        raise InputError(
            f"{self.what}: no output of sacct: {found}",
            hint="nothing of that day was stored, and it is fetched again the next time; "
            "gpuctl ingest --from sacct --dry-run shows the commands: see what they print",
        )


def _start(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))


DELIMITER = "\x1f"
FIELDS = (
    *("JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode"),
    *("Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "Timelimit", "Priority", "Restarts"),
    *("NNodes", "NCPUS", "ReqMem", "ReqTRES", "AllocTRES", "ReqGRES", "AllocGRES", "NodeList", "FailedNode"),
    *("TotalCPU", "NTasks", "MaxRSS", "TRESUsageInTot", "SubmitLine", "Comment", "AdminComment"),
    *("Flags", "Constraints", "Reason"),
)
"""What is requested, where this release of Slurm has it. The last one holds no newline, so that counting delimiters
shows where a record ends."""

TIMEOUT_S = 600.0
"""Within which sacct has to give a day's records …"""
ASIDE_S = 60.0
"""… and every other question has to be answered."""
_MOST_OF_A_DAY = 16 << 30
_MOST_NAMES = 1 << 20
_ENDED = "CA,CD,F,TO,NF,PR,OOM,BF,DL,RQ,RV,RS"
_OPEN = "PD,R,S"
_NEVER = frozenset({"N/A", "Unknown", "0"})
_IDS_A_CALL = 100


class Progress(Protocol):
    """Receives how far a fetch has come."""

    def start(self, what: str, total: int) -> None:
        """Begin with something of `total` bytes (0 if that is not known)."""

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""


@dataclass(frozen=True)
class Slurm:
    """How to reach one Slurm cluster.

    Attributes:
        sacct: the program; its siblings (squeue, scontrol, sacctmgr) are searched next to it, then on PATH.
        cluster: as ``sacct --clusters`` takes it; None is the cluster that this machine belongs to.
        timeout_s: seconds that each call of a program may take; None: `TIMEOUT_S` and `ASIDE_S`.
    """

    sacct: str = "sacct"
    cluster: str | None = None
    timeout_s: float | None = None

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line of one of Slurm's programs."""
        which = [] if self.cluster is None else [f"--clusters={self.cluster}"]
        return [self.program(program), *which, *arguments]

    def program(self, name: str) -> str:
        """Return where one of Slurm's programs is."""
        if name == "sacct":
            return self.sacct
        sibling = Path(self.sacct).with_name(name)
        return str(sibling) if os.sep in self.sacct and sibling.exists() else name


@dataclass
class Fetched:
    """What a fetch brought.

    Attributes:
        files: of all days that were requested, and of the cluster's make-up.
        notes: what could not be had, in words for the user.
    """

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fetch(
    folder: Path, slurm: Slurm, since: date | None, until: date | None = None, *, progress: Progress | None = None
) -> Fetched:
    """Bring the accounting of some days into a folder; days that are complete there are not fetched again.

    Args:
        folder: made if absent; belongs to one cluster.
        slurm: whom to ask.
        since: first day (UTC); None goes on where the folder ends.
        until: last day (UTC); today if None or later.
        progress: receives what is being fetched.

    Raises:
        DependencyError: there is no sacct.
        InputError: sacct failed; the days before the one it failed on are kept.
        UsageError: `since` is after `until`, or is None and the folder has nothing yet.
    """
    days = _days(folder)
    wanted = days.wanted(since, until, time.time())
    run = _Fetch(folder, slurm, fields(slurm), progress)
    folder.mkdir(parents=True, exist_ok=True)
    for day in days.due(wanted):
        fetch_start = time.time()
        run.day(day, fetch_start)
        days.note(day, fetch_start)
    run.site(min(days.times))
    run.result.files += [_path(folder, day) for day in wanted]
    return run.result


def plan(folder: Path, slurm: Slurm, since: date | None, until: date | None = None) -> list[str]:
    """Return the sacct command lines that `fetch` would run, as text for a shell; raises as `fetch` does."""
    days, now = _days(folder), time.time()
    due = days.due(days.wanted(since, until, now))
    names = fields(slurm)
    environment = [f"{name}={value}" for name, value in _SETTINGS.items()]
    commands = [shlex.join(["env", *environment, *_of_day(slurm, names, day, now)]) for day in due]
    return [command.replace(f"'--delimiter={DELIMITER}'", r"--delimiter=$'\x1f'") for command in commands]


def fields(slurm: Slurm) -> list[str]:
    """Return those of `FIELDS` that this release of sacct has: asking for another one is an error to it."""
    printed = _output(slurm, [slurm.sacct, "--helpformat"], "the names of its columns", _MOST_NAMES)
    known = {name.lower() for name in printed.decode("ascii", "replace").split()}
    found = [name for name in FIELDS if name.lower() in known]
    if "State" not in found:
        raise InputError(
            f"{slurm.sacct} --helpformat names no column State", hint="is it Slurm's sacct? see what it prints"
        )
    return found


def cluster_name(slurm: Slurm) -> str:
    """Return what Slurm calls the cluster; ``slurm`` if only its accounting can be reached."""
    if slurm.cluster is not None:
        return slurm.cluster
    try:
        command = slurm.command("scontrol", "show", "config")
        printed = _output(slurm, command, "the cluster's name").decode("utf-8", "replace")
    except (InputError, DependencyError):
        return "slurm"
    pairs = (line.partition("=") for line in printed.splitlines())
    return next((value.strip() for name, _, value in pairs if name.strip() == "ClusterName"), "slurm")


def pending(output: bytes, names: Sequence[str]) -> bytes:
    """Return those records of a sacct output without header whose state is PENDING.

    Args:
        output: of the columns `names`; all but the last one may hold newlines.
        names: must have State.
    """
    state, mark = names.index("State"), DELIMITER.encode()
    records, record = [], b""
    for line in output.splitlines(keepends=True):
        record += line
        cells = record.split(mark)
        if len(cells) >= len(names):
            if cells[state] == b"PENDING":
                records.append(record)
            record = b""
    return b"".join(records)


def _days(folder: Path) -> FetchedDays:
    return FetchedDays(folder, "sacct", lambda day: _path(folder, day).exists())


def _path(folder: Path, day: date) -> Path:
    return folder / f"sacct-{day.isoformat()}.txt.zst"


# ---- asking

_SETTINGS = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Times without a zone are ambiguous twice a year, and array ids longer than 64 bytes are cut off."""


def _of_day(slurm: Slurm, names: Sequence[str], day: date, now: float) -> list[str]:
    # sacct takes both ends of a window as being in it
    window = [f"--starttime={day}T00:00:00", f"--endtime={day}T23:59:59"]
    states = f"{_ENDED},{_OPEN}" if end_of(day) > now else _ENDED
    # without --state it leaves out what never became eligible
    return _records(slurm, names, *window, f"--state={states}")


def _records(slurm: Slurm, names: Sequence[str], *which: str) -> list[str]:
    form = ["--parsable2", f"--delimiter={DELIMITER}", f"--format={','.join(names)}"]
    # no --allocations: only the records of steps state what was used
    return slurm.command("sacct", "--allusers", "--duplicates", *form, *which)


@dataclass
class _Fetch:
    """One fetch under way."""

    folder: Path
    slurm: Slurm
    names: list[str]
    progress: Progress | None
    result: Fetched = field(default_factory=Fetched)

    def day(self, day: date, now: float) -> None:
        """Bring one day into the folder; its file is there whole or as it was before."""
        import zstandard

        if self.progress:
            self.progress.start(f"sacct {day}", 0)
        start = end_of(day) - 86400
        check = DayCheck(self.names, DELIMITER.encode(), (start, end_of(day) - 1), f"sacct of {day}")
        path = _path(self.folder, day)
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
                command = _of_day(self.slurm, self.names, day, now)
                for piece in _stream(self.slurm, command, f"the records of {day}", _MOST_OF_A_DAY):
                    check.feed(piece)
                    packed.write(piece)
                    if self.progress:
                        self.progress.advance(len(piece))
                check.end()
                if end_of(day) > now:
                    packed.write(self._never_eligible())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _never_eligible(self) -> bytes:
        """Records of the jobs in the queue that have never been eligible: sacct prints such jobs only by id."""
        form = "--Format=JobID:20 ,EligibleTime:30"
        try:
            command = self.slurm.command("squeue", "--noheader", "--all", "--states=PENDING", form)
            printed = _output(self.slurm, command, "the pending jobs")
        except (InputError, DependencyError) as error:
            self.result.notes.append(f"jobs that are held now are left out: {error.message}")
            return b""
        words = [line.split() for line in printed.decode("ascii", "replace").splitlines()]
        ids = sorted({w[0] for w in words if len(w) == 2 and w[0].isdigit() and w[1] in _NEVER}, key=int)
        some = [",".join(ids[first : first + _IDS_A_CALL]) for first in range(0, len(ids), _IDS_A_CALL)]
        # the number of an array also stands for those of its tasks that have run
        commands = (_records(self.slurm, self.names, "--noheader", f"--jobs={ids}") for ids in some)
        outputs = (_stream(self.slurm, command, "the records of pending jobs", MOST_BYTES) for command in commands)
        return b"".join(pending(b"".join(pieces), self.names) for pieces in outputs)

    def site(self, first: str) -> None:
        """Bring what there is to know of nodes, partitions and switches, and of when nodes were down since a day."""
        which = [] if self.slurm.cluster is None else [f"cluster={self.slurm.cluster}"]
        commands = {
            "events": [self.slurm.program("sacctmgr"), "--parsable2", "show", "event", f"start={first}", *which],
            "nodes": self.slurm.command("scontrol", "--oneliner", "show", "node"),
            "config": self.slurm.command("scontrol", "show", "config"),
            "partitions": self.slurm.command("scontrol", "--oneliner", "show", "partition"),
            "topology": self.slurm.command("scontrol", "show", "topology"),
        }
        for name, command in commands.items():
            if self.progress:
                self.progress.start(name, 0)
            try:
                printed = _output(self.slurm, command, f"the cluster's {name}")
            except (InputError, DependencyError) as error:
                self.result.notes.append(f"no {name}: {error.message}")
                continue
            path = self.folder / f"{name}.txt"
            path.write_bytes(printed)
            self.result.files.append(path)


def _output(slurm: Slurm, command: list[str], what: str, most: int = MOST_BYTES) -> bytes:
    """Return all that a program prints.

    Raises:
        DependencyError: there is no such program.
        InputError: it failed.
    """
    return b"".join(_stream(slurm, command, what, most, slurm.timeout_s or ASIDE_S))


def _stream(slurm: Slurm, command: list[str], what: str, most: int, timeout_s: float | None = None) -> Iterator[bytes]:
    """Run a program and yield what it prints, piece by piece; raises as `_output` does."""
    if shutil.which(command[0]) is None:
        raise DependencyError(
            f"no {Path(command[0]).name} here ({command[0]})",
            hint="run this on a host with Slurm's commands, or give sacct's path: --sacct PATH",
        )
    within = timeout_s or slurm.timeout_s or TIMEOUT_S
    return stream(command, timeout_s=within, settings=_SETTINGS, what=what, most=most)
