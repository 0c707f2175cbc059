from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.clusters import add_nodes, merged, parse_cluster
from tests.unit.replay.outcomes import make_workload

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster

WORK = replace(make_workload([0, 0], [1, 1], [1, 1], queue=[0, 1], queues=("a", "b")), gpu_types=("a100", "v100"))
WHOLE = """
[[nodes]]
name = "big"
count = 12
gpus = 8
gpu_type = "v100"
per_rack = 5

[[nodes]]
name = "old"
gpus = 2
gpu_type = "k80"
rack = "corner"

[[nodes]]
count = 2
gpus = 4

[quotas]
a = 64
nobody = 3

[[queues]]
name = "b"
nodes = ["old", "big02"]

[[down]]
node = "old"
from_s = 50
until_s = 70.5

[[down]]
node = "old"
from_s = 60
"""


def from_toml(folder: Path, text: str) -> Cluster:
    path = folder / "cluster.toml"
    path.write_text(text)
    return parse_cluster(str(path), WORK)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [("64x8", [8] * 64), ("2x8+3x4", [8, 8, 4, 4, 4]), (" 1X1 ", [1]), ("2x8 + 1x16", [8, 8, 16])],
)
def test_short_forms(text: str, gpus: list[int]) -> None:
    cluster = parse_cluster(text, WORK)
    assert cluster.gpus.tolist() == gpus
    assert len(set(cluster.nodes)) == len(gpus)
    assert list(cluster.nodes) == sorted(cluster.nodes)
    assert (cluster.pool, cluster.racks, set(cluster.rack.tolist())) == (False, ("(one rack)",), {0})
    assert set(cluster.gpu_type.tolist()) == {-1}
    assert (cluster.quota.tolist(), cluster.quota_source) == ([np.inf, np.inf], "none")
    assert (cluster.queue_nodes, cluster.down, cluster.gpu_types) == ((None, None), None, ())


def test_a_pool() -> None:
    cluster = parse_cluster("pool:512", WORK)
    assert (cluster.pool, cluster.total_gpus, len(cluster.nodes)) == (True, 512, 1)


@pytest.mark.parametrize(
    "text", ["64y8", "", "8", "pool:0", "pool:", "8x8+", "x8", "-1x8", "no/such/file.toml", "1.5x8"]
)
def test_neither_a_short_form_nor_a_file(text: str) -> None:
    with pytest.raises(UsageError, match="no such file, and no short form") as caught:
        parse_cluster(text, WORK)
    assert "32x8+16x4" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["0x8", "8x0", "9999999x8"])
def test_sizes_that_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="expected 1 to 1,000,000 nodes"):
        parse_cluster(text, WORK)


def test_a_file_with_everything(tmp_path: Path) -> None:
    cluster = from_toml(tmp_path, WHOLE)
    assert cluster.name == "cluster.toml"
    assert cluster.nodes == (*(f"big{k:02}" for k in range(1, 13)), "old", "s1", "s2")
    assert cluster.gpus.tolist() == [8] * 12 + [2, 4, 4]
    assert [cluster.racks[r] for r in cluster.rack] == [
        *["big-rack1"] * 5, *["big-rack2"] * 5, *["big-rack3"] * 2, "corner", "(one rack)", "(one rack)",
    ]  # fmt: skip
    assert cluster.gpu_types == ("a100", "v100", "k80")
    assert cluster.gpu_type.tolist() == [1] * 12 + [2, -1, -1]
    assert (cluster.quota.tolist(), cluster.quota_source) == ([64, np.inf], "configured")
    assert cluster.queue_nodes[0] is None
    assert np.array_equal(cluster.queue_nodes[1], [1, 12])
    assert np.array_equal(cluster.down, [[12, 50, np.inf]])
    assert any("quotas of queues that no job is in: nobody" in note for note in cluster.notes)


def test_a_file_with_a_pool(tmp_path: Path) -> None:
    cluster = from_toml(tmp_path, "pool = 12\n[quotas]\nb = 0\n")
    assert (cluster.pool, cluster.total_gpus, cluster.quota.tolist()) == (True, 12, [np.inf, 0])


