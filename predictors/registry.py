"""The predictors of run times, by name: the model, simple rules, those of installed packages, and of files.

A package adds one by the group of entry points ``gpuctl.predictors``: a subclass of
`gpuctl.predictors.contract.Predictor`, of the entry point's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from gpuctl.core import plugins
from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.predictors.contract import Predictor

GROUP = "gpuctl.predictors"
MODEL = "history"
_FILE = "--predictor FILE.py:CLASS, where CLASS is a gpuctl.predictors.contract.Predictor in it"


def built_in() -> dict[str, str]:
    """Return gpuctl's own predictors of run times: names and titles."""
    from gpuctl.predictors.baselines import BASELINES

    return {MODEL: "Quantiles by regression trees, from how earlier jobs like it fared.", **BASELINES}


def installed() -> tuple[plugins.Plugin, ...]:
    """Return the predictors of installed packages; none of them is imported."""
    return plugins.installed("predictor", GROUP, built_in())


def origin(name: str) -> str:
    """Return the origin of a predictor: built in, a package and its version, or a file."""
    return plugins.origin(name, installed())


def find(name: str) -> type[Predictor]:
    """Return the predictor of an installed package, or ``FILE.py:CLASS``.

    Raises:
        UsageError: the name is unknown, built in, or ambiguous.
        InputError: its file or package cannot be loaded.
    """
    file = plugins.split_file(name)
    if file is not None:
        return _from_file(*file)
    plugin = next((each for each in installed() if each.name == name), None)
    if plugin is None:
        if name in built_in():
            raise UsageError(f"predictor {name!r} is gpuctl's own: it is always scored", hint="leave it out")
        known = [each.name for each in installed()]
        raise UsageError(f"there is no predictor {name!r}", hint=meant(name, known, "or give FILE.py:CLASS"))
    found = plugin.load()
    if not _is_one(found):
        raise plugin.broken("it is not a subclass of gpuctl.predictors.contract.Predictor")
    if found.name != plugin.name:
        raise plugin.broken(f"its class calls itself {found.name!r}")
    return found


def _is_one(found: object) -> TypeGuard[type[Predictor]]:
    from gpuctl.predictors.contract import Predictor

    return isinstance(found, type) and issubclass(found, Predictor) and found is not Predictor


def _from_file(path: Path, name: str) -> type[Predictor]:
    module = plugins.of_file(path, "predictor", _FILE)
    found = module.__dict__.get(name)
    if not _is_one(found):
        there = [key for key, value in vars(module).items() if _is_one(value)]
        hint = f"its predictors are: {', '.join(there)}" if there else _FILE
        raise UsageError(f"{path}: has no predictor {name!r}", hint=hint)
    found.name = found.name or name
    if found.name in built_in() or any(each.name == found.name for each in installed()):
        raise UsageError(f"predictor {found.name!r} exists more than once", hint="rename the one in the file")
    return found
