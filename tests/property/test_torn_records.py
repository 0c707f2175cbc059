"""Whole files with lines torn, run together or with bytes before them: no job gets what another one has, none is lost.

Three things cannot be told from a record: a tear that ends in one record and goes on in the middle of another, with all
fields in their places; a number that has got one more digit; and the last field of a record cut short.
"""

from __future__ import annotations

import gzip
import os
import random
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.registry import all_formats
from tests.philly_log import new_store
from tests.sacct_records import text
from tests.slurm_loading import load, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

    Facts = dict[str, list[dict[str, object]]]

TESTS = Path(__file__).resolve().parents[1]
FIXTURES = TESTS / "fixtures"
SAMPLES = TESTS.parent / "sample_data"
TIMES = int(os.environ.get("GPUCTL_TORN", "1"))
"""How many times as many damages are tried."""
FIRST = int(os.environ.get("GPUCTL_TORN_SEED", "0"))
"""Where other damages begin."""
SEEDS = range(FIRST, FIRST + 6 * TIMES)
FOUND = {"dbd": (1795427366,)}
"""Damages that once lost jobs without a word."""
RECIPE = "JobIDRaw JobID User Account Partition QOS State ExitCode Submit Start End NNodes AllocTRES NodeList JobName"
XDMOD_LIKE = "JobID JobIDRaw Partition User Submit Start End ExitCode State NNodes AllocTRES NodeList JobName"
NO_PAIR = "JobIDRaw JobName User Partition State Submit Start End AllocTRES NodeList Flags"
ONCE = ("user", "queue", "name", "account")


@dataclass(frozen=True)
class Log:
    """One file of a format.

    Attributes:
        name: of the format.
        data: a small whole file.
        first: its first lines, which stay as they are.
        only: how lines begin that do not.
        lines: whether a row of the ledger is a line, with what has run into it.
        events: whether several lines tell of one job, so that a line less is a fact less.
    """

    name: str
    data: bytes
    first: int = 0
    only: bytes = b""
    events: bool = False
    lines: bool = False


def _sacct(only: str) -> bytes:
    names = ("train", "a|b", "x y", "run 5", "j.sh")
    records = [
        {
            "JobIDRaw": str(900 + 7 * i), "JobName": names[i % 5], "User": f"user{i}", "Account": f"acc{i % 3}",
            "Submit": f"2026-11-20T10:{i:02d}:00", "Start": f"2026-11-20T11:{i:02d}:01", "NodeList": f"gpu{i:03d}",
            "State": ("COMPLETED", "FAILED", "CANCELLED by 77")[i % 3], "End": f"2026-11-20T12:{i:02d}:02",
        }
        for i in range(14)
    ]  # fmt: skip
    return text(*records, only=only).encode()


def _zipped(path: Path, lines: int) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:lines])


def _console(data: bytes) -> bytes:
    """A log in log4j's console layout: ``18/08/22 10:11:12 INFO logger: message``."""
    short = re.compile(
        rb"(?m)^20(\d\d)-(\d\d)-(\d\d) ([\d:]{8}),\d{3} ([A-Z]+) +(?:\[[^\]\n]*\] )?([\w.$]+)(?: \([^)\n]*\) -|:) "
    )
    found, times = short.subn(rb"\1/\2/\3 \4 \5 \6: ", data)
    assert times > len(data.splitlines()) / 2
    return found


LOGS: dict[str, Callable[[], Log]] = {
    "sacct": lambda: Log("slurm-sacct", _sacct(""), 1),
    "sacct-names-last": lambda: Log("slurm-sacct", _sacct(RECIPE), 1),
    "sacct-xdmod": lambda: Log("slurm-sacct", _sacct(XDMOD_LIKE), 1),
    "sacct-one-id": lambda: Log("slurm-sacct", _sacct(NO_PAIR), 1),
    "sacct-lab": lambda: Log("slurm-sacct", (FIXTURES / "slurm/other/sacct_XD_P_delim.txt").read_bytes(), 1),
    "jobcomp": lambda: Log("slurm-jobcomp", (FIXTURES / "slurm/other/jobcomp.log").read_bytes()),
    "yarn-rm": lambda: Log(
        "yarn-rm-log", _zipped(FIXTURES / "yarn/3.5.0/hadoop-lab-resourcemanager-rm01.log.gz", 1500), 20, events=True
    ),
    "yarn-nm": lambda: Log(
        "yarn-nm-log", _zipped(FIXTURES / "yarn/3.5.0/hadoop-lab-nodemanager-node01.log.gz", 600), 20, events=True
    ),
    "yarn-rm-console": lambda: Log(
        "yarn-rm-log",
        _console(_zipped(FIXTURES / "yarn/3.5.0/hadoop-lab-resourcemanager-rm01.log.gz", 1500)),
        20,
        events=True,
    ),
    "yarn-nm-console": lambda: Log(
        "yarn-nm-log",
        _console(_zipped(FIXTURES / "yarn/3.5.0/hadoop-lab-nodemanager-node01.log.gz", 600)),
        20,
        events=True,
    ),
    "profile-jobs": lambda: Log("profile-jobs", (SAMPLES / "pickyman/jobs.csv").read_bytes(), 1, lines=True),
    "suspensions": lambda: Log("suspensions", (SAMPLES / "pickyman/suspensions.csv").read_bytes(), 1, lines=True),
    "philly": lambda: Log("philly-jobs", (SAMPLES / "philly/cluster_job_log").read_bytes()[:60_000], lines=True),
    "dbd": lambda: Log(
        "slurm-dbd",
        (FIXTURES / "slurm/other/slurmdbd.sql").read_bytes(),
        only=b"INSERT INTO `lab_job_table`",
        lines=True,
    ),
}


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, new_store(Path(folder)) as opened:
        yield opened


