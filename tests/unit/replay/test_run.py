"""Several policies at once: the same results however many processes, kept after a Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay import run as runs
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.run import TOO_LARGE, ReplayInterrupted, replay

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

SLOW = """
import time
from gpuctl.replay.contract.python_policy import PythonPolicy


class Slow(PythonPolicy):
    always = True

    def decide(self, view):
        time.sleep(0.2)
        for job in view.waiting:
            view.start(job)


class Broken(PythonPolicy):
    def decide(self, view):
        raise ZeroDivisionError("by me")


class Gone(PythonPolicy):
    def decide(self, view):
        import os
        os._exit(7)
"""


@pytest.fixture(scope="module")
def workload(sample_data: Path) -> Workload:
    return read_jobs(sample_data / "jobs.csv")


@pytest.fixture
def cluster(workload: Workload) -> Cluster:
    return parse_cluster("4x8", workload)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(SLOW)
    return f"{tmp_path / 'mine.py'}:"


POLICIES: list[tuple[str, dict[str, str]]] = [
    ("fifo", {}), ("srtf", {}), ("tiresias", {"limits": "600,7200"}), ("random", {}), ("las", {"quantum": "60"}),
]  # fmt: skip


def same(one: Outcome, other: Outcome) -> None:
    assert (one.policy, one.params, one.settings, one.end_s) == (
        other.policy,
        other.params,
        other.settings,
        other.end_s,
    )
    for name in ("jobs", "attempts", "pieces", "decisions"):
        assert getattr(one, name).equals(getattr(other, name)), name


def test_results_do_not_depend_on_the_number_of_processes(workload: Workload, cluster: Cluster) -> None:
    # more than processes; the others differ from these in nothing that a process is told
    some = POLICIES[1:4]
    alone = replay(workload, cluster, some, seed=7, overhead="const", processes=1)
    apart = replay(workload, cluster, some, seed=7, overhead="const", processes=2)
    assert [o.policy for o in apart] == [name for name, _ in some]
    for one, other in zip(alone, apart, strict=True):
        same(one, other)


def test_progress_counts_up_to_all_jobs_of_all_policies(workload: Workload, cluster: Cluster) -> None:
    for processes in (1, 2):
        seen: list[tuple[int, ...]] = []
        lines: list[str] = []
        replay(
            workload, cluster, POLICIES[:2], processes=processes,
            progress=lambda ended, _size, _seconds, seen=seen: seen.append(tuple(ended)), notify=lines.append,
        )  # fmt: skip
        assert seen[-1] == (workload.size, workload.size)
        assert all(sum(a) <= sum(b) for a, b in pairwise(seen))
        assert {line.partition(":")[0] for line in lines} >= {"fifo", "srtf"}


@pytest.mark.parametrize(
    ("names", "models", "error"),
    [
        ([("fifi", {})], {}, "there is no policy 'fifi'"),
        ([("fifo", {}), ("las", {"quantum": "soon"})], {}, "las: quantum=soon"),
        ([("fifo", {})], {"overhead": "free"}, "unknown overhead model"),
        ([("fifo", {})], {"rates": "fast"}, "unknown speed model"),
        ([("fifo", {}), ("recorded", {})], {}, "has no recorded starts"),
    ],
)
def test_errors_are_found_before_anything_runs(
    workload: Workload,
    cluster: Cluster,
    names: Any,
    models: dict[str, str],
    error: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs.Simulation, "run", lambda *_: pytest.fail("it ran"))
    with pytest.raises(UsageError, match=error):
        replay(workload, cluster, names, **models)  # type: ignore[arg-type]


def test_jobs_that_cannot_be_placed_are_named_or_left_out(workload: Workload) -> None:
    small = parse_cluster("1x8", workload)
    large = np.flatnonzero(workload.gpus > 8)
    assert large.size
    with pytest.raises(InputError, match=workload.ids[large[0]]):
        replay(workload, small, POLICIES[:1])
    for outcome in replay(workload, small, POLICIES[:2], skip_unplaceable=True):
        assert outcome.jobs["job"].to_list() == list(workload.ids)
        left = outcome.jobs.with_row_index().filter(outcome.jobs["state"] == "unplaceable")
        assert left["index"].to_list() == large.tolist()
        assert left["start_s"].null_count() == left["end_s"].null_count() == large.size
        assert left["attempts"].sum() == 0
        rest = outcome.jobs.filter(outcome.jobs["state"] != "unplaceable")
        assert set(rest["state"]) == {"finished"}
        # rows of attempts still belong to their jobs
        starts = outcome.attempts.filter(outcome.attempts["attempt"] == 0)
        assert dict(starts.select("job", "start_s").iter_rows()) == dict(
            outcome.jobs.with_row_index()
            .filter(outcome.jobs["start_s"].is_not_null())
            .select("index", "start_s")
            .iter_rows()
        )
        log = outcome.decisions
        assert log["t_s"].is_sorted()
        assert set(log.filter(log["reason"] == TOO_LARGE)["job"]) == {workload.ids[k] for k in large}
        assert str(large.size) in outcome.notes[-1]


def test_no_job_that_fits_is_an_error(workload: Workload) -> None:
    from gpuctl.replay.inputs.transforms import take

    sixteen = take(workload, np.flatnonzero(workload.gpus == 16))
    with pytest.raises(InputError, match="no job fits"):
        replay(sixteen, parse_cluster("1x8", sixteen), POLICIES[:1], skip_unplaceable=True)


# Ctrl-C while Numba reads a file: Python closes it later, and warns
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_keeps_what_is_done(workload: Workload, cluster: Cluster, slow: str, processes: int) -> None:
    done = threading.Event()
    before = set(_children())  # of tests that ran here earlier: a browser's driver, for one
    children: list[int] = []

    def interrupt() -> None:
        assert done.wait(60)
        children.extend(_children())
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(ReplayInterrupted) as stop:
        replay(
            workload, cluster, [(f"{slow}Slow", {}), ("fifo", {}), ("las", {})][:: 1 if processes > 1 else -1],
            processes=processes, notify=lambda text: done.set() if "replayed" in text else None,
        )  # fmt: skip
    other.join()
    kept = [o.policy for o in stop.value.outcomes]
    assert kept
    assert set(kept) <= {"fifo", "las"}
    assert f"{slow}Slow" in stop.value.missing
    assert len(kept) + len(stop.value.missing) == 3
    [alone] = replay(workload, cluster, [(kept[0], {})])
    same(stop.value.outcomes[0], alone)
    assert not (set(children) - before) & set(_children())


def _children() -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" ", 1)
            ours = int(rest.rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"resource_tracker" not in stat.with_name("cmdline").read_bytes():
                found.append(int(pid))
        except OSError:  # it ended meanwhile
            continue
    return found


def test_errors_of_a_process_come_here(workload: Workload, cluster: Cluster, slow: str) -> None:
    with pytest.raises(InputError, match=r"mine\.py:\d+: Broken failed at second .*: ZeroDivisionError: by me"):
        replay(workload, cluster, [("fifo", {}), (f"{slow}Broken", {})], processes=2)
    with pytest.raises(InputError, match=r"ended unexpectedly \(exit 7"):
        replay(workload, cluster, [("fifo", {}), (f"{slow}Gone", {})], processes=2)


def test_compiling_is_announced_once(workload: Workload, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    replay(workload, cluster, POLICIES[:1])
    replay(workload, cluster, POLICIES[:1], notify=lines.append)
    assert not any("compiling" in line for line in lines)
    monkeypatch.setattr(runs, "is_compiled", lambda _function: False)
    monkeypatch.setattr(runs, "_interpreted", lambda _kind, _jobs: False)
    replay(workload, cluster, POLICIES[:2], notify=lines.append)
    assert sum("compiling" in line for line in lines) == 1


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_policy_has_its_compiled_entry(name: str) -> None:
    """Else its compilation is not announced, and each process does it."""
    [entry] = runs.entries(find(name))
    orders = {"fifo", "fifo-skip", "sjf", "srtf", "srsf", "las", "fair", "random", "tiresias", "yarn-cs", "edf"}
    assert (entry.__module__ == "gpuctl.replay.order.list_kernel") == (name in orders)


@pytest.mark.parametrize("exit_", ["SystemExit: 0", "GeneratorExit: 0", "BaseException: 0"])
@pytest.mark.parametrize("method", ["__init__(self, params)", "begin(self)", "rank(self, jobs)"])
def test_a_policy_that_exits_is_named_and_does_not_end_the_program(
    workload: Workload, cluster: Cluster, tmp_path: Path, method: str, exit_: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from gpuctl.replay.contract.python_policy import RankPolicy\n\n\nclass Leaving(RankPolicy):\n"
        f'    """x."""\n    name = "leaving"\n    title = "t"\n\n    def {method}:\n        raise {exit_[:-3]}(0)\n'
        + ("" if method.startswith("rank") else "\n    def rank(self, jobs):\n        return jobs.gpus\n"),
        "utf-8",
    )
    for processes in (1, 2):
        with pytest.raises(InputError, match=rf"mine\.py:\d+: leaving failed in \w+\(\): {exit_}"):
            replay(workload, cluster, [("fifo", {}), (f"{path}:Leaving", {})], processes=processes)
