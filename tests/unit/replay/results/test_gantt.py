"""Which job was on which node: every allocation of a window, few enough of them, and nodes on loan or down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.state import DECISIONS, LOG
from gpuctl.replay.results.gantt import BARS, NODES
from gpuctl.replay.results.tables import result
from tests.example_counts import examples
from tests.result_tables import table_of
from tests.unit.replay.outcomes import make_cluster, make_outcome, make_workload, random_outcome, random_workload

if TYPE_CHECKING:
    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

WHO = ["policy", "node", "what", "job", "gpus", "t_s", "t_end_s"]


def table(
    outcomes: list[Outcome], workload: Workload, cluster: Cluster, window: tuple[float, float] | None = None
) -> ResultTable:
    return table_of(result(outcomes, workload, cluster, tables=("replay_gantt",), window=window), "replay_gantt")


def lent(outcome: Outcome, node: int, name: str, begin: float, end: float) -> Outcome:
    """The same with a node on loan for a while."""
    lines = np.zeros(2, LOG)
    for k, (t, what) in enumerate(((begin, "loan"), (end, "return"))):
        lines[k] = (t, -1, 0, node, 0, DECISIONS.index(what))
    log = replace(outcome.log, lines=lines, nodes=(*(f"gpu{k:03d}" for k in range(node)), name))
    return replace(outcome, log=log)


def test_two_nodes_on_paper() -> None:
    workload = make_workload([0, 0, 10], [100, 50, 30], [4, 2, 8])
    # the second job is preempted, goes on at once where it was, and ends on the other node
    stays = [[(0, 100, "finished")], [(0, 20, "lease"), (20, 30, "preempted"), (60, 80, "finished")], [(100, None, "")]]
    outcome = make_outcome(workload, stays, end_s=200.0)  # type: ignore[arg-type]
    pieces = pl.DataFrame(
        {"row": [0, 1, 2, 3, 4, 4], "node": [0, 1, 1, 0, 0, 1], "gpus": [4, 2, 2, 2, 4, 4]},
        schema_overrides={"row": pl.Int32, "node": pl.Int32},
    )
    found = table([replace(outcome, pieces=pieces)], workload, make_cluster(2, 4, down=[(1, 85.0, 95.0)]))
    assert found.frame.select(WHO).rows() == [
        ("fifo", "gpu000", "node", None, 4, 0.0, 200.0),
        ("fifo", "gpu000", "job", "j0", 4, 0.0, 100.0),
        ("fifo", "gpu000", "job", "j1", 2, 60.0, 80.0),
        ("fifo", "gpu000", "job", "j2", 4, 100.0, 200.0),
        ("fifo", "gpu001", "node", None, 4, 0.0, 200.0),
        ("fifo", "gpu001", "down", None, None, 85.0, 95.0),
        ("fifo", "gpu001", "job", "j1", 2, 0.0, 30.0),
        ("fifo", "gpu001", "job", "j2", 4, 100.0, 200.0),
    ]
    ends = found.frame.filter(pl.col("job") == "j1")["end"].to_list()
    assert ends == ["finished", "preempted"]


def test_jobs_that_take_turns_count_less_and_a_guest_names_its_host() -> None:
    workload = make_workload([0, 0], [100, 100], [4, 4])
    outcome = make_outcome(workload, [[(0, 100, "finished")], [(0, 100, "finished")]])
    turns = pl.DataFrame({"row": [0, 1, 1], "t_s": [0.0, 0.0, 75.0], "counted": [4, 0, 4], "pace": [1.0, 0.0, 1.0]})
    one, four = make_cluster(1, 4), [4.0, 1.0]
    assert table([replace(outcome, turns=turns)], workload, one).frame["counted_gpus"].drop_nulls().to_list() == four
    guest = outcome.attempts.with_columns(shared=pl.Series([False, True]), group=pl.Series([0, 0], dtype=pl.Int32))
    found = table([replace(outcome, attempts=guest)], workload, one).frame.filter(pl.col("what") == "job")
    assert found["beside"].to_list() == [None, "j0"]


@settings(max_examples=examples(100))
@given(st.integers(0, 200), st.integers(10, 400), st.integers(1, 20), st.integers(1, 6))
def test_all_allocations_of_the_window_are_there_and_it_could_not_be_longer(
    seed: int, jobs: int, nodes: int, policies: int
) -> None:
    workload, cluster = random_workload(jobs, seed=seed), make_cluster(nodes, 8)
    outcomes = [random_outcome(workload, seed=seed + k, policy=f"p{k}", nodes=nodes) for k in range(policies)]
    frame = table(outcomes, workload, cluster).frame
    rows = frame.filter(pl.col("what") == "node")
    low, high, shown = rows["t_s"][0], rows["t_end_s"][0], set(rows["node"])
    assert shown == set(cluster.nodes[:NODES])
    most = min(BARS, 480 // policies)
    counts, longer = [], []
    span = [min(o.jobs["submit_s"].min() for o in outcomes), max(o.end_s for o in outcomes)]  # type: ignore[type-var]
    for outcome in outcomes:
        every = _allocations(outcome, cluster, shown)
        inside = [row for row in every if row[3] < high and row[4] > low]
        mine = frame.filter((pl.col("policy") == outcome.policy) & (pl.col("what") == "job"))
        told = sorted(mine.select("job", "node", "gpus", "t_s", "t_end_s").rows())
        assert told == sorted(inside) or (len(told) == most < len(inside) and set(told) < set(inside))
        counts.append(len(told))
        wide = (low - 65, high + 65)
        longer.append(sum(row[3] < wide[1] and row[4] > wide[0] for row in every))
    assert max(counts) <= most
    assert max(longer) > most or (low <= span[0] + 60 and high >= span[1] - 60)


def _allocations(outcome: Outcome, cluster: Cluster, shown: set[str]) -> list[tuple[Any, ...]]:
    """One by one, from the attempts: job, node, GPUs, start, end; stays without a gap are one."""
    attempts, names = outcome.attempts.rows(named=True), outcome.jobs["job"].to_list()
    found: dict[tuple[Any, ...], list[list[float]]] = {}
    for piece in outcome.pieces.rows(named=True):
        held = attempts[piece["row"]]
        end = outcome.end_s if held["end_s"] is None else held["end_s"]
        node = cluster.nodes[piece["node"]]
        if node in shown and end > held["start_s"]:
            found.setdefault((names[held["job"]], node, piece["gpus"]), []).append([held["start_s"], end])
    rows = []
    for key, stays in found.items():
        joined = [sorted(stays)[0]]
        for begin, end in sorted(stays)[1:]:
            if begin == joined[-1][1]:
                joined[-1][1] = end
            else:
                joined.append([begin, end])
        rows += [(*key, begin, end) for begin, end in joined]
    return rows


def test_too_many_at_one_moment_are_cut_and_counted() -> None:
    count = 300
    workload = make_workload([0.0] * count, [1000.0 + k for k in range(count)], [1] * count)
    outcome = make_outcome(workload, [[(0.0, 1000.0 + k, "finished")] for k in range(count)])
    found = table([outcome], workload, make_cluster(1, 512), (0.0, 2000.0))
    jobs = found.frame.filter(pl.col("what") == "job")
    assert set(jobs["job"]) == {f"j{k}" for k in range(count - BARS, count)}
    assert found.notes == ("Shown: the allocations with most GPU-time in the window: fifo 120 of 300.",)


def test_a_window_of_ones_own() -> None:
    workload = make_workload([0, 500], [100, 100], [1, 1])
    outcome = make_outcome(workload, [[(0, 100, "finished")], [(500, 600, "finished")]])
    found = table([outcome], workload, make_cluster(40, 4), (400.0, np.inf))
    assert found.frame.filter(pl.col("what") == "job")["job"].to_list() == ["j1"]
    assert found.notes == (f"Shown: {NODES} of 40 nodes.",)
    assert set(found.frame.filter(pl.col("what") == "node").select("t_s", "t_end_s").rows()) == {(400.0, 600.0)}
    for window in ((600.0, 700.0), (-10.0, 0.0), (50.0, 50.0)):
        with pytest.raises(UsageError, match="nothing was replayed") as error:
            table([outcome], workload, make_cluster(40, 4), window)
        assert error.value.hint == "the replay lasts from 0 to 600"


def test_a_loan_has_a_row_of_its_own() -> None:
    workload = make_workload([0], [100], [1])
    outcome = lent(make_outcome(workload, [[(0, 100, "finished")]]), 1, "gpu001", 20.0, 60.0)
    frame = table([outcome], workload, make_cluster(2, 4)).frame
    assert frame.filter(pl.col("what") == "loan").select("node", "t_s", "t_end_s").rows() == [("gpu001", 20.0, 60.0)]


def test_nodes_that_are_there_on_loan_alone_are_lent() -> None:
    workload, count = make_workload([0], [100], [1]), 20
    more = make_cluster(count + 5, 4)
    outcome = lent(make_outcome(workload, [[(0, 100, "finished")]]), count + 3, f"gpu{count + 3:03d}", 20.0, 60.0)
    found = table([replace(outcome, cluster=more)], workload, make_cluster(count, 4))
    rows = found.frame.filter(pl.col("what").is_in(["node", "lent"]))
    # a third of the rows, those that came first
    assert rows["what"].to_list() == ["node"] * 8 + ["lent"] * 4
    assert rows["node"].to_list()[8:] == ["gpu020", "gpu021", "gpu022", "gpu023"]
    assert found.notes[0] == f"Shown: {NODES} of 25 nodes."
