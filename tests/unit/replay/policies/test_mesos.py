"""Mesos: offers, filters and time-outs worked out on paper, to the second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.policies.fair_share import mesos
from gpuctl.replay.policies.fair_share.mesos import MOST_FILTERS
from tests.unit.replay.models.test_resources import jobs, places, replayed, starts

if TYPE_CHECKING:
    from pathlib import Path

TWO = "[[nodes]]\ncount = 2\ngpus = 4\ncpus = 8\nmem_mb = 100\n"
ONE = "[[nodes]]\ncount = 1\ngpus = 4\ncpus = 8\nmem_mb = 100\n"


def test_offers_are_made_at_whole_cycles_and_answered_at_once(tmp_path: Path) -> None:
    work = jobs(tmp_path, "a,0.25,10,2,,,a,", "b,3,1,1,,,a,")
    assert starts(replayed(work, tmp_path, ONE, "mesos")) == {"a": 1, "b": 3}
    assert starts(replayed(work, tmp_path, ONE, "mesos", cycle="4")) == {"a": 4, "b": 4}
    assert starts(replayed(work, tmp_path, ONE, "mesos", cycle="0.1"))["a"] == pytest.approx(0.3)


def test_declined_gpus_go_to_the_next_app_a_cycle_later(tmp_path: Path) -> None:
    # x holds 1 of 4 GPUs from 0 to 20. At 1 the whole rest is offered to a, which holds nothing and wants 4; it
    # declines. b is offered the same at 2, and takes 2 of 3
    work = jobs(tmp_path, "x,0,20,1,,,x,", "a,1,5,4,,,a,", "b,1,10,2,,,b,")
    outcome = replayed(work, tmp_path, ONE, "mesos")
    # b ends at 12, x at 20: then everything is offered again, since more is free than a has refused
    assert starts(outcome) == {"x": 0, "b": 2, "a": 20}
    assert set(outcome.decisions["reason"].to_list()[:1]) == {"its queue or user accepts what it is offered"}


def test_a_filter_keeps_the_same_or_less_away_and_no_more(tmp_path: Path) -> None:
    # At 1 a declines 2 free GPUs to 6, since its first job wants 3. The job that it would start on them comes behind
    # that one, and waits for it. At 4 one more GPU is free than it has refused: it is offered all 3 at once
    work = jobs(tmp_path, "x,0,4,1,,,x,", "y,0,50,1,,,x,", "a1,1,5,3,,,a,", "a2,2,5,1,,,a,")
    assert starts(replayed(work, tmp_path, ONE, "mesos")) == {"x": 0, "y": 0, "a1": 4, "a2": 9}


def test_refusals_apart_keep_a_gang_from_all_it_needs_at_once(tmp_path: Path) -> None:
    # gang wants all 8 GPUs. x ends at 11 on the first node: gang is offered that alone, and declines to 16. y ends at
    # 13 on the second one, which it declines to 18; at 16 it is offered the first alone, at 18 the second, and so on,
    # never both, until it revives: at 1 + 30
    rows = ["x,0,11,4,,,x,", "y,0,13,4,,,x,", "gang,1,5,8,,,g,"]
    work = jobs(tmp_path, *rows)
    assert starts(replayed(work, tmp_path, TWO, "mesos"))["gang"] == 31
    assert starts(replayed(work, tmp_path, TWO, "mesos", revive="14"))["gang"] == 15
    # with 2 s the refusals of the first node, at 11, are over when the second one comes
    assert starts(replayed(work, tmp_path, TWO, "mesos", filter="2"))["gang"] == 13


def test_kept_offers_gather_a_gang_or_are_taken_back(tmp_path: Path) -> None:
    rows = ["x,0,11,4,,,x,", "y,0,40,4,,,x,", "gang,1,5,8,,,g,", "small,20,5,1,,,s,"]
    work = jobs(tmp_path, *rows)
    # kept from 11 on, so that small gets nothing until the gang has run
    kept = starts(replayed(work, tmp_path, TWO, "mesos", hold="true"))
    assert (kept["gang"], kept["small"]) == (40, 45)
    # taken back at 21, when neither g nor s holds anything and g comes first by name: it is offered to g again
    again = starts(replayed(work, tmp_path, TWO, "mesos", hold="true", offer_timeout="10"))
    assert (again["gang"], again["small"]) == (40, 45)
    # without it g has declined to 21 when small comes. From 26 on it is offered the first node now and then; at 40
    # the second comes, and g has declined the first to 41; both at once are there when it revives: at 1 + 2 * 30
    plain = starts(replayed(work, tmp_path, TWO, "mesos"))
    assert (plain["gang"], plain["small"]) == (61, 20)


def test_min_offer_keeps_crumbs_back_but_not_an_idle_node(tmp_path: Path) -> None:
    work = jobs(tmp_path, "x,0,10,3,,,x,", "a,1,5,1,,,a,")
    assert starts(replayed(work, tmp_path, ONE, "mesos"))["a"] == 1
    assert starts(replayed(work, tmp_path, ONE, "mesos", min_offer="2"))["a"] == 10
    assert starts(replayed(work, tmp_path, ONE, "mesos", min_offer="9")) == {"x": 0, "a": 10}


def test_offers_have_cpus_and_memory(tmp_path: Path) -> None:
    # at 0 a, first by name, takes 6 of the first node's CPUs, and b what is left of the second's
    work = jobs(tmp_path, "a,0,10,1,6,1,a,", "b,0,10,1,6,1,b,", "c,1,5,0,3,1,c,")
    outcome = replayed(work, tmp_path, TWO, "mesos")
    # a was offered both nodes; b is offered both, less a's job, a cycle later; c finds 2 and 2 CPUs
    assert starts(outcome) == {"a": 0, "b": 1, "c": 2}
    assert [(row, node, cpus) for row, node, _, cpus, _ in places(outcome)] == [
        (0, 0, 6.0), (1, 1, 6.0), (2, 0, 2.0), (2, 1, 1.0),
    ]  # fmt: skip


def test_a_framework_without_jobs_asks_again_once_it_has_some(tmp_path: Path) -> None:
    # a1 leaves nothing waiting, so that there is no filter when a2 comes
    work = jobs(tmp_path, "a1,0,50,2,,,a,", "a2,2,5,2,,,a,")
    assert starts(replayed(work, tmp_path, ONE, "mesos")) == {"a1": 0, "a2": 2}


def test_jobs_that_can_never_start_end_the_replay(tmp_path: Path) -> None:
    # 5 GPUs on nodes of 4 and 2: consolidated that is one of 4 and a rest of 1, which is there; 8 GPUs are not
    nodes = "[[nodes]]\ngpus = 4\ncpus = 1\n[[nodes]]\ngpus = 2\ncpus = 1\n[[nodes]]\ngpus = 2\ncpus = 1\n"
    work = jobs(tmp_path, "a,0,5,8,,,a,", "b,0,5,1,,,b,", "c,500,5,5,,,c,")
    outcome = replayed(work, tmp_path, nodes, "mesos", how="consolidate")
    assert outcome.jobs["state"].to_list() == ["waiting", "finished", "finished"]
    assert outcome.end_s < 1000


def test_more_filters_than_memory_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_FILTERS * 32 <= 2 * 2**30
    monkeypatch.setattr(mesos, "MOST_FILTERS", 1)
    with pytest.raises(UsageError, match="2 frameworks times 2 nodes"):
        replayed(jobs(tmp_path, "a,0,5,8,,,a,"), tmp_path, TWO, "mesos")
