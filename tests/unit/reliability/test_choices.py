"""What the user chooses: the window of evidence, runs, sizes; and when observation begins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.reliability import survival
from gpuctl.reliability.choices import Choices, parse
from tests.reliability_cluster import DAY, attempt, cluster

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600.0


def options(**more: str) -> Choices:
    return parse(**({"window": None, "checkpoint": None, "sizes": None, "run_key": None} | more), runs={})


def test_options_are_read() -> None:
    found = options(window="10m:5m", checkpoint="30m", sizes="4096,1024", run_key="name=(.*)-v")
    assert (found.window, found.checkpoint_s, found.sizes) == ((600, 300), 1800, (1024, 4096))
    assert found.run_key is not None
    assert found.run_key.pattern == "(.*)-v"


@pytest.mark.parametrize(
    "given",
    [{"window": "10m"}, {"window": "10:5"}, {"checkpoint": "x"}, {"sizes": "1,,2"}, {"run_key": "user=a"},
     {"run_key": "name=("}],
)  # fmt: skip
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        options(**given)


def test_a_shorter_window_misses_what_a_watchdog_waited_for() -> None:
    ended = [attempt(0, DAY, "failed", reason="collective_timeout"), attempt(1, 2 * DAY, "completed")]
    events = [("n0", DAY - 605, DAY + HOUR, "DRAIN", "IB link down")]
    assert cluster(ended, events).attempts["cause"][0] == "infrastructure_hardware"
    assert cluster(ended, events, choices=options(window="10m:5m")).attempts["cause"][0] == "unknown"


def chain(*names: str, pause: float = HOUR, user: str = "u") -> list[dict[str, object]]:
    """Jobs of a day each, one after the other; all but the last fail."""
    rows = []
    for i, name in enumerate(names):
        start = i * (DAY + pause)
        more = {"name": name, "user": user, "queued_s": start, "eligible_s": start, "start_s": start}
        rows.append(attempt(i, start + DAY, "completed" if i + 1 == len(names) else "failed", **more))
    return rows


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        (("train-1", "train-2", "train-3"), 1),
        (("train-1", "train-3"), 2),  # does not count up
        (("train-1", "train-1", "train-2"), 2),  # a name that repeats is the run's own
        (("train-9", "train-10"), 1),
        (("a", "b"), 2),
    ],
)
def test_names_that_count_up_are_a_run(names: tuple[str, ...], runs: int) -> None:
    assert cluster(chain(*names)).attempts["run"].n_unique() == runs


def test_the_user_names_runs() -> None:
    jobs = chain("exp-a", "exp-b", "other")
    by_name = cluster(jobs, choices=Choices(run_key=re.compile("^(exp)-")))
    assert by_name.attempts["run"].n_unique() == 2
    assert by_name.attempts["link"].to_list() == ["user", "user", "single"]
    listed = cluster(jobs, choices=Choices(runs={"0": "x", "2": "x"}))
    assert listed.attempts["run"].n_unique() == 2
    assert listed.attempts["before"].to_list() == [None, None, 0]


def test_jobs_of_a_named_run_that_overlap_are_several_runs() -> None:
    jobs = [attempt(i, DAY, "failed") for i in range(2)]
    assert cluster(jobs, choices=Choices(runs={"0": "x", "1": "x"})).attempts["run"].n_unique() == 2


def test_sizes_are_projected() -> None:
    known = cluster([attempt(0, DAY, "node_fail"), attempt(1, 3 * DAY, "completed")], choices=options(sizes="1000"))
    rows = survival.table(known, known.choices.sizes)
    assert rows.filter(rows["gpus"] == 1000)["kind"].to_list() == ["extrapolated"]


@pytest.mark.parametrize(
    ("registered", "begin"),
    [(-2 * HOUR, -2 * HOUR), (-40 * DAY, 0.0), (None, 0.0)],
)
def test_observation_begins_with_the_log_of_the_cluster(registered: float | None, begin: float) -> None:
    """An idle cluster is observed; one that registered long ago has accounting that was cut."""
    known = cluster([attempt(0, DAY, "completed")], registered=registered)
    assert (known.begin, known.until) == (begin, DAY - begin)


def test_an_event_before_the_first_job_begins_the_observation() -> None:
    assert cluster([attempt(0, DAY, "completed")], [("n3", -HOUR, HOUR, "DRAIN", "ECC")]).begin == -HOUR


def test_a_node_is_at_risk_from_its_installation() -> None:
    known = cluster([attempt(0, 4 * DAY, "completed")], installed_s={"n1": DAY})
    assert known.at_risk_s(0, 2 * DAY)[:3].tolist() == [2 * DAY, DAY, 2 * DAY]
    assert known.up_days[:2].tolist() == [4, 3]


def test_a_list_of_runs(tmp_path: Path) -> None:
    from gpuctl.analyze.site_files import read_runs

    path = tmp_path / "runs.csv"
    path.write_text("job,run\n1,a\n2_3,a\n")
    assert read_runs(path) == {"1": "a", "2_3": "a"}
    path.write_text("job,run\n1,a\n1,b\n")
    with pytest.raises(InputError, match="second run"):
        read_runs(path)


def test_nodes_of_yarn() -> None:
    """Decommissioned nodes are planned; nodes of a rack that are lost together are one fault."""
    events = [
        ("n7", DAY, 2 * DAY, "DECOMMISSIONED", None),
        ("n6", DAY, DAY + HOUR, "UNHEALTHY", "1/1 local-dirs are bad"),
    ]
    events += [(f"n{i}", 3 * DAY + i, 4 * DAY, "LOST", None) for i in range(3)]
    down = cluster([attempt(0, 9 * DAY, "completed")], events).outages
    assert down.select("node", "planned", "component").rows()[3:] == [(6, False, "disk"), (7, True, None)]
    assert down["rack_fault"].drop_nulls().n_unique() == 1
