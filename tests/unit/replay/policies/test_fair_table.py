"""One table of policies that assume different things: what all of them share, and what its notes state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.results.tables import result
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Outcome

TOGETHER = ("fifo", "tiresias", "themis", "gandiva", "lucid", "sia", "pollux")
OWN_SPEEDS = {"sia", "pollux"}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Outcome], ResultTable]:
    path: Path = tmp_path_factory.mktemp("fair") / "jobs.csv"
    rows = ["job_id,submit_time,duration,num_gpus"]
    rows += [f"j{k},{97 * k % 700},{200 + 173 * k % 2900},{(1, 1, 2, 4)[k % 4]}" for k in range(24)]
    path.write_text("\n".join(rows))
    workload = read_jobs(path)
    nodes = parse_cluster("2x4", workload)
    outcomes = replay(workload, nodes, [(name, {}) for name in TOGETHER], own_speeds=True, processes=1)
    table = next(t for t in result(outcomes, workload, nodes).tables if t.name == "replay_summary")
    return outcomes, table


def test_all_policies_replay_the_same_jobs(compared: tuple[list[Outcome], ResultTable]) -> None:
    outcomes, table = compared
    first = outcomes[0].jobs.select("job", "gpus", "submit_s", "work_s")
    assert all(outcome.jobs.select(first.columns).equals(first) for outcome in outcomes)
    assert table.frame["jobs"].to_list() == table.frame["jobs_finished"].to_list() == [24] * len(TOGETHER)


def test_speeds_and_costs_are_the_same_except_those_that_a_policy_sets(
    compared: tuple[list[Outcome], ResultTable],
) -> None:
    outcomes, _ = compared
    for name in ("speed", "preemption overhead"):
        texts = {outcome.policy: str(outcome.settings[name]) for outcome in outcomes}
        assert len({text for policy, text in texts.items() if policy not in OWN_SPEEDS}) == 1
        assert all(texts[policy].startswith("the policy's own") for policy in OWN_SPEEDS)
    for name in ("placement", "preemption", "time limits", "seed"):
        assert len({str(outcome.settings[name]) for outcome in outcomes}) == 1


def test_the_notes_of_the_table_state_both(compared: tuple[list[Outcome], ResultTable]) -> None:
    _, table = compared
    notes = [str(each) for each in table.notes]
    (same,) = [text for text in notes if text.startswith("The same for all")]
    assert same.startswith("The same for all 7 policies: 24 jobs, 2x4; ")
    assert "placement: each policy's own" in same
    apart = [text for text in notes if text.startswith("Not the same, ")]
    assert [text.partition(":")[0] for text in apart] == ["Not the same, speed", "Not the same, preemption overhead"]
    for text in apart:
        assert "fifo, tiresias, themis, gandiva, lucid: " in text
        assert "; sia, pollux: the policy's own" in text or "sia: the policy's own" in text