@contextmanager
def forgetting(store: Store) -> Iterator[None]:
    """The store is empty again at the end."""
    store.execute("BEGIN")
    try:
        yield
    finally:
        store.execute("ROLLBACK")


def damaged(log: Log, seed: int) -> bytes:
    """The file with one line torn, run together with the next one, or with bytes put in."""
    draw = random.Random(seed)
    lines = log.data.splitlines(keepends=True)
    at = draw.choice([i for i in range(log.first, len(lines) - 1) if lines[i].startswith(log.only)])
    line = lines[at]
    cut = draw.randrange(1, max(2, len(line) - 1))
    lines[at] = (
        lambda: line.rstrip(b"\r\n"),
        lambda: line[:cut],
        lambda: line[:cut] + b"\n",
        lambda: draw.choice([b"xx", b"\0\0\0", b"\xff", b"|", b" ", b"x=1 "]) + line,
        lambda: line[:cut] + b"\n" + line[cut:],
        lambda: line[cut:],
    )[seed % 6]()
    return b"".join(lines)


def told(store: Store, log: Log) -> Facts:
    """What the store tells of each job: all there is of it, or of each of its attempts, or what logs say once."""
    found: Facts = {row["job"]: [] for row in rows(store, "jobs")}
    for row in rows(store, "jobs"):
        found[row["job"]].append({key: row[key] for key in ONCE})
    for row in [] if log.events else rows(store, "attempts"):
        found[row["job"]].append({key: value for key, value in row.items() if key not in {"attempt", "quirks"}})
    return found


@pytest.mark.parametrize("name", LOGS)
def test_no_job_has_values_of_another_and_none_is_lost(store: Store, name: str) -> None:
    log = LOGS[name]()
    fmt = next(one for one in all_formats() if one.name == log.name)
    with forgetting(store):
        rows_in = load(fmt, log.data, store).rows_in
        whole = told(store, log)
    for seed in (*FOUND.get(name, ()), *SEEDS):
        with forgetting(store):
            _try(store, fmt, log, seed, whole, rows_in)


def _try(store: Store, fmt: Format, log: Log, seed: int, whole: Facts, rows_in: int) -> None:
    try:
        sink = load(fmt, damaged(log, seed), store)
    except InputError:
        return
    assert sink.rows_in == sink.rows_loaded + sink.rows_rejected
    found = told(store, log)
    lost = set(whole) - set(found)
    if log.lines:
        assert sink.rows_rejected or not lost, (seed, lost)
    elif not log.events:
        assert sink.rows_in + mended(store) >= rows_in, seed
        assert len(lost) <= sink.rows_rejected + mended(store), (seed, lost, sink.rejects)
    for job, facts in found.items():
        for fact in facts:
            same = (_part_of(fact, one, may_lack=log.events) for one in whole.get(job, []))
            assert any(same), (seed, job, fact, whole.get(job))


def mended(store: Store) -> int:
    """How many jobs the store says were put together of lines."""
    return int(store.value("SELECT count(*) FROM jobs WHERE list_contains(quirks, 'mended')"))


def _cut(value: object, whole: object) -> bool:
    """Whether a text has lost its end, or what its end told: the last field of a line."""
    return isinstance(whole, str) and (value is None or (isinstance(value, str) and whole.startswith(value)))


def _part_of(fact: dict[str, object], whole: dict[str, object], *, may_lack: bool) -> bool:
    return fact.keys() == whole.keys() and all(
        value == whole[key] or (may_lack and value is None) or _cut(value, whole[key]) for key, value in fact.items()
    )
