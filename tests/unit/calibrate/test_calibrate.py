"""Rules that are looked for where they are known: they are found, or it is said that they are not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.calibrate.hints import hints
from gpuctl.calibrate.run import calibrate, distance
from gpuctl.calibrate.search import Search
from gpuctl.calibrate.spaces import Choice
from gpuctl.calibrate.tables import FOUND_PCT, result, verdict, waited_pct
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs import transforms
from gpuctl.replay.inputs.calibration import Calibration, read_calibration
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay
from tests.unit.replay.policies.yarn import recorded as lab

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Workload


@pytest.fixture(scope="module")
def cluster(workload: Workload) -> Cluster:
    return parse_cluster("4x8", workload)


@pytest.fixture(scope="module")
def workload(sample_data: Path) -> Workload:
    return transforms.bootstrap(read_jobs(sample_data / "jobs.csv"), 600, 3)


def as_recorded(workload: Workload, cluster: Cluster, policy: str, **params: str) -> Workload:
    """The jobs as a trace of a cluster with these rules has them, in whole seconds."""
    [outcome] = replay(workload, cluster, [(policy, params)], processes=1)
    return dataclasses.replace(workload, recorded_start=np.round(outcome.jobs["start_s"].to_numpy()))


@pytest.mark.parametrize(
    ("policy", "params"),
    [("fair", {"by": "user"}), ("tiresias", {"promote": "2"}), ("fifo-skip", {})],
)
def test_rules_that_are_known_are_found(
    workload: Workload, cluster: Cluster, policy: str, params: dict[str, str]
) -> None:
    fit = calibrate(as_recorded(workload, cluster, policy, **params), cluster, policy, trials=120)
    assert waited_pct(fit)[1] == 100
    assert "rules are found" in verdict(fit)
    assert fit.calibration.policy == policy
    # another value may do as well on this trace; where it does not, it is the true one
    again = calibrate(as_recorded(workload, cluster, policy, **fit.calibration.params), cluster, policy, trials=120)
    assert again.calibration.params == fit.calibration.params


def test_weights_whose_factor_is_the_same_for_all_jobs_are_not_searched(workload: Workload, cluster: Cluster) -> None:
    trace = as_recorded(workload, cluster, "slurm", weight_job_size="0")
    assert {"weight_fairshare", "weight_qos"} <= hints(workload, cluster).alike
    fit = calibrate(trace, cluster, "slurm", trials=60)
    assert waited_pct(fit)[1] == 100
    # without the weight of the size, which the default has, the trace's rules are not found
    assert fit.calibration.params["weight_job_size"] == "0"
    assert not {"weight_fairshare", "weight_qos"} & set(fit.calibration.params)
    scores = {row["rules"]: row for row in result(fit, sources=(), command="").tables[0].frame.to_dicts()
              if row["by"] == "waited"}  # fmt: skip
    assert scores["slurm, defaults"]["within_1min_pct"] < FOUND_PCT


def test_racks_are_not_inferred_and_a_note_states_it(workload: Workload, cluster: Cluster) -> None:
    trace = as_recorded(workload, cluster, "philly")
    of_one = result(calibrate(trace, cluster, "philly", trials=2), sources=(), command="").tables[1]
    assert any("racks are not inferred" in text for text in of_one.notes)
    racks = dataclasses.replace(cluster, rack=np.array([0, 0, 1, 1]), racks=("a", "b"))
    of_two = result(calibrate(trace, racks, "philly", trials=2), sources=(), command="").tables[1]
    assert not of_two.notes


def test_rules_that_a_policy_does_not_have_are_not_said_to_be_found(workload: Workload, cluster: Cluster) -> None:
    fit = calibrate(as_recorded(workload, cluster, "fifo"), cluster, "fifo-skip", trials=20)
    jobs, near = waited_pct(fit)
    assert jobs > 50
    assert near < 60
    assert "not the trace's rules" in verdict(fit)
    found = result(fit, sources=(), command="")
    assert verdict(fit) in found.warnings
    scores = {row["rules"]: row for row in found.tables[0].frame.to_dicts() if row["by"] == "all"}
    # held against what is right and what is known, it is seen to be neither
    assert scores["fifo"]["within_1min_pct"] == scores["recorded"]["within_1min_pct"] == 100
    assert scores["calibrated"]["within_1min_pct"] < 100


def test_few_jobs_that_waited_report_nothing_of_rules(workload: Workload, cluster: Cluster) -> None:
    # a policy that preempts lets nearly every job start at once
    fit = calibrate(as_recorded(workload, cluster, "las", quantum="720"), cluster, "las", trials=30)
    jobs, near = waited_pct(fit)
    assert 0 < jobs < 10
    assert near == 100
    assert "too few to tell" in verdict(fit)
    assert verdict(fit) in result(fit, sources=(), command="").warnings


def test_a_parameter_that_is_given_is_not_looked_for(workload: Workload, cluster: Cluster) -> None:
    trace = as_recorded(workload, cluster, "fair", by="user")
    fit = calibrate(trace, cluster, "fair", fixed={"by": "queue"}, trials=20)
    assert fit.calibration.params["by"] == "queue"
    assert waited_pct(fit)[1] < 100


def test_it_reports_what_cannot_be_calibrated(workload: Workload, cluster: Cluster) -> None:
    blank = dataclasses.replace(workload, recorded_start=np.full(workload.size, np.nan))
    with pytest.raises(InputError, match="0 jobs have a recorded start"):
        calibrate(blank, cluster, "fifo")
    with pytest.raises(UsageError, match="no policy"):
        calibrate(as_recorded(workload, cluster, "fifo"), cluster, "fofi")


def test_the_distance_counts_jobs_that_are_right_more_than_those_that_are_less_wrong() -> None:
    truth = np.zeros(10)
    half_right = distance(np.array([0.0] * 5 + [36_000.0] * 5), truth)
    all_wrong = distance(np.full(10, 1800.0), truth)
    assert half_right < all_wrong
    assert distance(truth, truth) == 0
    assert distance(np.array([np.nan] * 10), truth) == pytest.approx(np.log1p(1440))


def test_a_scheduler_that_was_recorded_is_found_with_its_files_and_without(tmp_path: Path) -> None:
    """Hadoop's capacity scheduler, recorded by labs/yarnsched; users of queue a have a quarter of it at least."""
    own = lab.read("cs-userlimit")
    waiting: dict[tuple[str, bool], list[float]] = {}
    for event in own.events:
        if event["event"] == "allocate":
            waiting.setdefault((event["app"], event["detail"] == "AM"), []).append(int(event["ms"]) / 1000)
    names = [name.split("/") for name in own.workload.ids]
    begun = np.array([waiting[app, number == "am"].pop(0) for app, number in names])
    trace = dataclasses.replace(own.workload, recorded_start=begun)
    known = {"phase": str(lab.PHASE_S), "am_heartbeat": "1", "masters": "/am"}
    how: dict[str, Any] = {"trials": 60, "resources": ("gpu", "cpu", "mem")}
    with_files = calibrate(trace, own.cluster, "yarn-capacity", fixed={**known, "conf": str(own.folder)}, **how)
    assert with_files.calibration.params == known
    assert with_files.distance == pytest.approx(0, abs=1e-4)
    without = calibrate(trace, own.cluster, "yarn-capacity", fixed=known, **how)
    assert without.calibration.params == {**known, "minimum_user_limit_percent": "25"}
    assert "rules are found" in verdict(without)


