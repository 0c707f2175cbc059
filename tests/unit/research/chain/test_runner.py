"""A chain on a made-up Slurm: killed at every point, with a slow controller, and with jobs that fail."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.research.chain import journal as log
from gpuctl.research.chain.chain_file import ChainSpec, read_chain_file
from gpuctl.research.chain.journal import Journal, read
from gpuctl.research.chain.queue_now import QueuedJob
from gpuctl.research.chain.runner import Runner
from gpuctl.research.chain.slurm_calls import Ended, RefusedError, Slurm, UnsureError, check_environment
from gpuctl.research.chain.submission_rule import submission_rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIMIT_S, RUN_S, WAIT_S = 3600, 3000, 600


class Killed(BaseException):
    """kill -9."""


@dataclass
class MadeUp:
    """A Slurm in which each job waits for ten minutes, depends as it is told, and runs for fifty."""

    now: float = 1_000_000.0
    kill_at: int = -1
    points: int = 0
    late_s: float = 0.0
    unsure: bool = False
    kept_s: float = 300.0
    fails: frozenset[int] = frozenset()
    flags: frozenset[str] = frozenset()
    accounts: bool = True
    jobs: list[dict[str, Any]] = field(default_factory=list)

    def point(self) -> None:
        """Where a kill may come."""
        self.points += 1
        if self.points == self.kill_at:
            raise Killed

    def _span(self, job: dict[str, Any]) -> tuple[float, float]:
        ready = job["at"]
        if job["after"]:
            ready = self._span(next(j for j in self.jobs if j["id"] == job["after"]))[1] - WAIT_S
        return ready + WAIT_S, ready + WAIT_S + RUN_S

    def _state(self, job: dict[str, Any]) -> str:
        start, end = self._span(job)
        if job["cancelled"]:
            return "CANCELLED"
        ended = "FAILED" if int(job["id"]) in self.fails else "COMPLETED"
        return "PENDING" if self.now < start else "RUNNING" if self.now < end else ended

    def _seen(self) -> list[dict[str, Any]]:
        return [job for job in self.jobs if self.now >= job["at"]]

    def queue(self) -> list[QueuedJob]:
        self.point()
        found = []
        for job in self._seen():
            start, end = self._span(job)
            state = self._state(job)
            if self.now < end + self.kept_s and not (job["cancelled"] and self.now > job["at"] + self.kept_s):
                found.append(
                    QueuedJob(
                        job["id"], job["name"], "me", "main", job["name"], frozenset({state}), "", 1, LIMIT_S,
                        int(job["at"]), None if state == "PENDING" else int(start),
                        int(end) if state not in {"PENDING", "RUNNING"} else None, None,
                    )
                )  # fmt: skip
        return found

    def accounting(self, *, job: str = "", name: str = "", since_s: float = 0) -> list[Ended]:
        self.point()
        if not self.accounts:
            raise InputError("sacct: Slurm accounting storage is disabled")
        return [
            Ended(each["id"], each["name"], self._state(each), None, None)
            for each in self._seen()
            if each["id"] == job or each["name"] == name
        ]

    def priority_flags(self) -> frozenset[str]:
        return self.flags

    def cancel(self, job: str) -> None:
        self.point()
        next(each for each in self.jobs if each["id"] == job)["cancelled"] = True
        self.point()

    def submit(self, options: Sequence[str], script: Path, lock: int) -> str:
        self.point()
        given = dict(option.lstrip("-").split("=", 1) for option in options)
        after = given.get("dependency", ":").split(":")[1]
        self.jobs.append(
            {"id": str(len(self.jobs) + 7), "name": given["job-name"], "at": self.now + self.late_s, "after": after,
             "cancelled": False}
        )  # fmt: skip
        self.point()
        if self.unsure:
            raise UnsureError("sbatch: Socket timed out on send/recv operation")
        return str(self.jobs[-1]["id"])


class Killable(Journal):
    """A journal of a process that may be killed before, in the middle of, and after each line."""

    def __init__(self, path: Path, slurm: MadeUp) -> None:
        self.slurm = slurm
        super().__init__(path, "svc")

    def write(self, event: str, **more: Any) -> None:
        self.slurm.point()
        whole = self.path.read_bytes()
        super().write(event, **{"at_s": self.slurm.now, **more})
        try:
            self.slurm.point()
        except Killed:
            line = self.path.read_bytes()[len(whole) :]
            self.path.write_bytes(whole + line[: len(line) // 2])
            raise
        self.slurm.point()


def chain_of(tmp_path: Path, jobs: int = 3, lead_s: int = 900, *, go_on: bool = False) -> ChainSpec:
    return ChainSpec("svc", tmp_path / "job.sh", (), jobs, 1.0, lead_s, None, go_on)


def drive(slurm: MadeUp, asked: ChainSpec, path: Path, looks: int = 2000) -> bool:
    """Run until the chain is over or this is killed."""
    with Killable(path, slurm) as kept:
        runner = Runner(asked, slurm, kept, submission_rule(asked, None, slurm), lambda: slurm.now)  # type: ignore[arg-type]
        for _ in range(looks):
            try:
                if runner.step():
                    return True
            except InputError:
                pass
            slurm.now += 20
    return False


def names(slurm: MadeUp) -> Counter[str]:
    return Counter(job["name"] for job in slurm.jobs)


def test_killed_at_every_point_no_job_is_submitted_twice(tmp_path: Path) -> None:
    """Each look at Slurm, each submission and each line of the journal, before, after and in its middle."""
    undisturbed = MadeUp()
    assert drive(undisturbed, chain_of(tmp_path), tmp_path / "j")
    assert list(names(undisturbed).values()) == [1, 1, 1]
    # S goes 15 minutes before the end that P's limit sets, and starts 10 minutes after that: within P
    starts = [undisturbed._span(job)[0] for job in undisturbed.jobs]
    assert [b - a for a, b in pairwise(starts)] == pytest.approx([3300, 3300], abs=60)
    around_submissions = 60
    for at in [*range(1, around_submissions), *range(around_submissions, undisturbed.points, 17)]:
        slurm = MadeUp(kill_at=at)
        path = tmp_path / f"j{at}"
        with pytest.raises(Killed):
            drive(slurm, chain_of(tmp_path), path)
        slurm.now += 5
        assert drive(slurm, chain_of(tmp_path), path), at
        assert sorted(names(slurm).values()) == [1, 1, 1], at
        assert read(path).events[-1]["event"] == log.DONE
        assert sorted(read(path).jobs) == [1, 2, 3]


@pytest.mark.parametrize("accounts", [True, False])
def test_a_submission_that_slurm_takes_late_is_waited_for(tmp_path: Path, accounts: bool) -> None:
    slurm = MadeUp(unsure=True, late_s=45, accounts=accounts, kept_s=7200)
    assert drive(slurm, chain_of(tmp_path), tmp_path / "j")
    assert list(names(slurm).values()) == [1, 1, 1]
    assert all(event.get("found") for event in read(tmp_path / "j").events if event["event"] == log.SUBMITTED)


def test_of_two_jobs_of_one_name_the_later_is_cancelled(tmp_path: Path) -> None:
    """Slurm acts on a request only after the time that gpuctl waits for it."""
    slurm = MadeUp(unsure=True, late_s=400, kept_s=7200)
    assert drive(slurm, chain_of(tmp_path, jobs=2), tmp_path / "j")
    assert max(names(slurm).values()) > 1
    alive = Counter(job["name"] for job in slurm.jobs if not job["cancelled"])
    assert list(alive.values()) == [1, 1]


def test_without_sacct_nothing_is_submitted_again(tmp_path: Path) -> None:
    slurm = MadeUp(unsure=True, late_s=400, kept_s=7200, accounts=False)
    assert drive(slurm, chain_of(tmp_path, jobs=2), tmp_path / "j")
    assert list(names(slurm).values()) == [1, 1]


def test_a_line_that_finds_no_room_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    slurm = MadeUp()
    with Journal(tmp_path / "j", "svc") as kept:
        runner = Runner(chain_of(tmp_path), slurm, kept, submission_rule(chain_of(tmp_path), None, slurm), lambda: 0.0)  # type: ignore[arg-type]
        monkeypatch.setattr(os, "write", lambda file, data: whole(file, data[:9]))
        with pytest.raises(OSError, match="No space left"):
            runner.step()
        monkeypatch.undo()
        assert not slurm.jobs
        runner.step()
    assert [event["event"] for event in read(tmp_path / "j").events] == [log.BEGUN, log.SUBMITTING, log.SUBMITTED]


def test_with_accrue_always_the_successor_depends_and_is_there_at_once(tmp_path: Path) -> None:
    slurm = MadeUp(flags=frozenset({"ACCRUE_ALWAYS"}))
    assert drive(slurm, chain_of(tmp_path), tmp_path / "j")
    assert [job["after"] for job in slurm.jobs] == ["", "7", "8"]
    spans = [slurm._span(job) for job in slurm.jobs]
    assert [b[0] - a[1] for a, b in pairwise(spans)] == [0, 0]
    assert "ACCRUE_ALWAYS" in next(e for e in read(tmp_path / "j").events if e.get("number") == 2)["why"]


@pytest.mark.parametrize("go_on", [False, True])
def test_a_job_that_fails_stops_the_chain_or_not(tmp_path: Path, go_on: bool) -> None:
    slurm = MadeUp(fails=frozenset({7}), flags=frozenset({"ACCRUE_ALWAYS"}))
    assert drive(slurm, chain_of(tmp_path, go_on=go_on), tmp_path / "j")
    told = read(tmp_path / "j")
    assert told.ended[1] == "FAILED"
    assert told.events[-1]["event"] == (log.DONE if go_on else log.STOPPED)
    assert len(slurm.jobs) == (3 if go_on else 2)
    assert [job["cancelled"] for job in slurm.jobs][1:2] == [not go_on]


def test_a_chain_stops_although_a_cancel_fails(tmp_path: Path) -> None:
    class Deaf(MadeUp):
        deaf = True

        def cancel(self, job: str) -> None:
            if self.deaf:
                self.deaf = False
                raise InputError("scancel: Socket timed out")
            super().cancel(job)

    slurm = Deaf(fails=frozenset({7}), flags=frozenset({"ACCRUE_ALWAYS"}))
    assert drive(slurm, chain_of(tmp_path), tmp_path / "j")
    assert not slurm.deaf
    assert [job["cancelled"] for job in slurm.jobs] == [False, True]
    assert read(tmp_path / "j").events[-1]["event"] == log.STOPPED


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """A double job, a job that has failed, one that waits for it, and a submission of which nothing is known."""
    asked, path = chain_of(tmp_path), tmp_path / "j"
    slurm = MadeUp(fails=frozenset({7}), flags=frozenset({"ACCRUE_ALWAYS"}))
    assert not drive(slurm, asked, path, 32 + 2)
    slurm.jobs.append({**slurm.jobs[1], "id": "99"})
    slurm.now += RUN_S
    for open_, told in (
        (False, ["job 99 is job 2 a second time", "ended number=1", "job 2 (8) is cancelled", "stopped why"]),
        (True, ["submitted number=2"]),
    ):
        with Killable(path, slurm) as kept:
            if open_:
                kept.write(log.SUBMITTING, number=2, name=slurm.jobs[1]["name"], after=None)
            before, jobs, said = path.read_bytes(), [dict(job) for job in slurm.jobs], list[str]()
            runner = Runner(asked, slurm, kept, submission_rule(asked, None, slurm), lambda: 0.0, 60, True, said.append)  # type: ignore[arg-type]
            runner.step()
            assert (path.read_bytes(), slurm.jobs) == (before, jobs)
            assert all(text in line for text, line in zip(told, said, strict=True)), said


def test_a_dry_run_of_a_new_chain_creates_no_journal(tmp_path: Path) -> None:
    asked, slurm, said = chain_of(tmp_path), MadeUp(), list[str]()
    with Journal(tmp_path / "j", "svc", dry=True) as kept:
        assert not Runner(
            asked, slurm, kept, submission_rule(asked, None, slurm), lambda: 0.0, 60, True, said.append
        ).step()  # type: ignore[arg-type]
    assert said == ["job 1 would be submitted: the first job of the chain"]
    assert not (tmp_path / "j").exists()
    with Journal(tmp_path / "j", "svc") as begun, Journal(tmp_path / "j", "svc", dry=True) as kept:
        # a chain that is being driven can be looked at, too
        assert kept.state == begun.state
    with pytest.raises(UsageError, match="'svc', not 'other'"):
        Journal(tmp_path / "j", "other", dry=True)


def test_slurm_is_requested_the_whole_queue_and_whole_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text('#!/bin/sh\n[ "$SLURM_BITSTR_LEN" = 0 ] && [ "$LC_ALL" = C.UTF-8 ] && echo \'{"jobs": []}\'\n')
    squeue.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_BITSTR_LEN", "64")
    assert Slurm().queue() == []
    for name in ("SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SLURM_CLUSTERS", "SBATCH_WAIT", "SQUEUE_USERS"):
        with pytest.raises(UsageError, match=f"{name} is set in the environment"):
            check_environment({"PATH": "", name: "1-3"})
    check_environment({"SBATCH_ACCOUNT": "a", "SQUEUE_FORMAT": "%i"})


def test_absence_is_no_end_and_without_accounting_the_end_is_not_known(tmp_path: Path) -> None:
    slurm = MadeUp(kept_s=-RUN_S, accounts=False)
    asked = chain_of(tmp_path, jobs=2, lead_s=0)
    assert not drive(slurm, asked, tmp_path / "j", 400)
    assert len(slurm.jobs) == 1
    slurm.accounts = True
    assert drive(slurm, asked, tmp_path / "j", 400)
    assert len(slurm.jobs) == 2


def test_what_slurm_refuses_ends_the_chain(tmp_path: Path) -> None:
    class Strict(MadeUp):
        def submit(self, options: Sequence[str], script: Path, lock: int) -> str:
            raise RefusedError("sbatch: exit 1: Invalid partition name specified")

    with Killable(tmp_path / "j", slurm := Strict()) as kept:
        runner = Runner(chain_of(tmp_path), slurm, kept, submission_rule(chain_of(tmp_path), None, slurm), lambda: 0.0)  # type: ignore[arg-type]
        with pytest.raises(RefusedError, match="Invalid partition"):
            runner.step()
        assert runner.step()
    assert read(tmp_path / "j").events[-1]["event"] == log.STOPPED


def test_a_journal_is_of_one_chain_and_one_process(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, "svc"), pytest.raises(UsageError, match="holds this journal"):
        Journal(path, "svc", wait_s=0)
    with pytest.raises(UsageError, match="'svc', not 'other'"):
        Journal(path, "other")
    path.write_text('{"event":"begun"}\nhello\n')
    with pytest.raises(InputError, match="line of a journal"):
        read(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("jobs = 0", "jobs"), ('name = "a b"', "name"), ('options = ["-J x"]', "set by gpuctl"),
        ('options = ["--dependency=afterok:1"]', "set by gpuctl"), ('options = ["rm"]', "options"),
        ('options = ["--arr=1-3"]', "no chain"), ('options = ["-kMfar"]', "no chain"),
        ('script = "array.sh"', "#SBATCH -a"),
        ("nodez = 3", "nodez"), ('on_failure = "no"', "on_failure"), ('script = "gone.sh"', "script"), ("x", "TOML"),
    ],
)  # fmt: skip
def test_a_file_that_says_no_chain_is_refused(tmp_path: Path, change: str, told: str) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "array.sh").write_text("#!/bin/sh\n# all\n\n#SBATCH -N1 -a 1-3 # three\nsleep 1\n")
    good = {"name": 'name = "svc"', "script": 'script = "job.sh"', "jobs": "jobs = 5"}
    path = tmp_path / "chain.toml"
    path.write_text("\n".join(good.values()))
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH --wait-all-nodes=1 --account=a\ntrue\n#SBATCH -a 1\n")
    assert read_chain_file(path).jobs == 5
    path.write_text("\n".join({**good, change.split(" ", maxsplit=1)[0]: change}.values()))
    with pytest.raises(InputError, match=told):
        read_chain_file(path)


@pytest.mark.parametrize(
    ("event", "key"),
    [
        ({"event": log.SUBMITTED, "number": 1, "job": "12_a"}, "job"), ({"event": log.ENDED, "number": 1}, "job"),
        ({"event": log.SUBMITTED, "number": 1, "job": 12}, "job"), ({"event": log.SUBMITTING}, "number"),
        ({"event": log.SUBMITTING, "number": True}, "number"), ({"event": log.SUBMITTING, "number": 10**400}, "number"),
        ({"event": log.NOTED, "at_s": 1e308}, "at_s"), ({"event": log.NOTED, "at_s": None}, "at_s"),
        ({"event": log.NOTED, "at_s": 10**400}, "at_s"),
    ],
)  # fmt: skip
def test_a_journal_with_a_value_that_none_has_is_refused(tmp_path: Path, event: dict[str, Any], key: str) -> None:
    path = tmp_path / "j"
    begun = {"event": log.BEGUN, "at_s": 1.0, "name": "svc", "chain": "c"}
    path.write_text("".join(json.dumps({"at_s": 2.0} | each) + "\n" for each in (begun, event)))
    with pytest.raises(InputError, match=rf"j:2: {key}: found"):
        read(path)


def test_an_id_of_the_accounting_that_is_no_number_is_an_error_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "12+1|svc.1.c|COMPLETED|100|200|0:0\n"
    monkeypatch.setattr("gpuctl.research.chain.slurm_calls.output", lambda *_args, **_options: line.encode())
    with pytest.raises(InputError, match=r"job id '12\+1', expected a number"):
        Slurm().accounting(name="svc.1.c")
