"""Nets: NumPy answers what PyTorch does, files hold them whole, and what does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuctl.core.errors import DependencyError, InputError
from gpuctl.predictors import card
from gpuctl.research.learn import extra
from gpuctl.research.learn.nets import Net, ShapeError, initial, scaled, shapes
from gpuctl.research.learn.saved import files_of, net_of

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "learn" / "torch_answers.json"
"""Nets with the weights and answers of PyTorch's own modules; written by `record` below."""

EACH: dict[str, tuple[tuple[int, ...], list[dict[str, Any]]]] = {
    "steps": ((5, 4), [
        {"kind": "scale"}, {"kind": "encoder", "heads": 2, "hidden": 6}, {"kind": "lstm", "hidden": 3},
        {"kind": "flatten"}, {"kind": "linear", "outputs": 2},
    ]),
    "mixture": ((3,), [
        {"kind": "linear", "outputs": 5}, {"kind": "tanh"},
        {"kind": "mixture", "experts": [
            [{"kind": "linear", "outputs": 2}, {"kind": "sigmoid"}],
            [{"kind": "relu"}, {"kind": "linear", "outputs": 2}],
         ], "gate": [{"kind": "linear", "outputs": 2}]},
    ]),
}  # fmt: skip


def drawn(name: str) -> tuple[Net, np.ndarray[Any, Any]]:
    """A net with random weights everywhere, and inputs."""
    inputs, layers = EACH[name]
    draw = np.random.Generator(np.random.PCG64(3))
    weights = {
        of: np.abs(draw.normal(1, 0.2, shape)).astype(np.float32) if of.endswith(("std", "norm1.weight"))
        else draw.normal(0, 0.5, shape).astype(np.float32)
        for of, shape in shapes(inputs, layers)[0].items()
    }  # fmt: skip
    return Net(inputs, tuple(layers), weights), draw.normal(0, 1, (3, *inputs))


def record() -> None:
    """Write what PyTorch answers: python -c 'from tests.unit.research.learn.test_nets import record; record()'."""
    import torch

    from gpuctl.research.learn.torch_nets import module_of

    found = {}
    for name in EACH:
        net, x = drawn(name)
        answers = module_of(net).eval()(torch.from_numpy(x.astype(np.float32))).detach().numpy()
        found[name] = {"answers": answers.tolist(), "torch": torch.__version__}
    RECORDED.write_text(json.dumps(found) + "\n")


@pytest.mark.parametrize("name", EACH)
def test_numpy_answers_what_pytorch_answered(name: str, tmp_path: Path) -> None:
    net, x = drawn(name)
    expected = np.array(json.loads(RECORDED.read_text())[name]["answers"])
    assert np.abs(net(x) - expected).max() < 2e-6
    card.save_folder(tmp_path / "net", "test", {"title": "A net"}, files_of(net))
    again = net_of(card.load_folder(tmp_path / "net", "test"), net.inputs, 2)
    assert again.layers == net.layers
    assert (again(x) == net(x)).all()
    assert (again.ready()(x[:1]) == net(x[:1])).all()


def test_nets_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    net, _ = drawn("mixture")
    files = files_of(net)
    gate = files["net.json"]["layers"][2]["gate"]
    deep: list[dict[str, Any]] = [{"kind": "linear", "outputs": 1}]
    for _ in range(5):
        deep = [{"kind": "mixture", "experts": [deep], "gate": [{"kind": "linear", "outputs": 1}]}]
    wrong = (
        [{"kind": "linear", "outputs": True}], [{"kind": "linear", "outputs": 10**9}], [{"kind": "exec"}],
        [{"kind": "encoder", "heads": 1, "hidden": 1}], [], [{"kind": "linear", "outputs": 2}], ["linear"], [{}],
        [{"kind": ["relu"]}], [{"kind": "mixture", "experts": [gate, [{"kind": "relu"}]], "gate": gate}], deep,
    )  # fmt: skip
    for layers in wrong:
        card.save_folder(
            tmp_path / "n", "t", {"title": ""}, {**files, "net.json": {"inputs": [3], "layers": layers}}
        )  # fmt: skip
        with pytest.raises(InputError):
            net_of(card.load_folder(tmp_path / "n", "t"), (3,), 2)
    for change in ({"net.npy": files["net.npy"][1:]}, {"net.npy": files["net.npy"] * np.float32(np.nan)}):
        card.save_folder(tmp_path / "n", "t", {"title": ""}, {**files, **change})
        with pytest.raises(InputError):
            net_of(card.load_folder(tmp_path / "n", "t"), (3,), 2)
    card.save_folder(tmp_path / "n", "t", {"title": ""}, files)
    for inputs, outputs in (((4,), 2), ((3,), 1)):
        with pytest.raises(InputError):
            net_of(card.load_folder(tmp_path / "n", "t"), inputs, outputs)


def test_weights_to_begin_with_depend_on_the_seed_alone() -> None:
    x = np.array([[0.0, 1.0, 5.0], [2.0, 1.0, 5.0]])
    inputs, layers = EACH["mixture"]
    one, same, other = (initial(inputs, [{"kind": "scale"}, *layers], seed, **scaled(x)) for seed in (1, 1, 2))
    assert (one(x) == same(x)).all()
    assert (one(x) != other(x)).any()
    assert one.weights["0.std"].tolist() == [1, 1, 1]
    assert one.weights["0.mean"].tolist() == [1, 1, 5]
    with pytest.raises(ShapeError):
        initial((4,), [{"kind": "scale"}], 1, **scaled(x))


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(DependencyError, match="training needs no_such_package") as error:
        extra.needed("no_such_package", "training")
    assert "gpuctl-toolkit[learn]" in str(error.value.hint)