def test_a_search_finds_what_only_two_changes_together_bring() -> None:
    def cost(rules: dict[str, str]) -> float:
        right = (rules.get("a") == "1") + (rules.get("b") == "1")
        # one of the two alone is worse than none
        return {0: 2.0, 1: 3.0, 2: 0.5}[right] + abs(float(rules.get("n", "100")) - 150) / 1000

    choices = [Choice("a", ("0", "1"), "0"), Choice("b", ("0", "1"), "0"), Choice("n", ("100", "400"), "100", True)]
    search = Search(choices, cost, 200)
    best = search.best([{}])
    assert best["a"] == best["b"] == "1"
    # values between those that are listed are tried in steps
    assert abs(float(best["n"]) - 150) < 15
    few = Search(choices, cost, 3)
    few.best([{}])
    assert len(few.seen) == 3


def test_what_makes_no_difference_is_not_kept() -> None:
    choices = [Choice("relax", ("x", "time"), "x"), Choice("after", ("1", "2"), "1", only=(("relax", ("time",)),))]
    seen: list[dict[str, str]] = []

    def cost(rules: dict[str, str]) -> float:
        seen.append(rules)
        return 1.0

    search = Search(choices, cost, 50)
    assert search.best([{"after": "2"}]) == {}
    assert {"after": "2"} not in seen


def test_the_log_shows_values_by_itself(workload: Workload, cluster: Cluster) -> None:
    quota = dataclasses.replace(cluster, quota=np.array([12.0, 20.0]), quota_source="configured")
    rules = {"order": "queued", "take_back": "false", "lend": "0.5", "relax": "time", "relax_after": "0"}
    found = hints(as_recorded(workload, quota, "philly", **rules), quota)
    assert found.configured
    # beyond their quotas queues start jobs while at most half of the GPUs are in use
    assert 0.5 in found.lent
    # and so what they held beyond that is within their quotas
    assert (found.quotas["held beyond 50%"] <= [12, 20]).all()


def test_a_file_states_what_was_found(tmp_path: Path) -> None:
    written = Calibration("philly", {"relax": "time", "lend": "0.8"}, {'a "b"\n': 12.0}, True, 0.6, {"jobs": 3})
    (tmp_path / "rules.toml").write_text(written.toml())
    assert read_calibration(tmp_path / "rules.toml") == written
