"""Failures of nodes are drawn as stated: rates, distributions, repairs, racks, spares, files."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.node_failures import DAY_S, FailureOptions, NodeFailures, node_failures, with_files
from tests.unit.replay.engine.test_engine import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Workload

YEAR_S = 365 * DAY_S


@pytest.fixture
def case(tmp_path: Path) -> tuple[Workload, Cluster]:
    workload = jobs(tmp_path, "a,0,100,8", "b,0,100,64")
    return workload, parse_cluster("40x8", workload)


def model_of(case: tuple[Workload, Cluster], failures: str, seed: int = 0, **options: Any) -> NodeFailures:
    found = node_failures(FailureOptions(failures, **options), *case, seed)
    assert found is not None
    return found


def test_poisson_failures_come_at_their_rate(case: tuple[Workload, Cluster]) -> None:
    outages = model_of(case, "0.05").outages(0.0)
    count = len(outages.until(YEAR_S))
    mean = 40 * 365 * 0.05
    assert abs(count - mean) < 3.3 * math.sqrt(mean)


@pytest.mark.parametrize("shape", [0.6, 2.0])
def test_weibull_failures_have_the_same_mean(case: tuple[Workload, Cluster], shape: float) -> None:
    count = len(model_of(case, f"0.05:weibull:{shape}").outages(0.0).until(4 * YEAR_S))
    mean = 40 * 4 * 365 * 0.05
    # variance of a renewal process: mean x CV^2; a first interval from a repair counts more where shape < 1
    spread = math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1
    assert abs(count - mean - 40 * (spread - 1) / 2) < 3.3 * math.sqrt(mean * spread)


def test_nodes_that_are_away_for_their_repair_do_not_fail(case: tuple[Workload, Cluster]) -> None:
    outages = model_of(case, "0.05", repair="172800").outages(0.0)
    outages.until(6 * YEAR_S)
    away = sum(min(end, 6 * YEAR_S) - t for _, t, end in outages.away)
    # N r R / (1 + r R), alternating renewal
    expected = 40 * 0.05 * 2 / (1 + 0.05 * 2)
    assert away / (6 * YEAR_S) == pytest.approx(expected, rel=0.06)
    for node in range(40):
        mine = sorted(row[1:] for row in outages.away if row[0] == node)
        assert all(later[0] >= earlier[1] for earlier, later in itertools.pairwise(mine))


def test_a_lognormal_repair_has_its_median_and_a_file_its_values(case: tuple[Workload, Cluster]) -> None:
    outages = model_of(case, "0.5", repair="lognormal:3600:1.2").outages(0.0)
    outages.until(YEAR_S)
    seconds = np.array([end - t for _, t, end in outages.away])
    assert np.median(seconds) == pytest.approx(3600, rel=0.06)
    assert np.log(seconds).std() == pytest.approx(1.2, rel=0.04)
    files = {"repairs.csv": "time_s,until_s\n0,60\n100,400\n7,"}
    outages = model_of(case, "0.5", repair="repairs.csv", files=files).outages(0.0)
    outages.until(YEAR_S)
    assert {round(end - t) for _, t, end in outages.away} == {60, 300}


def test_failures_do_not_depend_on_how_far_each_draw_goes(case: tuple[Workload, Cluster]) -> None:
    model = model_of(case, "0.5:weibull:0.7", seed=3, repair="7200", spares=2)
    once = model.outages(0.0).until(YEAR_S)
    outages = model.outages(0.0)
    parts = [event for day in range(365) for event in outages.until((day + 1) * DAY_S)]
    assert parts == once
    assert model_of(case, "0.5:weibull:0.7", seed=4, repair="7200", spares=2).outages(0.0).until(YEAR_S) != once


def test_overlapping_outages_are_one(case: tuple[Workload, Cluster]) -> None:
    files = {"f.csv": "time_s,node,until_s\n10,s02,50\n20,s02,80\n30,s02,30\n90,s02,90\n100,s02,\n"}
    outages = model_of(case, "f.csv", files=files).outages(0.0)
    assert outages.until(1000) == [(10, 1, 0), (80, 1, 1), (90, 1, 2), (100, 1, 0)]
    assert outages.seen(1000, lambda _, since: since).tolist() == [[1, 10, 80], [1, 100, math.inf]]


def test_a_rack_fails_as_one_and_a_share_of_a_cluster_by_chance(case: tuple[Workload, Cluster]) -> None:
    workload, cluster = case
    cluster = replace(cluster, rack=np.arange(40) // 10, racks=("a", "b", "c", "d"))
    files = {"f.toml": "[rack]\nrate = 0.1\nuntil = 600\n[[cluster]]\nrate = 0.1\nshare = 0.25\n"}
    events = model_of((workload, cluster), "f.toml", files=files).outages(0.0).until(YEAR_S)
    at: dict[float, list[tuple[int, int]]] = {}
    for t, node, what in events:
        if what != 1:
            at.setdefault(t, []).append((node, what))
    of_rack = [nodes for nodes in at.values() if nodes[0][1] == 0]
    shares = [len(nodes) for nodes in at.values() if nodes[0][1] == 2]
    assert all(len(nodes) == 10 and len({node // 10 for node, _ in nodes}) == 1 for nodes in of_rack)
    assert len(of_rack) == pytest.approx(4 * 36.5, rel=0.3)
    assert np.mean(shares) == pytest.approx(10, rel=0.2)


def test_young_follows_the_nodes_of_each_job(case: tuple[Workload, Cluster]) -> None:
    every = model_of(case, "0.05", checkpoint="young", write=300.0).every
    # Young: sqrt(2 w M); 64 GPUs on 8 nodes: M = 2.5 days
    assert every[1] == pytest.approx(math.sqrt(2 * 300 * DAY_S / (8 * 0.05)))
    assert every[1] == pytest.approx(11_384, abs=1)
    assert every[0] == pytest.approx(every[1] * math.sqrt(8))


def test_rates_by_gpu_type(case: tuple[Workload, Cluster]) -> None:
    workload, cluster = case
    typed = replace(cluster, gpu_types=("A100", "H100"), gpu_type=np.arange(40) % 2)
    events = model_of((workload, typed), "h100=0.5").outages(0.0).until(YEAR_S)
    assert {node % 2 for _, node, _ in events} == {1}
    with pytest.raises(UsageError, match="no node has GPUs of type 'v100'"):
        model_of((workload, typed), "V100=0.5")


def test_lemons_fail_more_often_and_the_others_as_before(case: tuple[Workload, Cluster]) -> None:
    """A tenth of forty nodes, ten times as often; all others fail at the same seconds as without them."""
    plain, mixed = (
        [(t, node) for t, node, _ in model_of(case, "0.05", **options).outages(0.0).until(YEAR_S)]
        for options in ({}, {"lemons": "0.1:10"})
    )
    worst = {node for _, node in mixed} & {
        node for node in range(40) if sum(other == node for _, other in mixed) > 3 * 365 * 0.05
    }
    assert len(worst) == 4
    assert [row for row in mixed if row[1] not in worst] == [row for row in plain if row[1] not in worst]
    assert sum(node in worst for _, node in mixed) == pytest.approx(4 * 365 * 0.5, rel=0.15)
    with pytest.raises(UsageError, match="--lemon-share 2: not understood"):
        model_of(case, "0.05", lemons="2")
    with pytest.raises(UsageError, match="--lemon-share is for rates of nodes"):
        model_of(case, "recorded", lemons="0.1")


def test_no_failures_and_no_checkpoints_are_no_model(case: tuple[Workload, Cluster]) -> None:
    assert node_failures(FailureOptions("0"), *case, 0) is None
    assert node_failures(FailureOptions("recorded"), *case, 0) is None
    assert model_of(case, "0", checkpoint="600").outages(0.0).until(YEAR_S) == []


@pytest.mark.parametrize(
    ("failures", "options", "message"),
    [
        ("often", {}, "--failures often: not understood"),
        ("-1", {}, "--failures -1: not understood"),
        ("0.1:normal:2", {}, "--failures 0.1:normal:2: not understood"),
        ("0.1", {"checkpoint": "0"}, "--checkpoint 0: not understood"),
        ("0.1", {"checkpoint": "young"}, "--checkpoint young requires the time"),
        ("0.1", {"repair": "lognormal:0:1"}, "--repair 0: not understood"),
    ],
)
def test_what_makes_no_sense_is_refused(
    case: tuple[Workload, Cluster], failures: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        model_of(case, failures, **options)
    assert message in error.value.message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.csv", "time_s,node\n1,s2", "no column 'until_s'"),
        ("f.csv", "time_s,node,until_s\n1,n99,2", "no node 'n99' in this replay"),
        ("f.csv", "time_s,node,until_s\nsoon,s02,2", "time_s: 'soon' is not a number"),
        ("f.csv", "time_s,node,until_s\n5,s02,2", "until_s is before time_s"),
        ("f.csv", "time_s,node,until_s,kind\n5,s02,9,dran", "kind: 'dran' is none of failure, drain"),
        ("f.toml", "rate = ", "not valid TOML"),
        ("f.toml", "rates = 1", "unknown key 'rates'"),
        ("f.toml", "rate = -1", "rate: -1 is not a number from 0 on"),
        ("f.toml", "[nodes]\nx = 1", "nodes.x: no such node"),
    ],
)
def test_a_bad_file_is_named(
    tmp_path: Path, case: tuple[Workload, Cluster], name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError) as error:
        node_failures(with_files(FailureOptions(str(path))), *case, 0)
    assert message in error.value.message
    assert error.value.path == str(path)
