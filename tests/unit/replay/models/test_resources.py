"""CPUs and memory beside GPUs: reading, what is assumed and said, and placements worked out on paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.check import check, unplaceable
from gpuctl.replay.inputs.clusters import add_nodes, parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.resources import fill_in_requests, parse_per_gpu, parse_resources
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome, Workload

ALL = ("gpu", "cpu", "mem")
HEADER = "job_id,submit_time,duration,num_gpus,num_cpus,mem_mb,vc,user"
NODES = """
[[nodes]]
count = 2
gpus = 2
cpus = 6
mem_mb = 1000
[[nodes]]
name = "cpu"
gpus = 0
cpus = 4
"""


def jobs(folder: Path, *rows: str, resources: tuple[str, ...] = ALL) -> Workload:
    path = folder / "jobs.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return read_jobs(path, resources)


def replayed(
    workload: Workload, folder: Path, nodes: str = NODES, policy: str = "fifo-skip", how: str | None = None,
    **params: str,
) -> Outcome:  # fmt: skip
    path = folder / "cluster.toml"
    path.write_text(nodes)
    cluster = parse_cluster(str(path), workload)
    models = (rates("recorded", workload, cluster), overhead("none", workload, cluster))
    simulation = Simulation(workload, cluster, find(policy)(params), Settings(*models, placement=how, resources=ALL))
    simulation.run()
    return simulation.outcome()


def starts(outcome: Outcome) -> dict[str, float]:
    return dict(outcome.jobs.select("job", "start_s").iter_rows())


def places(outcome: Outcome) -> list[tuple[int, ...]]:
    return list(outcome.pieces.select("row", "node", "gpus", "cpus", "mem_mb").iter_rows())


def test_a_job_starts_where_all_it_asks_for_is_free(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,1,4,100,x,", "b,0,10,0,8,,x,", "c,1,10,1,2,500,y,", "d,2,5,2,3,7,y,", "e,2,1,1,1,,y,")
    outcome = replayed(work, tmp_path)
    # a leaves 2 CPUs on the first node; b, without GPUs, has 6 CPUs of the second and 2 of the third; c is beside a;
    # d finds 2 GPUs on the second node but no CPU until b ends, and so does e
    assert starts(outcome) == {"a": 0, "b": 0, "c": 1, "d": 10, "e": 10}
    assert places(outcome) == [
        (0, 0, 1, 4.0, 100), (1, 1, 0, 6.0, 0), (1, 2, 0, 2.0, 0), (2, 0, 1, 2.0, 500), (3, 1, 2, 3.0, 7),
        (4, 0, 1, 1.0, 0),
    ]  # fmt: skip


def test_a_gang_over_several_nodes_takes_equal_parts(tmp_path: Path) -> None:
    nodes = "[[nodes]]\ncount = 3\ngpus = 4\ncpus = 10\nmem_mb = 100\n"
    # 5 GPUs with 20 CPUs: 4 CPUs a GPU, so that 10 CPUs go with 2 GPUs
    work = jobs(tmp_path, "a,0,10,5,20,101,x,")
    outcome = replayed(work, tmp_path, nodes)
    assert places(outcome) == [(0, 0, 2, 8.0, 41), (0, 1, 2, 8.0, 41), (0, 2, 1, 4.0, 21)]
    assert places(replayed(work, tmp_path, nodes, how="consolidate")) == places(outcome)
    spread = places(replayed(jobs(tmp_path, "a,0,10,2,20,,x,"), tmp_path, nodes, how="spread"))
    assert spread == [(0, 0, 1, 10.0, 0), (0, 1, 1, 10.0, 0)]


def test_a_gang_that_fills_a_node_exactly_fits_though_its_parts_are_no_whole_numbers(tmp_path: Path) -> None:
    nodes = "[[nodes]]\ngpus = 3\ncpus = 10\nmem_mb = 100\n"
    assert starts(replayed(jobs(tmp_path, "a,0,10,3,10,100,x,"), tmp_path, nodes)) == {"a": 0}


def test_nodes_that_go_down_take_their_cpus_with_them(tmp_path: Path) -> None:
    down = NODES + '[[down]]\nnode = "cpu"\nfrom_s = 0\nuntil_s = 50\n'
    work = jobs(tmp_path, "a,1,10,0,16,,x,", "b,1,10,0,12,,x,")
    # 16 CPUs are all there are; while the third node is down there are 12
    assert starts(replayed(work, tmp_path, down)) == {"a": 50, "b": 1}


def test_uncounted_resources_bound_nothing(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,1,99,1,x,", "b,0,10,1,1,9999,x,")
    path = tmp_path / "cluster.toml"
    path.write_text(NODES)
    cluster = parse_cluster(str(path), work)
    assert unplaceable(work, cluster).tolist() == []
    assert unplaceable(work, cluster, ("gpu", "cpu")).tolist() == [0]
    assert unplaceable(work, cluster, ("gpu", "mem")).tolist() == [1]
    with pytest.raises(InputError, match=r"2 jobs ask for more gpu and cpu and mem .*'a', 'b'"):
        check(work, cluster, ALL)


def test_defaults_are_only_those_requested_and_are_reported(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,2,,,x,", "b,0,10,0,,,x,", "c,0,10,1,1,5,x,")
    (tmp_path / "cluster.toml").write_text(NODES)
    cluster = parse_cluster(str(tmp_path / "cluster.toml"), work)
    plain, nodes = fill_in_requests(work, cluster, ALL, None)
    assert "2 of 3 jobs do not state CPUs: they ask for none" in plain.notes
    assert "2 of 3 jobs do not state memory: they ask for none" in plain.notes
    assert "the memory of 1 node are not known and bound nothing there" in nodes.notes
    filled, _ = fill_in_requests(work, cluster, ALL, parse_per_gpu("6,50"))
    assert filled.cpus is not None
    assert filled.mem_mb is not None
    np.testing.assert_array_equal(filled.cpus, [12, np.nan, 1])
    np.testing.assert_array_equal(filled.mem_mb, [102400, np.nan, 5])
    assert "1 job does not state CPUs: assumed, 6 CPUs per GPU (--per-gpu)" in filled.notes
    assert "1 of 3 jobs does not state memory: it asks for none" in filled.notes
    assert fill_in_requests(work, cluster, ("gpu",), None) == (work, cluster)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,2,,,x,")
    for text in ("cpu", "gpu,gpu", "gpu,disk", ""):
        with pytest.raises(UsageError, match="not understood"):
            parse_resources(text)
    assert parse_resources("mem, GPU") == ("gpu", "mem")
    for text in ("6", "6,x", "-1,5", "6,nan"):
        with pytest.raises(UsageError, match="not understood"):
            parse_per_gpu(text)
    with pytest.raises(UsageError, match="the CPUs of no node"):
        fill_in_requests(work, parse_cluster("2x2", work), ALL, None)
    with pytest.raises(UsageError, match="do not count"):
        fill_in_requests(work, parse_cluster("2x2", work), ("gpu",), (6, 50))
    with pytest.raises(UsageError, match="srtf counts GPUs alone"):
        replayed(work, tmp_path, policy="srtf")
    with pytest.raises(InputError, match="mem_mb is below 0"):
        jobs(tmp_path, "a,0,10,2,1,-4,x,")
    with pytest.raises(InputError, match="at least 0"):
        jobs(tmp_path, "a,0,10,-1,1,4,x,")
    with pytest.raises(InputError, match="at least 1"):
        jobs(tmp_path, "a,0,10,0,1,4,x,", resources=("gpu",))
    with pytest.raises(InputError, match="cpus: found it beside"):
        replayed(work, tmp_path, "cpus = 4\n" + NODES)


def test_without_resources_the_columns_are_not_read(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,2,1,4,x,", resources=("gpu",))
    assert work.cpus is None
    assert work.notes == ("jobs.csv: columns that are not read: num_cpus, mem_mb",)


def test_added_nodes_have_what_those_like_them_have(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,2,1,4,x,")
    (tmp_path / "cluster.toml").write_text(NODES)
    cluster = parse_cluster(str(tmp_path / "cluster.toml"), work)
    more, other = add_nodes(cluster, "1"), add_nodes(cluster, "1x8")
    assert more.cpus is not None
    assert other.cpus is not None
    assert more.cpus.tolist() == [6, 6, 4, 6]
    assert np.isnan(other.cpus[3])
    assert add_nodes(parse_cluster("2x2", work), "1").cpus is None


def test_a_pool_has_cpus_and_memory(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0,10,1,5,,x,", "b,0,10,1,5,,x,", "c,0,10,0,2,,x,")
    outcome = replayed(work, tmp_path, "pool = 4\ncpus = 8\nmem_mb = 100\n")
    assert starts(outcome) == {"a": 0, "b": 10, "c": 0}


def test_jobs_of_a_subset_keep_what_they_ask_for(tmp_path: Path) -> None:
    from gpuctl.replay.inputs.transforms import take

    work = jobs(tmp_path, "a,0,10,1,5,1,x,", "b,0,10,1,6,2,x,")
    some = take(replace(work), np.array([1]))
    assert some.cpus is not None
    assert some.mem_mb is not None
    assert (some.cpus.tolist(), some.mem_mb.tolist()) == ([6], [2])
