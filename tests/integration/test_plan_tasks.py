"""Questions on capacity as a new user asks them, with the answers held against replays of the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.new_user import Cli, User, someone

if TYPE_CHECKING:
    pass


@pytest.fixture(scope="module")
def user(gpuctl: Cli, tmp_path_factory: pytest.TempPathFactory) -> User:
    return someone(gpuctl, tmp_path_factory.mktemp("site"))


FEW = ["--draws", "10"]


def test_gpus_for_next_quarter(user: User) -> None:
    """Three days of history are too few for a forecast, and the error says how to plan without one."""
    done = user.run("plan", "next quarter", more=FEW, code=2)
    assert "0 whole weeks of history are too few for a forecast, which needs 8" in done.stderr
    assert "leave --horizon out" in done.stderr


def test_which_queue_needs_more(user: User) -> None:
    tables = user.asked("plan", "Which queue", more=FEW)
    assert {row["queue"] for row in tables["plan"]} == {*user.made.quotas, "all"}
    for row in tables["plan"]:
        curve = [point for point in tables["plan_curve"] if point["queue"] == row["queue"]]
        assert [point["nodes_added"] for point in curve] == sorted(point["nodes_added"] for point in curve)
        now, most = (next(p for p in curve if p["nodes_added"] == n) for n in (0, row["nodes_high"]))
        assert (now["gpus"], now["met_pct"]) == (sum(user.made.gpus.values()), row["met_pct"])
        assert most["met_pct"] == row["met_high_pct"] >= 90
        assert curve[0]["wait_s"] >= now["wait_s"] >= curve[-1]["wait_s"]
        assert (row["verdict"] == "enough") == (now["met_pct"] >= 90)


def test_the_loss_of_a_rack(user: User) -> None:
    [removed] = user.asked("plan", "rack", more=[*FEW, "--racks", user.folder / "racks.csv"])["plan_removed"]
    left = sum(gpus for name, gpus in user.made.gpus.items() if user.made.rack[name] != 1)
    assert removed["gpus"] == left < sum(user.made.gpus.values())
    assert 0 < removed["change_low_s"] <= removed["change_s"] <= removed["change_high_s"]
