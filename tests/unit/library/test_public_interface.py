"""What ``import gpuctl`` offers: its names and signatures, and what importing it leaves alone."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import gpuctl
import gpuctl.replay.run  # a room of the name of a function
from gpuctl import errors, plugins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAVY = {"duckdb", "lightgbm", "matplotlib", "numba", "numpy", "polars", "rich", "scipy", "typer"}


def signatures() -> Iterator[str]:
    """A line for each public function, method and property; docstrings say what they mean."""
    for name in sorted(gpuctl.__all__):
        found = getattr(gpuctl, name)
        yield f"gpuctl.{name}{inspect.signature(found)}"
        if inspect.isclass(found):
            for method, value in sorted(vars(found).items()):
                if not method.startswith("_"):
                    is_property = isinstance(value, property)
                    yield f"gpuctl.{name}.{method}{'' if is_property else inspect.signature(value)}"
    yield from (f"gpuctl.errors.{name}" for name in sorted(errors.__all__))
    yield from (f"gpuctl.plugins.{name}" for name in sorted(plugins.__all__))


def test_signatures_stay_as_they_are(root: Path) -> None:
    """A change here is a change for every notebook: CHANGELOG.md says it."""
    golden = root / "tests/golden/public_interface.txt"
    text = "\n".join(signatures()) + "\n"
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_the_stub_names_what_the_package_has(root: Path) -> None:
    stub = (root / "gpuctl/__init__.pyi").read_text()
    assert set(re.findall(r"import (\w+) as \1", stub)) == {*gpuctl.__all__, "errors", "plugins"}
    for name in gpuctl.__all__:
        assert f"from {getattr(gpuctl, name).__module__} import {name} as {name}" in stub


def test_plugins_offers_what_its_types_name(root: Path) -> None:
    text = (root / "gpuctl/plugins.py").read_text()
    named = dict(reversed(each) for each in re.findall(r"    from gpuctl\.([\w.]+) import (\w+) as \2", text))
    assert named == plugins._MODULES
    for name in plugins.__all__:
        assert getattr(plugins, name) is not None


def test_importing_gpuctl_loads_nothing_heavy() -> None:
    code = f"import sys, gpuctl; dir(gpuctl); print(sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_rooms_do_not_replace_functions_of_their_names() -> None:
    assert inspect.isfunction(gpuctl.replay)
    assert inspect.isfunction(gpuctl.analyze)
    assert inspect.isfunction(gpuctl.ingest)
    assert sys.modules["gpuctl.replay.run"].replay is not gpuctl.replay


@pytest.mark.parametrize("module", [gpuctl, plugins])
def test_unknown_names_are_attribute_errors(module: object) -> None:
    with pytest.raises(AttributeError, match="no attribute 'replays'"):
        _ = module.replays  # type: ignore[attr-defined]


def test_examples_of_plugins_import_the_public_interface_alone(root: Path) -> None:
    files = [*root.glob("docs/examples/**/*.py"), *root.glob("examples/plugin/src/**/*.py")]
    assert len(files) > 8
    for path in files:
        imported = set(re.findall(r"^\s*(?:from|import) (gpuctl[\w.]*)", path.read_text(), re.MULTILINE))
        assert imported <= {"gpuctl", "gpuctl.errors", "gpuctl.plugins", "gpuctl_example"}, path
