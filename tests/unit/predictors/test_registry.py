"""Predictors by name: those of files, whose names must be no others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.predictors.registry import MODEL, built_in, find
from tests.installed_package import forget, install, on_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = """
from gpuctl.predictors.contract import Predictor

class Own(Predictor):
    {line}

    def predict(self, job):
        return 1.0
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, with one that has the predictor ``taken``."""
    on_path(tmp_path, monkeypatch)
    install(tmp_path, "good", {"gpuctl.predictors": {"taken": "good_taken:Own"}}, good_taken=TEXT.format(line=""))
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


def written(folder: Path, line: str) -> str:
    (folder / "own.py").write_text(TEXT.format(line=line))
    return f"{folder / 'own.py'}:Own"


@pytest.mark.parametrize("name", ["taken", MODEL, "mean"])
def test_a_file_s_predictor_has_a_name_that_no_other_has(site: Path, name: str) -> None:
    assert (name in built_in()) == (name != "taken")
    with pytest.raises(UsageError, match=f"'{name}' exists more than once"):
        find(written(site, f"name = {name!r}"))


@pytest.mark.parametrize(("line", "name"), [("name = 'mine'", "mine"), ("", "Own")])
def test_a_file_s_predictor_is_called_as_it_says_or_else_as_its_class(site: Path, line: str, name: str) -> None:
    assert find(written(site, line)).name == name


def test_the_predictors_of_a_file_are_named_where_another_is_requested(site: Path) -> None:
    with pytest.raises(UsageError, match="has no predictor 'Other'") as refused:
        find(written(site, "").replace(":Own", ":Other"))
    assert refused.value.hint == "its predictors are: Own"
