"""Asks a live Slurm for its accounting, day by day, and keeps what it says as files for the ordinary ingest.

One file a day (UTC) holds the job attempts that ended on it; that of the day at hand also those which run or wait
now. So every attempt stands in one file only, however many days it ran. A day that was not yet over for `SETTLE_S`
when it was asked for is asked for again the next time; its file takes the place of the old one, in the store too.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from gpuctl.core.errors import DependencyError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SETTLE_S = 3600
"""A day is whole this many seconds after its end: slurmctld hands its records on late when slurmdbd was away."""
DELIMITER = "\x1f"
FIELDS = (
    *("JobIDRaw", "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode"),
    *("Submit", "Eligible", "Start", "End", "Suspended", "Timelimit", "Priority", "Restarts"),
    *("NNodes", "NCPUS", "ReqMem", "ReqTRES", "AllocTRES", "ReqGRES", "AllocGRES", "NodeList", "FailedNode"),
    *("Flags", "Reason"),
)
"""What is asked for, where this release of Slurm has it. The last one holds no newline, so that counting delimiters
tells where a record ends."""

_ENDED = "CA,CD,F,TO,NF,PR,OOM,BF,DL,RQ,RV,RS"
_OPEN = "PD,R,S"
_NEVER = frozenset({"N/A", "Unknown", "0"})
_IDS_A_CALL = 100
_CHUNK = 1 << 18
_KEPT = ".fetched.json"


class Progress(Protocol):
    """Is told how far a fetch has come."""

    def start(self, what: str, total: int) -> None:
        """Begin with something of `total` bytes (0 where that is not known)."""

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""


@dataclass(frozen=True)
class Slurm:
    """How to reach one Slurm cluster.

    Attributes:
        sacct: the program; its siblings (squeue, scontrol, sacctmgr) are looked for beside it, then on PATH.
        cluster: as ``sacct --clusters`` takes it; None is the cluster that this machine belongs to.
    """

    sacct: str = "sacct"
    cluster: str | None = None

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line of one of Slurm's programs."""
        which = [] if self.cluster is None else [f"--clusters={self.cluster}"]
        return [self.program(program), *which, *arguments]

    def program(self, name: str) -> str:
        """Return where one of Slurm's programs is."""
        if name == "sacct":
            return self.sacct
        beside = Path(self.sacct).with_name(name)
        return str(beside) if os.sep in self.sacct and beside.exists() else name


@dataclass
class Fetched:
    """What a fetch brought.

    Attributes:
        files: of all days that were asked for, and of the cluster's make-up.
        notes: what could not be had, in words for the user.
    """

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fetch(
    folder: Path, slurm: Slurm, since: date | None, until: date | None = None, *, progress: Progress | None = None
) -> Fetched:
    """Bring the accounting of some days into a folder; days that are whole there already are not asked for again.

    Args:
        folder: made where absent; belongs to one cluster.
        slurm: whom to ask.
        since: first day (UTC); None goes on where the folder ends.
        until: last day (UTC); today where None or later.
        progress: is told what is being fetched.

    Raises:
        DependencyError: there is no sacct.
        InputError: sacct failed; the days before the one it failed on are kept.
        UsageError: `since` is after `until`, or is None and the folder has nothing yet.
    """
    kept, now = _read_kept(folder), time.time()
    wanted = _days(kept, since, until, now)
    run = _Fetch(folder, slurm, fields(slurm), progress)
    folder.mkdir(parents=True, exist_ok=True)
    for day in _due(wanted, kept):
        asked = time.time()
        run.day(day, asked)
        kept[day.isoformat()] = asked
        _write_kept(folder, kept)
    run.site(min(kept))
    run.result.files += [_path(folder, day) for day in wanted]
    return run.result


