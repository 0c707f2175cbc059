"""Checks of saved models: whole ones, and such as are cut off, old, foreign, or of other features."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.doctor import models
from gpuctl.doctor.check import DoctorContext, Finding, Status
from gpuctl.predictors import history, history_folder, history_tables, overhead
from gpuctl.predictors.card import load_folder, save_folder
from tests.unit.predictors.test_history import log

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_700_000_000.0
IDS = ["model_folder", "model_age", "model_features", "model_versions"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "run-times"
    found = history.train(log())
    history_folder.save(folder, found.model, history_tables.about(found, ()))
    return folder


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(trained, tmp_path / "m"))
    os.utime(folder / "card.json", (NOW, NOW))
    return folder


def look(*folders: Path, days: float = 1.0) -> list[Finding]:
    found = list(models.models(DoctorContext(models=folders, now=NOW + days * 86_400)))
    for one in found:
        assert bool(one.fix) == (one.status is not Status.OK), one
    return found


def change_card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    place = folder / "card.json"
    card = json.loads(place.read_text())
    change(card)
    place.write_text(json.dumps(card))
    os.utime(place, (NOW, NOW))


def test_a_good_model(model: Path) -> None:
    found = look(model)
    assert [one.check for one in found] == IDS
    assert {one.status for one in found} == {Status.OK}, found
    told = [one.evidence for one in found]
    assert told[0] == f"{model}: runtime, 12 files as listed in the card, loads"
    assert told[1].startswith(f"{model}: written 1 day ago, trained on jobs submitted ")
    assert "as in this gpuctl" in told[2]


def test_a_model_of_overheads(tmp_path: Path) -> None:
    folder = tmp_path / "o"
    fitted = overhead.OverheadModel(terms={part: (1.0, 0.0, 0.0, 0.0) for part in overhead.PARTS})
    save_folder(folder, "overhead", {"terms": list(overhead.TERMS)}, {"overhead.json": overhead.to_json(fitted)})
    os.utime(folder / "card.json", (NOW, NOW))
    found = look(folder)
    assert [(one.check, one.status) for one in found] == [(check, Status.OK) for check in IDS], found
    change_card(folder, lambda card: card.update(terms=["other"]))
    assert look(folder)[2].status is Status.WARN


def test_several_models_each_have_their_rows(model: Path, tmp_path: Path) -> None:
    found = look(model, tmp_path / "absent", model)
    assert [one.check for one in found] == [*IDS, "model_folder", *IDS]
    assert found[4].status is Status.FAIL


def test_no_models_no_findings() -> None:
    assert look() == []


@pytest.mark.parametrize("name", ["card.json", "settings.json", "middle.txt", "hashes.npy"])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_folder_that_is_cut_off(model: Path, name: str, kept: float) -> None:
    place = model / name
    place.write_bytes(place.read_bytes()[: int(kept * place.stat().st_size)])
    (only,) = look(model)
    assert (only.check, only.status) == ("model_folder", Status.FAIL)
    assert str(place) in only.evidence


@pytest.mark.parametrize("name", ["card.json", "settings.json", "lower.txt", "queue_numbers.npy"])
def test_a_file_that_is_missing(model: Path, name: str) -> None:
    (model / name).unlink()
    (only,) = look(model)
    assert only.status is Status.FAIL
    assert name in only.evidence


def test_invalid_models(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    found = look(tmp_path / "file", tmp_path / "empty", tmp_path / "none\x1b[2J")
    assert [one.status for one in found] == [Status.FAIL] * 3


@pytest.mark.parametrize("kind", ["weather", None, ["runtime"]])
def test_a_kind_that_is_not_known(model: Path, kind: object) -> None:
    change_card(model, lambda card: card.update(kind=kind))
    (only,) = look(model)
    assert only.status is Status.FAIL
    assert "expected 'runtime', 'overhead', 'wait' or 'workload'" in only.evidence


def test_a_card_of_another_version(model: Path) -> None:
    change_card(model, lambda card: card.update(gpuctl_model=99))
    (only,) = look(model)
    assert only.status is Status.FAIL
    assert "is version 99" in only.evidence


@pytest.mark.parametrize(("days", "status"), [(-3, Status.OK), (90, Status.OK), (91, Status.WARN)])
def test_age(model: Path, days: float, status: Status) -> None:
    found = look(model, days=days)[1]
    assert found.status is status
    assert f"written {max(days, 0)} days ago" in found.evidence


def test_a_feature_that_was_defined_otherwise(model: Path) -> None:
    def change(card: dict[str, Any]) -> None:
        card["features"]["size"] = "something else"

    before = look(model)[2].evidence
    change_card(model, change)
    found = look(model)[2]
    assert found.status is Status.WARN
    assert "size defined otherwise" in found.evidence
    # the digest of this gpuctl's features is that which the model had
    was = before.partition("schema ")[2].partition(",")[0]
    assert f"in this gpuctl {was}:" in found.evidence
    assert f"schema {was}" not in found.evidence


def test_a_feature_that_is_not_known_does_not_load(model: Path) -> None:
    settings = json.loads((model / "settings.json").read_text())
    settings["features"][0] = "moon_phase"
    about = {key: value for key, value in load_folder(model, "runtime").card.items() if key not in {"kind", "files"}}
    files = load_folder(model, "runtime").files | {"settings.json": settings}
    save_folder(model, "runtime", {k: v for k, v in about.items() if k not in {"gpuctl_model", "gpuctl"}}, files)
    (only,) = look(model)
    assert only.status is Status.FAIL
    assert "moon_phase" in only.evidence


@pytest.mark.parametrize("features", [None, [], {}, "size", 7])
def test_a_card_without_features(model: Path, features: object) -> None:
    change_card(model, lambda card: card.update(features=features))
    assert look(model)[2].status is Status.WARN


@pytest.mark.parametrize("made", [{"lightgbm": "3.3.5"}, {}, None, "4.7", {"lightgbm": 4}])
def test_made_with_another_lightgbm(model: Path, made: object) -> None:
    change_card(model, lambda card: card.update(made_with=made))
    found = look(model)[3]
    good = isinstance(made, dict) and str(made.get("lightgbm", "")).startswith("4")
    assert found.status is (Status.OK if good else Status.WARN)
