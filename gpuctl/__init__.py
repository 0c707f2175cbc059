"""gpuctl: turns the logs of a GPU cluster into answers and what-ifs.

The folders ``queries/``, ``predictors/`` and ``reports/`` are sub-packages of this one. A wheel carries
them inside it; in a checkout they lie beside it, and the lines below make both look the same.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__version__ = "0.1.0"
DISTRIBUTION = "gpuctl-toolkit"
"""What pip installs. On PyPI the name ``gpuctl`` belongs to another program, whose package is called the same."""

_ROOT = Path(__file__).resolve().parent.parent


class _Beside:
    """Finds these three in the checkout, and nothing else there: its root on ``__path__`` would make all of it ours."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in {"gpuctl.queries", "gpuctl.predictors", "gpuctl.reports"}:
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [str(_ROOT)], target)


if (_ROOT / "pyproject.toml").is_file() and (_ROOT / "queries").is_dir():
    sys.meta_path.append(_Beside)
