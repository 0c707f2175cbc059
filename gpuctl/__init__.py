"""gpuctl: turns the logs of a GPU cluster into answers and what-ifs.

In a notebook or a script::

    import gpuctl

    gpuctl.analyze("logs/").table("queue_delays")
    gpuctl.replay("logs/", policies=["fifo", "tiresias"]).table("replay_summary")

The public interface is what ``__all__`` lists, with ``gpuctl.errors`` and ``gpuctl.plugins``; everything else may
change with any version. Each name is imported when it is first used, so that ``import gpuctl`` loads nothing;
``__init__.pyi`` has the types.

The folders ``queries/``, ``predictors/`` and ``reports/`` are sub-packages of this one. A wheel carries them inside
it; in a checkout they lie beside it, and the lines below make both look the same.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing: its import, and pathlib's, would delay the handler of Ctrl-C (cli/start.py)
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

__version__ = "0.2.0"
DISTRIBUTION = "gpuctl-toolkit"
"""What pip installs. On PyPI the name ``gpuctl`` belongs to another program, whose package is called the same."""

_MODULES = {
    "Result": "result",
    "Simulation": "replays",
    "Trace": "traces",
    "analyze": "analysis",
    "classify": "analysis",
    "explain": "analysis",
    "ingest": "traces",
    "load_model": "models",
    "open": "traces",
    "plan": "plans",
    "replay": "replays",
    "report": "reports",
    "sweep": "replays",
    "train": "models",
}
"""The module of ``gpuctl.library`` that has each public name."""
__all__ = [*_MODULES]  # noqa: PLE0604 - names of the mapping


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        from gpuctl.core.whole_imports import whole_imports

        with whole_imports():
            found = getattr(import_module(f"gpuctl.library.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    if name in {"errors", "plugins"}:
        return import_module(f"gpuctl.{name}")
    raise AttributeError(f"module 'gpuctl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "errors", "plugins"})


class _Package(type(sys)):  # type: ignore[misc]
    """This package; ``gpuctl.analyze``, ``ingest`` and ``replay`` are functions, although rooms have these names.

    Importing a room makes it an attribute of its package, in place of the function: here, it does not.
    ``import gpuctl.replay.run`` and ``from gpuctl.replay import run`` find rooms in `sys.modules`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, type(sys))):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120


class _Beside:
    """Finds these three in the checkout, and nothing else there: its root on ``__path__`` would make all of it ours."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in {"gpuctl.queries", "gpuctl.predictors", "gpuctl.reports"}:
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [_ROOT], target)


if os.path.isfile(os.path.join(_ROOT, "pyproject.toml")) and os.path.isdir(os.path.join(_ROOT, "queries")):  # noqa: PTH112, PTH113, PTH118
    sys.meta_path.append(_Beside)