ONE = "[[nodes]]\ngpus = 8\nname = 'x'\ncount = 2\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pool = ", "is not valid TOML"),
        ("", "the file: found neither, expected either pool or [[nodes]]"),
        (f"pool = 3\n{ONE}", "the file: found both pool and nodes"),
        ("pool = 0", "pool: found 0, expected a whole number, 1 to"),
        ("pool = true", "pool: found True"),
        ("pool = 3\n[[down]]\nnode = 'pool'\nfrom_s = 1", "down: found it beside pool"),
        ("nodes = []", "nodes: found none, expected at least one"),
        ("nodes = 3", "nodes: found 3, expected tables, each under a line [[nodes]]"),
        ("[nodes]\ngpus = 3", "nodes: found {'gpus': 3}, expected tables"),
        ("[[nodes]]\ncount = 3", "nodes[1].gpus: found nothing, expected a whole number"),
        (f"{ONE}[[nodes]]\ngpus = 1.5", "nodes[2].gpus: found 1.5, expected a whole number"),
        (f"{ONE}colour = 1", "nodes[1].colour: found it, expected only the keys count, name, gpus"),
        (f"{ONE}rack = 'r'\nper_rack = 2", "nodes[1]: found both rack and per_rack"),
        (f"{ONE}gpu_type = ''", "nodes[1].gpu_type: found '', expected a text that is not empty"),
        (f"{ONE}{ONE}", "nodes: found two nodes called 'x1'"),
        ("[[nodes]]\ngpus = 1\ncount = 600000\n" * 2, "nodes: found 1200000 nodes, expected at most 1000000"),
        (
            f"speed = 1\n{ONE}",
            "speed: found it, expected only the keys pool, cpus, mem_mb, nodes, quotas, queues, down",
        ),
        (f"{ONE}[quotas]\na = -1", "quotas.a: found -1, expected a finite number, at least 0"),
        (f"{ONE}[quotas]\na = inf", "quotas.a: found inf"),
        (f"{ONE}[quotas]\na = 'x'", "quotas.a: found 'x'"),
        (f"{ONE}[[queues]]\nnodes = ['x']", "queues[1].name: found none"),
        (f"{ONE}[[queues]]\nname = 'a'\nnodes = ['y']", "queues[1].nodes: found 'y', expected the name of a group"),
        (f"{ONE}[[queues]]\nname = 'a'\nnodes = 'x'", "queues[1].nodes: found 'x', expected a list"),
        (f"{ONE}[[down]]\nnode = 'x'\nfrom_s = 1", "down[1].node: found 'x', expected the name of a node"),
        (f"{ONE}[[down]]\nnode = ['x1']\nfrom_s = 1", "down[1].node: found ['x1']"),
        (f"{ONE}[[down]]\nnode = 'x1'\nfrom_s = nan", "down[1].from_s: found nan, expected a finite number"),
        (f"{ONE}[[down]]\nnode = 'x1'\nfrom_s = 5\nuntil_s = 5", "down[1].until_s: found 5, expected more than"),
    ],
)
def test_errors_name_the_file_the_key_and_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        from_toml(tmp_path, text)
    assert said in str(caught.value)
    assert "cluster.toml: " in str(caught.value)


def test_further_nodes_like_those_there_are_most_of() -> None:
    cluster = add_nodes(parse_cluster("2x8+3x4", WORK), "2")
    assert cluster.gpus.tolist() == [8, 8, 4, 4, 4, 4, 4]
    assert cluster.nodes[-2:] == ("added1", "added2")
    assert (cluster.name, cluster.racks, cluster.rack.tolist()) == ("2x8+3x4 + 2", ("(one rack)",), [0] * 7)
    assert cluster.notes == ("2 nodes of 4 GPUs added, in the rack '(one rack)'",)
    again = add_nodes(add_nodes(cluster, "1x16"), "1x16")
    assert again.gpus.tolist()[-2:] == [16, 16]
    assert len(set(again.nodes)) == 9


def test_further_nodes_of_a_cluster_with_racks_and_queues(tmp_path: Path) -> None:
    before = from_toml(tmp_path, WHOLE)
    cluster = add_nodes(before, "2x8")
    assert cluster.racks == (*before.racks, "(added)")
    assert cluster.rack.tolist()[-2:] == [len(before.racks)] * 2
    assert cluster.gpu_type.tolist()[-2:] == [1, 1]
    assert np.array_equal(cluster.queue_nodes[1], [1, 12, 15, 16])
    assert np.array_equal(cluster.quota, before.quota)
    only_old = replace(before, queue_nodes=(None, np.array([12])))
    assert np.array_equal(add_nodes(only_old, "2x8").queue_nodes[1], [12])
    assert np.array_equal(add_nodes(only_old, "1x32").queue_nodes[1], [12, 15])


def test_a_pool_grows() -> None:
    pool = add_nodes(parse_cluster("pool:10", WORK), "2x8")
    assert (pool.total_gpus, pool.nodes) == (26, ("pool",))
    with pytest.raises(UsageError, match="no node to copy in a pool"):
        add_nodes(pool, "2")


@pytest.mark.parametrize("text", ["", "0", "x8", "8x0", "-1", "8 x", "a", "2000000"])
def test_what_cannot_be_added(text: str) -> None:
    with pytest.raises(UsageError, match="expected a number of nodes"):
        add_nodes(parse_cluster("2x8", WORK), text)


SPELLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 20) | st.just(np.inf)), max_size=12)


@given(spells=SPELLS)
def test_merged_times_cover_the_same_seconds_and_do_not_touch(spells: list[tuple[int, int, float]]) -> None:
    found = merged(np.array(spells, np.float64).reshape(-1, 3))
    for node in range(3):
        for t in np.arange(0, 25, 0.5):
            covered = any(s == node and a <= t < b for s, a, b in spells)
            assert covered == any(s == node and a <= t < b for s, a, b in found.tolist())
    mine = found.tolist()
    assert all(a[0] < b[0] or a[2] < b[1] for a, b in pairwise(mine))
