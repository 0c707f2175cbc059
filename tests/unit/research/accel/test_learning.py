"""Learned policies: what they see and answer, how they are trained, kept and scored; and the environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.predictors import card
from gpuctl.research.accel import evaluate, saved, tables, training
from gpuctl.research.accel import state as s
from gpuctl.research.accel.costs import Machine, machine_of, parse_system, read_costs
from gpuctl.research.accel.policies import rule
from gpuctl.research.accel.requests import generate, models_of, stream
from gpuctl.research.accel.simulate import Policy, simulate, state_of
from gpuctl.research.accel.world_kernel import run
from gpuctl.research.learn.nets import initial
from gpuctl.research.learn.saved import files_of

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "simba-s:1,eyeriss-s:2@8000"
ACCELS = 3


@pytest.fixture(scope="module")
def machine() -> Machine:
    return machine_of(parse_system(SYSTEM), read_costs())


@pytest.fixture(scope="module")
def some(machine: Machine) -> tuple[int, ...]:
    return tuple(models_of("lstm-2x512,unet-s", machine))


def test_zeros_are_simple_rules(machine: Machine, some: tuple[int, ...]) -> None:
    requests = generate(machine, some, 20, 1.1, 5)
    nothing = saved.small({name: np.zeros(shape) for name, shape in saved.SHAPES.items()}, "zeros", ACCELS)
    found, simple = simulate(machine, requests, nothing), simulate(machine, requests, rule("sjf-eft"))
    np.testing.assert_allclose(found.end, simple.end)


def test_the_lstm_answers_as_the_net_that_was_saved(machine: Machine, some: tuple[int, ...], tmp_path: Path) -> None:
    net = initial(saved.inputs_of(ACCELS), saved.layers_of(ACCELS, 5), 3)
    card.save_folder(tmp_path / "m", saved.KIND, {"title": "t", "what": "w", "net": saved.LSTM}, files_of(net))
    policy, _ = saved.load(tmp_path / "m", "relmas", ACCELS)
    assert policy.macs == 4 * 5 * (8 + 6 * ACCELS + 4 + 5) + 5 * (1 + ACCELS)
    with pytest.raises(InputError):
        saved.load(tmp_path / "m", "relmas", ACCELS + 1)
    # the same decisions, made outside by NumPy's net: it sees all rows, those of nobody last
    requests = generate(machine, some, 12, 1.3, 5)
    z = state_of(machine, requests, Policy("outside", s.OUTSIDE, s.AFFINITY))
    while run(z):
        common = np.concatenate([z.seen_accels.ravel(), z.seen_all])
        z.action[:] = net([np.column_stack([z.seen, np.tile(common, (s.SEEN_REQUESTS, 1))])])[0]
    np.testing.assert_allclose(simulate(machine, requests, policy).end, z.end)


def test_the_same_seed_gives_the_same_model_after_a_stop(
    machine: Machine, some: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "REQUESTS", 16)
    monkeypatch.setattr(training, "HELD", 2)
    monkeypatch.setattr(training, "LOADS", (2.0,))
    lesson = training.Lesson(some, 2)
    about, files, _ = training.train(machine, lesson)
    for name in ("one", "other"):
        card.save_folder(tmp_path / name, training.KIND, about, files)

    def stop(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        training.train(machine, lesson, checkpoint=tmp_path / "kept", progress=stop)
    again, same, _ = training.train(machine, lesson, checkpoint=tmp_path / "kept")
    card.save_folder(tmp_path / "other", training.KIND, again, same)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes(), path.name
    begun = np.concatenate([each.ravel() for each in saved.split(training.begin(1)).values()])
    learnt = np.concatenate([files[f"{name}.npy"].ravel() for name in saved.SHAPES])
    assert (begun != learnt).any()
    assert len(saved.curve_of(tmp_path / "one")) == 2


def test_a_model_is_scored_against_the_best_rule(machine: Machine, some: tuple[int, ...]) -> None:
    asked = evaluate.Evaluation((0.8, 1.4), 3, 20, some, 1)
    twin = rule("sjf-eft")
    scores = evaluate.run(machine, Policy("relmas", twin.order, twin.place), asked)
    by = {(row.load, row.policy): row.sla for row in scores.loads}
    for row in scores.gains:
        rules = {name: by[row.load, name] for name in evaluate.RULES}
        assert rules[row.rule] == max(rules.values()) == row.rule_sla
        assert row.sla == rules["sjf-eft"]
        assert row.gain == pytest.approx(row.sla - row.rule_sla)
        assert row.gain <= 0
    result = tables.evaluated(scores, machine, asked, {}, [], command="")
    assert sum("Learning does not pay here" in text for text in result.warnings) == 2
    with pytest.raises(UsageError, match="learnt from"):
        evaluate.check_unseen({"training_seeds": [3, 9]}, asked)


def test_intervals_are_students() -> None:
    _, high = evaluate.interval(np.array([0.1, 0.2, 0.3]))
    # t(0.975, 2) = 4.3027; s = 0.1
    assert high == pytest.approx(0.2 + 4.302653 * 0.1 / 3**0.5, abs=1e-6)
    assert evaluate.interval(np.array([1.0])) == (None, None)


BAD = {
    "a shape": {"req_w": [[0.0] * 8] * 7},
    "no number": {"req_b": [float("nan")] * 8},
    "text": {"pair_v": "x"},
    "one more": {"more": []},
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_weights_are_refused(tmp_path: Path, case: str) -> None:
    weights = {name: np.zeros(shape).tolist() for name, shape in saved.SHAPES.items()}
    (tmp_path / "w.json").write_text(json.dumps(weights))
    assert saved.load(tmp_path / "w.json", "w", 6)[0].macs == 792
    (tmp_path / "w.json").write_text(json.dumps(weights | BAD[case]))
    with pytest.raises(InputError):
        saved.load(tmp_path / "w.json", "w", 6)


def test_the_environment_is_one_of_gymnasium_and_zeros_are_fcfs() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    import gpuctl.research.learn.environments  # noqa: F401 - registers

    env = gymnasium.make("gpuctl/Accel-v0", system=SYSTEM, models="lstm-2x512,unet-s", requests=15)
    check_env(env.unwrapped)
    seen, about = env.reset(seed=4)
    assert seen["requests"].shape == (s.SEEN_REQUESTS, 8 + 3 * ACCELS)
    over, total, steps = False, 0.0, 0
    while not over:
        rows = int(seen["requests"][:, 7].sum())
        assert 0 < rows <= 15
        assert seen["global"][0] == pytest.approx(rows / 32)
        slack = seen["requests"][:rows, 0]
        seen, reward, over, _, end = env.step(np.zeros(env.action_space.shape, np.float32))
        total, steps = total + reward, steps + 1
        assert np.isfinite(slack).all()
    world = env.unwrapped
    asked = stream(world.machine, world.models, 15, about["load"], about["seed"])
    outcome = simulate(world.machine, asked, rule("fcfs-eft"))
    assert (end["met"], steps) == (outcome.met.sum(), outcome.decisions)
    assert end["met"] + end["missed"] == 15
    assert total <= 2 * end["met"] - 15


@pytest.mark.filterwarnings("ignore:Your observation:UserWarning")  # advice: its rows are two-dimensional on purpose
def test_stable_baselines_takes_the_environment() -> None:
    pytest.importorskip("stable_baselines3", reason="gpuctl-toolkit[learn] is not installed")
    from stable_baselines3.common.env_checker import check_env

    from gpuctl.research.accel.environment import Accel

    check_env(Accel(SYSTEM, requests=3))


def test_ddpg_gives_the_same_lstm_after_a_stop(
    machine: Machine, some: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3", reason="gpuctl-toolkit[learn] is not installed")
    from gpuctl.research.accel import ddpg

    monkeypatch.setattr(ddpg, "STEPS", 600)
    monkeypatch.setattr(ddpg, "BUFFER", 1000)
    monkeypatch.setattr("gpuctl.research.learn.checkpoints.EVERY_S", 0.0)
    about, files, _ = ddpg.train(machine, some, 2, 1)

    def stop(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ddpg.train(machine, some, 2, 1, checkpoint=tmp_path / "kept", progress=stop)
    again, same, _ = ddpg.train(machine, some, 2, 1, checkpoint=tmp_path / "kept")
    assert about == again
    assert (files["net.npy"] == same["net.npy"]).all()
    card.save_folder(tmp_path / "m", saved.KIND, about, files)
    assert saved.load(tmp_path / "m", "relmas", ACCELS)[0].hidden == ddpg.HIDDEN


def test_streams_to_score_by_are_no_masks_of_those_to_learn_from(machine: Machine) -> None:
    """As hashed ones are: a CRC is linear, so that two seeds' numbers differ by the same bits everywhere."""

    everything = tuple(models_of("all", machine))
    hashed = [generate(machine, everything, 64, 1.0, seed).model % 4 for seed in (1, 2)]
    drawn = [stream(machine, everything, 64, 1.0, seed).model % 4 for seed in (1, 2)]
    assert len(set((hashed[0] ^ hashed[1])[:10].tolist())) == 1
    assert len(set((drawn[0] ^ drawn[1])[:10].tolist())) > 1