def plan(folder: Path, slurm: Slurm, since: date | None, until: date | None = None) -> list[str]:
    """Return the sacct command lines that `fetch` would run, as text for a shell; raises as `fetch` does."""
    kept, now = _read_kept(folder), time.time()
    due = _due(_days(kept, since, until, now), kept)
    names = fields(slurm)
    environment = [f"{name}={value}" for name, value in _SETTINGS.items()]
    commands = [shlex.join(["env", *environment, *_of_day(slurm, names, day, now)]) for day in due]
    return [command.replace(f"'--delimiter={DELIMITER}'", r"--delimiter=$'\x1f'") for command in commands]


def fields(slurm: Slurm) -> list[str]:
    """Return those of `FIELDS` that this release of sacct has: asking for another one is an error to it."""
    known = {name.lower() for name in _output([slurm.sacct, "--helpformat"]).decode("ascii", "replace").split()}
    return [name for name in FIELDS if name.lower() in known]


def cluster_name(slurm: Slurm) -> str:
    """Return what Slurm calls the cluster; ``slurm`` where only its accounting can be reached."""
    if slurm.cluster is not None:
        return slurm.cluster
    try:
        lines = _output(slurm.command("scontrol", "show", "config")).decode("utf-8", "replace").splitlines()
    except (InputError, DependencyError):
        return "slurm"
    found = (
        value.strip() for name, _, value in (line.partition("=") for line in lines) if name.strip() == "ClusterName"
    )
    return next(found, "slurm")


def pending(output: bytes, names: Sequence[str]) -> bytes:
    """Return those records of a sacct output without header whose state is PENDING.

    Args:
        output: of the columns `names`; all but the last one may hold newlines.
        names: must have State.
    """
    state, mark = names.index("State"), DELIMITER.encode()
    kept, record = [], b""
    for line in output.splitlines(keepends=True):
        record += line
        cells = record.split(mark)
        if len(cells) >= len(names):
            if cells[state] == b"PENDING":
                kept.append(record)
            record = b""
    return b"".join(kept)


# ---- days


def _days(kept: dict[str, float], since: date | None, until: date | None, now: float) -> list[date]:
    """All days to be in the folder after a fetch, in order: those asked for, and those that are there half."""
    today = datetime.fromtimestamp(now, UTC).date()
    half = [day for day in map(date.fromisoformat, kept) if not _whole(day, kept[day.isoformat()])]
    if since is None:
        if not kept:
            raise UsageError("--from sacct needs a first day", hint="--since YYYY-MM-DD")
        since = min(half, default=date.fromisoformat(max(kept)) + timedelta(days=1))
    last = min(until or today, today)
    if since > last and not half:
        raise UsageError(f"no day from --since {since} until {last} (UTC) to ask for")
    asked = {since + timedelta(days=number) for number in range((last - since).days + 1)}
    return sorted(asked.union(half))


def _due(wanted: Sequence[date], kept: dict[str, float]) -> list[date]:
    return [day for day in wanted if not _whole(day, kept.get(day.isoformat(), 0))]


