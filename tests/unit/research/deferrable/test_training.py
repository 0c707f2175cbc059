"""Rules that are learned by an evolution strategy: the same again, after stops too; what is saved is what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors import card
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.research.deferrable import training
from gpuctl.research.deferrable.compare import compare, result
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.model import KIND, load
from gpuctl.research.deferrable.policies import parse
from gpuctl.research.deferrable.slots import Rule, score, simulate
from gpuctl.research.learn.repeated_runs import student_interval

if TYPE_CHECKING:
    from pathlib import Path

MINUTES = 6 / training.GENERATIONS_A_MINUTE


@pytest.fixture(scope="module")
def lessons() -> training.Lessons:
    cases = tuple(generate(CaseSettings(seed, 0.9, days=4, gpus=32)) for seed in range(4))
    return training.Lessons(cases[:3], cases[3:], {"cases": "made up"})


def test_the_same_again_after_a_stop_too(lessons: training.Lessons, tmp_path: Path) -> None:
    whole = training.train(lessons, MINUTES, 3, checkpoint=tmp_path / "whole")

    def stop(done: int, _: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            training.train(lessons, MINUTES, 3, checkpoint=tmp_path / "kept", progress=stop)
    again = training.train(lessons, MINUTES, 3, checkpoint=tmp_path / "kept")
    assert len(whole.curve) == len(again.curve) == 6
    assert whole.curve == again.curve
    for name, each in whole.net.weights.items():
        assert (each == again.net.weights[name]).all()
    other = training.train(lessons, MINUTES, 4)
    assert other.curve != whole.curve
    with pytest.raises(InputError, match="other data"):
        training.train(lessons, MINUTES, 4, checkpoint=tmp_path / "kept")


def test_the_saved_net_is_the_one_that_runs(lessons: training.Lessons, tmp_path: Path) -> None:
    fitted = training.train(lessons, MINUTES, 3)
    for place in ("one", "two"):
        card.save_folder(tmp_path / place, KIND, *training.about(fitted, lessons, MINUTES, 3))
    one, two = ([(file.name, file.read_bytes()) for file in sorted((tmp_path / place).iterdir())]
                for place in ("one", "two"))  # fmt: skip
    assert one == two
    model = load(tmp_path / "one")
    [case] = lessons.held
    held = [row["held_score"] for row in fitted.curve if "held_score" in row]
    assert score(case, model.run(case, "newest")) == pytest.approx(max(held), abs=1e-9)
    # it begins as the middle quantile
    first = training.train(lessons, 1 / training.GENERATIONS_A_MINUTE, 3).curve[0]
    assert len(held) == 2
    assert abs(first["held_score"] - score(case, simulate(case, Rule(kernel.QUANTILE, 50)))) < 0.1
    budget = model.card["budget"]
    assert budget["generations"] == 6
    assert budget["cases"] == 6 * 2 * training.PAIRS * 3
    for name, text, told in (("net.json", b'"outputs": 12', "net"), ("net.npy", b"", "net")):
        damaged = tmp_path / f"damaged-{name}"
        card.save_folder(damaged, KIND, *training.about(fitted, lessons, MINUTES, 3))
        path = damaged / name
        path.write_bytes(path.read_bytes().replace(text, b'"outputs": 13') if text else path.read_bytes()[:-4])
        with pytest.raises(InputError, match=told):
            load(damaged)


def test_a_traces_last_part_is_ignored() -> None:
    case = generate(CaseSettings(9, 0.8, days=10, gpus=64))
    lessons = training.of_trace(case)
    whole = training.part(case, 0, case.horizon)
    assert (whole.leftover == case.leftover).all()
    assert whole.ids == case.ids
    first, second = (int(share * case.horizon) for share in training.PARTS)
    assert all(each.horizon <= first for each in lessons.learnt)
    [held] = lessons.held
    assert held.horizon == second - first
    seen = {name for each in (*lessons.learnt, held) for name in each.ids}
    late = [
        name for name, latest, slots in zip(case.ids, case.latest, case.slots, strict=True) if latest + slots > second
    ]
    assert late
    assert not seen & set(late)
    with pytest.raises(InputError, match="too few"):
        training.of_trace(training.part(case, 0, 3))


def test_scores_side_by_side_with_paired_intervals(tmp_path: Path, lessons: training.Lessons) -> None:
    assert student_interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((2, 2 - 2.4841, 2 + 2.4841), abs=1e-3)
    fitted = training.train(lessons, MINUTES, 3)
    card.save_folder(tmp_path / "rule", KIND, *training.about(fitted, lessons, MINUTES, 3))
    policies = parse(["asap,quantile:50,clairvoyant", f"osdec:{tmp_path / 'rule'}"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "gpuctl.research.deferrable.compare.generate",
            lambda made: generate(CaseSettings(made.seed, made.load, 3, 32)),
        )
        found = compare(policies, (0.5, 1.2), (1, 2, 3))
    told = result(found, policies, (0.5, 1.2), (1, 2, 3), "gpuctl")
    rows: list[dict[str, Any]] = told.tables[0].frame.to_dicts()
    assert len(rows) == 8
    for i, load_of in enumerate((0.5, 1.2)):
        own = [row for row in rows if row["load"] == load_of]
        best = max(own[:2], key=lambda row: row["score_mean"])
        k = own.index(best)
        assert {row["best_rule"] for row in own} == {best["policy"]}
        assert best["diff_mean"] is None
        assert own[3]["diff_mean"] == pytest.approx((found[i, :, 3] - found[i, :, k]).mean())
        assert own[3]["train_minutes"] == pytest.approx(MINUTES)
        assert own[0]["train_minutes"] is None
    gains = told.tables[1]
    assert gains.frame["gain"].to_list() == [row["diff_mean"] for row in rows if row["policy"].startswith("osdec")]
    assert len(gains.notes) == 2
    assert all("pay" in note for note in gains.notes)