def _ends(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86400


def _whole(day: date, fetched: float) -> bool:
    return fetched >= _ends(day) + SETTLE_S


def _path(folder: Path, day: date) -> Path:
    return folder / f"sacct-{day.isoformat()}.txt.zst"


def _read_kept(folder: Path) -> dict[str, float]:
    """When each day of a folder was asked for, in seconds since the epoch."""
    try:
        found = json.loads((folder / _KEPT).read_text("utf-8"))
        kept = {date.fromisoformat(day): float(at) for day, at in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError("damaged", path=str(folder / _KEPT), hint=f"remove {folder}: it is fetched again") from error
    return {day.isoformat(): at for day, at in kept.items() if _path(folder, day).exists()}


def _write_kept(folder: Path, kept: dict[str, float]) -> None:
    whole = folder / _KEPT
    part = whole.with_name(_KEPT + ".part")
    part.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", "utf-8")
    part.replace(whole)


# ---- asking

_SETTINGS = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Times without a zone are ambiguous twice a year, and array ids longer than 64 bytes are cut off."""


def _of_day(slurm: Slurm, names: Sequence[str], day: date, now: float) -> list[str]:
    # sacct takes both ends of a window as being in it
    window = [f"--starttime={day}T00:00:00", f"--endtime={day}T23:59:59"]
    states = f"{_ENDED},{_OPEN}" if _ends(day) > now else _ENDED
    # without --state it leaves out what never became eligible
    return _records(slurm, names, *window, f"--state={states}")


def _records(slurm: Slurm, names: Sequence[str], *which: str) -> list[str]:
    form = ["--parsable2", f"--delimiter={DELIMITER}", f"--format={','.join(names)}"]
    return slurm.command("sacct", "--allusers", "--allocations", "--duplicates", *form, *which)


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
        path = _path(self.folder, day)
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as packed:
                for piece in _stream(_of_day(self.slurm, self.names, day, now)):
                    packed.write(piece)
                    if self.progress:
                        self.progress.advance(len(piece))
                if _ends(day) > now:
                    packed.write(self._never_eligible())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _never_eligible(self) -> bytes:
        """Records of the jobs in the queue that have never been eligible: sacct gives such only where asked by id."""
        form = "--Format=JobID:20 ,EligibleTime:30"
        try:
            said = _output(self.slurm.command("squeue", "--noheader", "--all", "--states=PENDING", form))
        except (InputError, DependencyError) as error:
            self.result.notes.append(f"jobs that are held now are left out: {error.message}")
            return b""
        words = [line.split() for line in said.decode("ascii", "replace").splitlines()]
        ids = sorted({w[0] for w in words if len(w) == 2 and w[0].isdigit() and w[1] in _NEVER}, key=int)
        some = [",".join(ids[first : first + _IDS_A_CALL]) for first in range(0, len(ids), _IDS_A_CALL)]
        # the number of an array also stands for those of its tasks that have run
        told = [_output(_records(self.slurm, self.names, "--noheader", f"--jobs={few}")) for few in some]
        return b"".join(pending(part, self.names) for part in told)

    def site(self, first: str) -> None:
        """Bring what there is to know of nodes, partitions and switches, and of when nodes were down since a day."""
        which = [] if self.slurm.cluster is None else [f"cluster={self.slurm.cluster}"]
        asked = {
            "events": [self.slurm.program("sacctmgr"), "--parsable2", "show", "event", f"start={first}", *which],
            "nodes": self.slurm.command("scontrol", "--oneliner", "show", "node"),
            "config": self.slurm.command("scontrol", "show", "config"),
            "partitions": self.slurm.command("scontrol", "--oneliner", "show", "partition"),
            "topology": self.slurm.command("scontrol", "show", "topology"),
        }
        for name, command in asked.items():
            if self.progress:
                self.progress.start(name, 0)
            try:
                said = _output(command)
            except (InputError, DependencyError) as error:
                self.result.notes.append(f"no {name}: {error.message}")
                continue
            path = self.folder / f"{name}.txt"
            path.write_bytes(said)
            self.result.files.append(path)


def _output(command: list[str]) -> bytes:
    """Return all that a program prints.

    Raises:
        DependencyError: there is no such program.
        InputError: it failed.
    """
    return b"".join(_stream(command))


def _stream(command: list[str]) -> Iterator[bytes]:
    """Run a program and yield what it prints, piece by piece; raises as `_output` does."""
    if shutil.which(command[0]) is None:
        raise DependencyError(
            f"no {Path(command[0]).name} here ({command[0]})",
            hint="run this where Slurm's commands are, or say where sacct is: --sacct PATH",
        )
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **_SETTINGS}
        )
        try:
            yield from _pieces(process)
        finally:
            # after Ctrl-C the program may still be waiting for slurmdbd
            if process.poll() is None:
                process.kill()
            process.wait()
        if process.returncode:
            raise InputError(f"{shlex.join(command[:1])}: exit {process.returncode}: {_first_line(errors)}")


def _pieces(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    if process.stdout is None:
        raise AssertionError
    with process.stdout:
        while piece := process.stdout.read(_CHUNK):
            yield piece
    process.wait()


def _first_line(errors: BinaryIO) -> str:
    errors.seek(0)
    text = errors.read(10_000).decode("utf-8", "replace").strip()
    return text.splitlines()[0] if text else "it said nothing"
